// Random programs with nested scopes: strict and sloppy scripts, and modules. Each makes functions at all depths of
// it, which return what they captured; other functions assign the variables in between. Names come from a small
// pool, so they hide each other. Arrows in functions and constructors also return `this`; some functions captured
// a variable whose declaration never runs.

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
/** Names of `var`, which no `let` may have in a block around it. */
const varPool = ['va', 'vb', 'vc'];
const maxDepth = 5;

/** A form of a program. */
export type Kind = 'strict' | 'sloppy' | 'module';

/** Functions that have no `this` from around. */
const others = (list: string): string[] => [
  `function () { return [${list}]; }`,
  `{ method() { return [${list}]; } }.method`,
];

const inners = [
  ...['block', 'loop', 'of', 'catch', 'function', 'arrow', 'named', 'class'],
  ...['generator', 'async', 'switch', 'default', 'unset', 'static'],
];

function pushOf(fn: string, names: readonly string[], change: string): string {
  return `out_.push({ fn: ${fn}, names: ${JSON.stringify(names)}, change: ${change} })`;
}

class Writer {
  readonly #random: Random;
  #text = '';
  /** True: a function or constructor is around. */
  #hasThis = false;

  constructor(random: Random) {
    this.#random = random;
  }

  program(kind: Kind): string {
    if (kind === 'module') {
      this.#text = 'const { value_, out_ } = globalThis.randomScopes_;';
      const own = this.#scope([], 0);
      const exported = own.filter(() => this.#random.integer(0, 2) === 0);
      return `${this.#text} export { ${exported.join(', ')} };`;
    }
    this.#text = `${kind === 'strict' ? '"use strict";' : ''}(value_, out_) => {`;
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

  /**
   * Declares variables in a new scope and fills it. `outer`: the names that are visible around it. Returns those of
   * the scope.
   */
  #scope(outer: readonly string[], depth: number): readonly string[] {
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
    if (integer(0, 3) === 0) {
      const name = pick(varPool);
      own.add(name);
      assignable.add(name);
      this.#text += `var ${name} = ${this.#literal()};`;
    }
    const visible = [...new Set([...outer, ...own])];
    this.#makeFunction(visible, [...assignable]);
    for (let count = integer(0, depth < maxDepth ? 3 : 1); count > 0; count -= 1) {
      this.#inner(visible, depth + 1);
    }
    return [...own];
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
    this.#text += `${pushOf(fn, names, change)};`;
  }

  #inner(visible: readonly string[], depth: number): void {
    const { pick, integer } = this.#random;
    const [name, other] = [pick(pool), pick(pool)];
    const withNames = (...names: readonly string[]): string[] => [
      ...new Set([...visible, ...names]),
    ];
    switch (pick(inners)) {
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
      case 'generator':
        this.#withThis(() =>
          this.#braces(
            `for (const ${other} of (function* (${name}) {`,
            withNames(name),
            depth,
            `yield 1; }).call(value_(), ${this.#literal()})) { void ${other}; }`,
          ),
        );
        break;
      case 'async':
        this.#braces(`(async (${name}) => {`, withNames(name), depth, `})(${this.#literal()});`);
        break;
      case 'switch':
        this.#braces(
          `switch (0) { case 0: let ${name} = ${this.#literal()}; default: {`,
          withNames(name),
          depth,
          '} }',
        );
        break;
      case 'default': {
        if (name === other) break;
        const made = pushOf(`() => [${name}]`, [name], `(to_) => { ${name} = to_; }`);
        this.#braces(
          `((${name}, ${other} = (${made}, 3)) => {`,
          withNames(name, other),
          depth,
          `})(${this.#literal()});`,
        );
        break;
      }
      case 'unset':
        this.#text += `unset_: { ${pushOf(`() => [${name}]`, [name], '() => {}')};`;
        this.#text += `break unset_; let ${name} = 1; }`;
        break;
      case 'static':
        this.#withThis(() =>
          this.#braces(`(class ${name} { static {`, withNames(name), depth, '} });'),
        );
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
export async function randomScopes(
  random: Random,
  kind: Kind,
): Promise<{ readonly made: Made[]; readonly text: string }> {
  const text = new Writer(random).program(kind);
  const made: Made[] = [];
  let turn = 0;
  const value = (): unknown => {
    turn += 1;
    return turn % 2 === 0 ? turn : `value ${turn}`;
  };
  if (kind === 'module') {
    Reflect.set(globalThis, 'randomScopes_', { value_: value, out_: made });
    await import(`data:text/javascript,${encodeURIComponent(text)}`);
    return { made, text };
  }
  const run: unknown = vm.runInThisContext(text);
  if (typeof run !== 'function') throw new TypeError('the program is no function');
  run(value, made);
  return { made, text };
}
