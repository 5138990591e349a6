// The API of OpenTelemetry, an optional peer: loaded when it is asked for. By `require`, so that who
// instruments a program need not wait, and because all of it is one module in a process anyway.

import { createRequire } from 'node:module';
import { CodedError } from '../../errors.js';
import { messageOf, prototypeRemedy } from '../../internal/index.js';

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
