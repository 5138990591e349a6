// The native reader of captured variables, one for each thread. It is used only after a test of itself here:
// functions of each kind are learnt and read, and one wrong value switches it off for good. Without it the
// inspector reads everything.
// Not here: the layout of V8's objects (crates/node/src/closure_reader.rs), which functions are read so
// (encode/known-closures.ts).

import { messageOf } from '../../lib/index.js';
import {
  type NativeBinding,
  type NativeClosureReader,
  nativeBinding,
  nativeProblem,
} from '../../native.js';
import type { AnyFunction } from '../types.js';

type Loaded = { readonly reader: NativeClosureReader } | { readonly problem: string };

let loaded: Loaded | undefined;

/** The reader of this thread; `undefined`: `closureReaderProblem` has the reason. */
export function closureReader(): NativeClosureReader | undefined {
  loaded ??= load();
  return 'reader' in loaded ? loaded.reader : undefined;
}

/** The reason why captured variables are read by the inspector alone; `undefined`: they are not. */
export function closureReaderProblem(): string | undefined {
  loaded ??= load();
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

function load(): Loaded {
  const binding = nativeBinding();
  if (binding === undefined) return { problem: nativeProblem()?.message ?? 'no native binary' };
  try {
    const reader = makeReader(binding.NativeClosureReader);
    const wrong = wrongIn(reader);
    return wrong === undefined ? { reader } : { problem: `this runtime differs in ${wrong}` };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function makeReader(Reader: NativeBinding['NativeClosureReader']) {
  let reader: NativeClosureReader | undefined;
  const assigned = ((): (() => unknown) => {
    let x = 0;
    const add = (): number => {
      x += 1;
      return x;
    };
    add();
    add();
    return () => x;
  })();
  {
    const unset = (): number => x;
    reader = new Reader(unset, assigned);
    const x = 1;
    unset();
  }
  return reader;
}

interface Sample {
  readonly fn: AnyFunction;
  readonly names: readonly string[];
  readonly values: readonly unknown[];
}

/** Functions with the values that they captured, by what they show. */
const samples: Readonly<Record<string, () => Iterable<Sample>>> = {
  numbers() {
    const [small, large, minus, half] = [7, 2 ** 40, -0, 0.5];
    const fn = (): number => small + large + minus + half;
    return [
      { fn, names: ['half', 'small', 'minus', 'large'], values: [half, small, minus, large] },
    ];
  },
  'values of each type'() {
    const [text, big, symbol, list] = ['text', 1n, Symbol('s'), [1]];
    const [nothing, empty, yes] = [undefined, null, true];
    const fn = (): unknown[] => [text, big, symbol, list, nothing, empty, yes];
    return [
      {
        fn,
        names: ['text', 'big', 'symbol', 'list', 'nothing', 'empty', 'yes'],
        values: [text, big, symbol, list, nothing, empty, yes],
      },
    ];
  },
  *'variables that are assigned'() {
    let value: unknown = 1;
    const set = (to: unknown): void => {
      value = to;
    };
    const fn = (): unknown => value;
    for (const to of [2, 2 ** 31, 0.25, 'text', fn, 3, -1, undefined]) {
      set(to);
      yield { fn, names: ['value'], values: [to] };
    }
  },
  'variables of a loop'() {
    const made: Sample[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const twice = 2 * turn;
      const fn = (): number => turn + twice;
      made.push({ fn, names: ['turn', 'twice'], values: [turn, twice] });
    }
    return made;
  },
  'functions in functions'() {
    const outer = 'outer';
    const make = (middle: string): AnyFunction => {
      const inner = `${middle}!`;
      return () => [outer, middle, inner];
    };
    return ['a', 'b'].map((middle) => ({
      fn: make(middle),
      names: ['middle', 'outer', 'inner'],
      values: [middle, outer, `${middle}!`],
    }));
  },
  'a caught error'() {
    const thrown = new Error('expected');
    try {
      throw thrown;
    } catch (error) {
      return [{ fn: () => error, names: ['error'], values: [thrown] }];
    }
  },
  'async functions and generators'() {
    const one = 'one';
    const later = async (): Promise<string> => one;
    const many = function* (): Generator<string> {
      yield one;
    };
    return [later, many].map((fn) => ({ fn, names: ['one'], values: [one] }));
  },
  'a function that uses itself'() {
    const step = 2;
    const fn = function down(from: number): number {
      return from < step ? from : down(from - step);
    };
    const inner = function outermost(): AnyFunction {
      return () => outermost;
    };
    return [
      { fn, names: ['step'], values: [step] },
      { fn: inner(), names: ['outermost'], values: [inner] },
    ];
  },
};

/** Names the first sample that is read wrong; `undefined`: none is. */
function wrongIn(reader: NativeClosureReader): string | undefined {
  for (const [what, make] of Object.entries(samples)) {
    for (const { fn, names, values } of make()) {
      const { values: found } = learnAndRead(reader, fn, names);
      reader.forget(fn);
      if (!found || !values.every((value, at) => Object.is(value, found[at]))) return what;
    }
  }
  return undefined;
}
