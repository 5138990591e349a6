// Functions with known captures: the native reader proves itself by them before it is used. They are made from
// text, because a bundler renames variables and puts constants in their places.
// Not here: the reader (closure-reader.ts).

import { compileFunction } from 'node:vm';
import type { AnyFunction } from '../types.js';

/** A function, names of variables that it captured, and their values. */
export type Sample = readonly [
  fn: AnyFunction,
  names: readonly string[],
  values: readonly unknown[],
];

export interface Samples {
  /** Makes a function that captured `x`, lends it while `x` has no value yet, and returns what `use` does. */
  readonly whileUnset: <T>(use: (fn: () => unknown) => T) => T;
  /** Captured `x`, which another function has set to an integer. */
  readonly assigned: () => unknown;
  /** Captured `inner`, 12, and `outer`, 11, one context further out. */
  readonly numbers: () => unknown;
  /** By what they show. */
  readonly kinds: Readonly<Record<string, () => Iterable<Sample>>>;
}

const source = `
  'use strict';
  const whileUnset = (use) => {
    const result = use(() => x);
    const x = 1;
    return result;
  };
  const assigned = (() => {
    let x = 0;
    const add = () => { x += 1; };
    add();
    add();
    return () => x;
  })();
  const numbers = ((outer) => {
    const make = (inner) => () => [inner, outer];
    return make(outer + 1);
  })(11);
  const kinds = {
    numbers() {
      const [small, large, minus, half] = [7, 2 ** 40, -0, 0.5];
      return [[() => small + large + minus + half, ['half', 'small', 'minus', 'large'], [half, small, minus, large]]];
    },
    'values of each type'() {
      const [text, big, symbol, list] = ['text', 1n, Symbol('s'), [1]];
      const [nothing, empty, yes] = [undefined, null, true];
      const fn = () => [text, big, symbol, list, nothing, empty, yes];
      return [[fn, ['text', 'big', 'symbol', 'list', 'nothing', 'empty', 'yes'], fn()]];
    },
    *'variables that are assigned'() {
      let value = 1;
      const set = (to) => { value = to; };
      const fn = () => value;
      for (const to of [2, 2 ** 31, 0.25, 'text', fn, 3, -1, undefined]) {
        set(to);
        yield [fn, ['value'], [to]];
      }
    },
    'variables of a loop'() {
      const made = [];
      for (let turn = 0; turn < 3; turn += 1) {
        const twice = 2 * turn;
        made.push([() => turn + twice, ['turn', 'twice'], [turn, twice]]);
      }
      return made;
    },
    'functions in functions'() {
      const outer = 'outer';
      const make = (middle) => {
        const inner = middle + '!';
        return () => [outer, middle, inner];
      };
      return ['a', 'b'].map((middle) => [make(middle), ['middle', 'outer', 'inner'], [middle, outer, middle + '!']]);
    },
    'a caught error'() {
      const thrown = new Error('expected');
      try {
        throw thrown;
      } catch (error) {
        return [[() => error, ['error'], [thrown]]];
      }
    },
    'async functions and generators'() {
      const one = 'one';
      const later = async () => one;
      const many = function* () { yield one; };
      return [later, many].map((fn) => [fn, ['one'], [one]]);
    },
    'a function that uses itself'() {
      const step = 2;
      const fn = function down(from) {
        return from < step ? from : down(from - step);
      };
      const inner = function outermost() {
        return () => outermost;
      };
      return [[fn, ['step'], [step]], [inner(), ['outermost'], [inner]]];
    },
    'the \`this\` of arrows'() {
      class Maker {
        made = () => this;
        method() {
          const one = 1;
          return () => [this, one];
        }
      }
      const maker = new Maker();
      return [[maker.made, ['this'], [maker]], [maker.method(), ['one', 'this'], [1, maker]]];
    },
  };
  return { whileUnset, assigned, numbers, kinds };`;

/** Makes them anew. */
export function makeSamples(): Samples {
  const samples: Samples = compileFunction(source, [], { filename: import.meta.url })();
  return samples;
}
