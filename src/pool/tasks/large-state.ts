// Warns once for each function that captures much, and the same as before: each call sends all of it.
// Cheap: nothing is compared below 64 KiB, and only the first calls of each function.

import { emitWarning } from 'node:process';
import {
  type AnyFunction,
  type BufferCarrier,
  type FunctionSnapshot,
  fingerprint,
} from '../../context/index.js';
import { sourceText } from '../../lib/index.js';
import { parentExporter } from '../../worker/index.js';

const largeBytes = 64 * 1024;
/** Number of calls compared; a function whose state differed each time is then skipped. */
const comparedCalls = 4;

interface Seen {
  digest: string;
  callsLeft: number;
}

/** Keyed by the text of a function: closures are made anew for each call. */
const seen = new Map<string, Seen>();
const maxSeen = 256;

/** Compares what `fn` captured with what its code captured at the call before. */
export function noteLargeState(
  fn: AnyFunction,
  snapshot: FunctionSnapshot,
  buffers: BufferCarrier,
): void {
  const { state } = snapshot;
  if (state === undefined || state.byteLength < largeBytes) return;
  const text = sourceText(fn);
  const before = seen.get(text);
  if (before?.callsLeft === 0 || (before === undefined && seen.size >= maxSeen)) return;
  const digest = fingerprint(fn, snapshot, buffers);
  if (digest === undefined) {
    seen.set(text, { digest: '', callsLeft: 0 });
    return;
  }
  if (before === undefined) {
    seen.set(text, { digest, callsLeft: comparedCalls });
    return;
  }
  before.callsLeft -= 1;
  if (before.digest !== digest) {
    before.digest = digest;
    return;
  }
  before.callsLeft = 0;
  const { name, variable } = parentExporter().largestCapture(fn, buffers);
  emitWarning(
    `the ${name} sends ${Math.round(state.byteLength / 1024)} KiB of what it captured with each call, ` +
      `and it was the same again${variable === undefined ? '' : `; most of it is the variable ${variable}`}: ` +
      'make it once in each worker with perWorker(() => …), or in a module that the function imports; ' +
      'for bytes use shared(bytes)',
    { type: 'ManycoreWarning', code: 'LARGE_CAPTURE' },
  );
}
