// Access to the sending half of the context layer from code that needs it seldom. A worker starts without it:
// it is half of the text that a worker would read, and plain results do without.
// Not here: the sending half (sending.ts), the exporter of a worker (late-exporter.ts).

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type * as Sending from './sending.js';

type SendingHalf = typeof Sending.half;

const sendingUrl = new URL('./sending.js', import.meta.url);
let half: SendingHalf | undefined;

/** Called by the sending half where a program loads it by itself. */
export function provideSendingHalf(given: SendingHalf): void {
  half = given;
}

/** The sending half; loads it where it is not loaded yet. */
export function sendingHalf(): SendingHalf {
  if (half !== undefined) return half;
  const loaded: typeof Sending = createRequire(import.meta.url)(fileURLToPath(sendingUrl));
  return loaded.half;
}

/**
 * Loads it where it could not be loaded later: in a Node that requires no ES modules. `undefined`: it can.
 */
export function loadSendingHalf(): Promise<unknown> | undefined {
  const { require_module: canRequire } = Object(process.features);
  return canRequire === true ? undefined : import(sendingUrl.href);
}
