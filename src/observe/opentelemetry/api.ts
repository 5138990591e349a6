// Loads the API of OpenTelemetry, an optional peer, on demand. By `require`, so that `instrument` is
// synchronous; the API keeps its state per process, whatever loads it.

import { createRequire } from 'node:module';
import { CodedError } from '../../errors.js';
import { messageOf, prototypeRemedy } from '../../lib/index.js';

export type Api = typeof import('@opentelemetry/api');

/** Throws `OPENTELEMETRY_MISSING`. */
export function openTelemetryApi(): Api {
  try {
    const api: Api = createRequire(import.meta.url)('@opentelemetry/api');
    return api;
  } catch (cause) {
    const remedy = prototypeRemedy(cause);
    const text =
      remedy === undefined
        ? '@opentelemetry/api is not installed: npm install @opentelemetry/api, and an SDK'
        : `@opentelemetry/api does not load (${messageOf(cause)}): ${remedy}`;
    throw new CodedError('OPENTELEMETRY_MISSING', text, { cause });
  }
}
