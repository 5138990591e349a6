// Where something else is to know of calls and maps from their beginning to their end, also of those that no
// worker ever sees: the trace of whoever calls. A pool without it pays for a look. Not here: what it is
// (observe/opentelemetry).

import type { AnyFunction } from '../context/index.js';

export interface CallTrace {
  /** Calls `call`, returns what it returns and throws what it throws. `fn` may be anything: `call` refuses it. */
  around<P extends Promise<unknown>>(what: 'call' | 'map', fn: AnyFunction, call: () => P): P;
}

let trace: CallTrace | undefined;

/** From now on, for all pools of this thread. */
export function traceCalls(given: CallTrace): void {
  trace = given;
}

export function callTrace(): CallTrace | undefined {
  return trace;
}

/** A map of `mapper`, which `call` begins. */
export function traceMap<P extends Promise<unknown>>(mapper: AnyFunction, call: () => P): P {
  return trace === undefined ? call() : trace.around('map', mapper, call);
}
