// Hook around calls and maps from their beginning to their end, including those that reach no worker: the
// caller's trace. Without a hook a pool only checks a variable. Not here: its implementation
// (observe/opentelemetry).

import type { AnyFunction } from '../context/index.js';

export interface CallTrace {
  /**
   * Calls `call`, returns what it returns and throws what it throws. `fn` may be anything: `call` refuses
   * it.
   */
  around<P extends Promise<unknown>>(what: 'call' | 'map', fn: AnyFunction, call: () => P): P;
}

let trace: CallTrace | undefined;

/** Sets the hook for all pools of this thread. */
export function traceCalls(given: CallTrace): void {
  trace = given;
}

export function callTrace(): CallTrace | undefined {
  return trace;
}

/** Traces a map of `mapper`, which `call` begins. */
export function traceMap<P extends Promise<unknown>>(mapper: AnyFunction, call: () => P): P {
  return trace === undefined ? call() : trace.around('map', mapper, call);
}
