// A call that runs here, in the caller's own process: `whenBusy: 'inline'`, and everything that a
// task itself wants to run in parallel (its host is one core, and that core is at work on the task).

import type { AnyFunction } from '../context/index.js';

/** Calls `fn` now; a generator's items come as a stream, as they would from a host. */
export async function callInline(fn: AnyFunction, args: readonly unknown[]): Promise<unknown> {
  const result: unknown = await Reflect.apply(fn, undefined, args);
  return isGenerator(result) ? stream(result) : result;
}

type AnyGenerator = AsyncGenerator<unknown> | Generator<unknown>;

function isGenerator(value: unknown): value is AnyGenerator {
  const tag = Object.prototype.toString.call(value);
  return tag === '[object Generator]' || tag === '[object AsyncGenerator]';
}

async function* stream(generator: AnyGenerator): AsyncGenerator<unknown> {
  return yield* generator;
}
