// The native reader of captured variables, one for each thread. It is used only after a test of itself here:
// functions of each kind are learnt and read, and one wrong value switches it off for good. Without it the
// inspector reads everything.
// Not here: these functions (reader-samples.ts), the layout of V8's objects (crates/node/src/closure_reader.rs),
// which functions are read so (encode/known-closures.ts).

import { messageOf } from '../../lib/index.js';
import { type NativeClosureReader, nativeBinding, nativeProblem } from '../../native.js';
import type { AnyFunction } from '../types.js';
import { makeSamples, type Samples } from './reader-samples.js';

type Loaded = { readonly reader: NativeClosureReader } | { readonly problem: string };

let loaded: Loaded | undefined;

/** The reader of this thread; `undefined`: `closureReaderProblem` has the reason. */
export function closureReader(): NativeClosureReader | undefined {
  loaded ??= makeReader();
  return 'reader' in loaded ? loaded.reader : undefined;
}

/** The reason why captured variables are read by the inspector alone; `undefined`: they are not. */
export function closureReaderProblem(): string | undefined {
  loaded ??= makeReader();
  return 'problem' in loaded ? loaded.problem : undefined;
}

/** Learns the code of `fn` and reads it once; without `values` where it cannot be read. `number`: see `learn`. */
export function learnAndRead(
  reader: NativeClosureReader,
  fn: AnyFunction,
  names: readonly string[],
): { readonly number: number; readonly values: readonly unknown[] | undefined } {
  const number = reader.learn(fn, names);
  const values: unknown[] = [];
  const isRead = number !== 0 && reader.read(fn, values) === number;
  return { number, values: isRead ? values : undefined };
}

/** The values of these variables of `fn`, without learning its code; `undefined`: they cannot be read. */
export function readOnce(fn: AnyFunction, names: readonly string[]): unknown[] | undefined {
  const values: unknown[] = [];
  return closureReader()?.readOnce(fn, names, values) === true ? values : undefined;
}

/** Makes a reader and tests it. */
export function makeReader(): Loaded {
  const binding = nativeBinding();
  if (binding === undefined) return { problem: nativeProblem()?.message ?? 'no native binary' };
  try {
    const samples = makeSamples();
    const { whileUnset, assigned, numbers } = samples;
    const reader = whileUnset((unset) => new binding.NativeClosureReader(unset, assigned, numbers));
    const name = reader.scriptName(numbers);
    if (name !== null && name !== import.meta.url) return { problem: 'names of scripts differ' };
    const wrong = wrongIn(reader, samples);
    return wrong === undefined ? { reader } : { problem: `this runtime differs in ${wrong}` };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** Names the first kind of sample that is read wrong; `undefined`: none is. */
function wrongIn(reader: NativeClosureReader, { kinds }: Samples): string | undefined {
  for (const [what, make] of Object.entries(kinds)) {
    for (const [fn, names, values] of make()) {
      const { values: found } = learnAndRead(reader, fn, names);
      reader.forget(fn);
      if (!found || !values.every((value, at) => Object.is(value, found[at]))) return what;
    }
  }
  return undefined;
}
