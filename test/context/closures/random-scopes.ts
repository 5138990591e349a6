// Random programs with nested scopes. Each makes functions at all depths of it, which return what they captured;
// other functions assign the variables in between. Names come from a small pool, so they hide each other. Arrows
// in functions and constructors also return `this`.

import vm from 'node:vm';
import type { Random } from '../../support/index.js';

/** A function of a random program. */
export interface Made {
  /** Returns the values of `names`. */
  readonly fn: () => unknown[];
  readonly names: readonly string[];
  /** Assigns a new value to a variable, when it can be assigned. */
  readonly change: (value: unknown) => void;
}

const pool = ['a', 'b', 'c', 'd', 'e', 'value', 'list', 'total', 'größe', '$', '_'];
const maxDepth = 5;

/** Functions that have no `this` from around. */
const others = (list: string): string[] => [
  `function () { return [${list}]; }`,
  `{ method() { return [${list}]; } }.method`,
];

class Writer {
  readonly #random: Random;
  #text = '';
  /** True: a function or constructor is around. */
  #hasThis = false;

  constructor(random: Random) {
    this.#random = random;
  }

  program(): string {
    this.#text = '"use strict";(value_, out_) => {';
    this.#scope([], 0);
    return `${this.#text}}`;
  }

  #literal(): string {
    const { pick, integer } = this.#random;
    const one = integer(-5, 1000);
    return pick([
      `${one}`,
      `${one / 8}`,
      `"text ${one}"`,
      `[${one}]`,
      `{n: ${one}}`,
      `${one}n`,
      'undefined',
      'null',
      'true',
      '-0',
      'value_()',
      '2 ** 40',
      '() => 1',
    ]);
  }

  /** Declares variables in a new scope and fills it. `outer`: the names that are visible around it. */
  #scope(outer: readonly string[], depth: number): void {
    const { integer, pick } = this.#random;
    const own = new Set<string>();
    const assignable = new Set<string>();
    for (let count = integer(0, 5); count > 0; count -= 1) {
      const name = pick(pool);
      if (own.has(name)) continue;
      own.add(name);
      const kind = pick(['let', 'const', 'let', 'function', 'class']);
      if (kind === 'function') this.#text += `function ${name}() { return ${integer(0, 9)}; }`;
      else if (kind === 'class') this.#text += `class ${name} {}`;
      else this.#text += `${kind} ${name} = ${this.#literal()};`;
      if (kind === 'let') assignable.add(name);
    }
    const visible = [...new Set([...outer, ...own])];
    this.#makeFunction(visible, [...assignable]);
    for (let count = integer(0, depth < maxDepth ? 3 : 1); count > 0; count -= 1) {
      this.#inner(visible, depth + 1);
    }
  }

  #makeFunction(visible: readonly string[], assignable: readonly string[]): void {
    const { integer, pick } = this.#random;
    if (visible.length === 0) return;
    const names = [...new Set(Array.from({ length: integer(1, 6) }, () => pick(visible)))];
    const target = assignable.length > 0 ? pick(assignable) : undefined;
    const change = target === undefined ? '() => {}' : `(to_) => { ${target} = to_; }`;
    const isArrow = this.#hasThis && integer(0, 2) === 0;
    if (isArrow) names.push('this');
    const list = names.join(', ');
    const fn = pick([`() => [${list}]`, ...(isArrow ? [] : others(list))]);
    this.#text += `out_.push({ fn: ${fn}, names: ${JSON.stringify(names)}, change: ${change} });`;
  }

  #inner(visible: readonly string[], depth: number): void {
    const { pick, integer } = this.#random;
    const [name, other] = [pick(pool), pick(pool)];
    const withNames = (...names: readonly string[]): string[] => [
      ...new Set([...visible, ...names]),
    ];
    switch (pick(['block', 'loop', 'of', 'catch', 'function', 'arrow', 'named', 'class'])) {
      case 'block':
        this.#braces('{', visible, depth, '}');
        break;
      case 'loop':
        this.#braces(
          `for (let ${name} = 0; ${name} < ${integer(1, 3)}; ${name} += 1) {`,
          withNames(name),
          depth,
          '}',
        );
        break;
      case 'of':
        this.#braces(
          `for (const ${name} of [${this.#literal()}, 2]) {`,
          withNames(name),
          depth,
          '}',
        );
        break;
      case 'catch':
        this.#braces(
          `try { throw ${this.#literal()}; } catch (${name}) {`,
          withNames(name),
          depth,
          '}',
        );
        break;
      case 'function':
        if (name === other) break;
        this.#withThis(() =>
          this.#braces(
            `(function (${name}, {${other} = 4} = {}) {`,
            withNames(name, other),
            depth,
            `}).call(value_(), ${this.#literal()});`,
          ),
        );
        break;
      case 'arrow':
        this.#braces(`((${name} = 7) => {`, withNames(name), depth, '})();');
        break;
      case 'named':
        this.#withThis(() =>
          this.#braces(`(function ${name}(...rest_) {`, withNames(name), depth, '})(1, 2);'),
        );
        break;
      default:
        this.#withThis(() =>
          this.#braces('new (class { constructor() {', visible, depth, '} })();'),
        );
    }
  }

  #withThis(body: () => void): void {
    const outer = this.#hasThis;
    this.#hasThis = true;
    body();
    this.#hasThis = outer;
  }

  #braces(open: string, visible: readonly string[], depth: number, close: string): void {
    this.#text += open;
    // A parameter and a `let` of one name do not go together, so each body has a scope of its own.
    this.#text += '{';
    this.#scope(visible, depth);
    this.#text += `}${close}`;
  }
}

/** Runs a random program; returns its functions and its text. */
export function randomScopes(random: Random): { readonly made: Made[]; readonly text: string } {
  const text = new Writer(random).program();
  const made: Made[] = [];
  const run: unknown = vm.runInThisContext(text);
  if (typeof run !== 'function') throw new TypeError('the program is no function');
  let turn = 0;
  run(() => {
    turn += 1;
    return turn % 2 === 0 ? turn : `value ${turn}`;
  }, made);
  return { made, text };
}
