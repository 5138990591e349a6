// A call that runs here, in the caller's own process: `whenBusy: 'inline'`, and everything that a
// task itself wants to run in parallel (its host is one core, and that core is at work on the task).

import type { AnyFunction } from '../context/index.js';
import { type AnyGenerator, generatorOf } from '../host/index.js';

/** Calls `fn` now; a generator's items come as a stream, as they would from a host. */
export async function callInline(fn: AnyFunction, args: readonly unknown[]): Promise<unknown> {
  const result: unknown = await Reflect.apply(fn, undefined, args);
  const generator = generatorOf(result);
  return generator === undefined ? result : stream(generator);
}

async function* stream(generator: AnyGenerator): AsyncGenerator<unknown> {
  return yield* generator;
}
