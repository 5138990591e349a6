// Random programs with classes, as text: members of every kind, inheritance with cycles of names, and changes
// between calls (patches, decorators, accessors, symbols, statics, deletions). A program returns a probe,
// which describes its classes completely, and the changes to make one after another.
// Not here: running them here and there (programs.test.ts).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the programs, not of this file

import type { Random } from '../support/index.js';

export interface Program {
  /** The present visible state, as text. */
  readonly probe: () => unknown;
  readonly changes: readonly (() => void)[];
}

/**
 * First lines of each module of programs: `see` describes classes and an instance of each. Texts are cut:
 * those of a call that calls itself until the stack is full double their escapes at each level.
 */
export const prelude = `
const attempt = (body) => {
  try {
    const value = body();
    if (typeof value === 'function') return 'function ' + value.name;
    if (typeof value === 'symbol') return String(value);
    if (typeof value === 'object' && value !== null) {
      if (typeof value.next === 'function') return 'iterator ' + JSON.stringify([...value]);
      if (value instanceof Map) return 'Map ' + JSON.stringify([...value]);
      return Object.getPrototypeOf(value) === Object.prototype || Array.isArray(value)
        ? JSON.stringify(value).slice(0, 300) : 'instance of ' + value.constructor?.name;
    }
    return typeof value + ' ' + String(value);
  } catch (error) {
    return 'throws ' + error.name + ': ' + error.message.replace(/receiver .*|of object .*/, '');
  }
};
const seeSide = (holder, self) => Reflect.ownKeys(holder).filter((key) => key !== 'stack').map((key) => {
  const { value, get, set, writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(holder, key);
  const call = (fn) => key === 'constructor' || key === 'prototype' ? '' : attempt(() => Reflect.apply(fn, self, [2, 3]));
  return [
    String(key), writable, enumerable, configurable,
    typeof value === 'function' ? [value.name, value.length, call(value)] : attempt(() => value),
    get && [get.name, call(get)], set && [set.name, call(set)],
  ];
}).sort((a, b) => a[0] < b[0] ? -1 : 1);
const see = (...classes) => classes.map((C) => {
  let made;
  const trouble = attempt(() => { made = new C(4); return 'made'; });
  return [
    C.name, C.length, Object.isFrozen(C), Object.isFrozen(C.prototype), trouble,
    seeSide(C, C), seeSide(C.prototype, made), made && seeSide(made, made),
    classes.map((D) => [C.prototype instanceof D, attempt(() => made instanceof D), Object.getPrototypeOf(C) === D]),
  ];
});
const swap = (value) => value;
`;

const keys = ['a', 'b', 'c', "'d e'", '12', '[K]', '[S]', '[`t${K}`]', '[Symbol.toStringTag]'];
const names = ['A', 'B', 'C'] as const;

/** The text of a function that makes a \`Program\`. */
export function programText(random: Random): string {
  const count = random.integer(1, names.length + 1);
  const used = names.slice(0, count);
  const shapes = used.map((name, at) =>
    classText(random, name, at === 0 ? undefined : used[at - 1], used),
  );
  const changes = Array.from({ length: random.integer(0, 4) }, () => changeText(random, used));
  return `() => {
  const K = ${random.pick(["'k'", "'a'", "'other'"])};
  const S = ${random.pick(["Symbol('s')", "Symbol.for('s')", 'Symbol.iterator'])};
  let n = 1;
  ${shapes.join('\n  ')}
  return {
    probe: () => see(${used.join(', ')}),
    changes: [${changes.map((text) => `() => { ${text} }`).join(', ')}],
  };
}`;
}

function classText(
  random: Random,
  name: string,
  base: string | undefined,
  all: readonly string[],
): string {
  const members = Array.from({ length: random.integer(0, 6) }, () => memberText(random, base, all));
  const isOwn = random.next() < 0.3;
  if (isOwn) {
    members.push(
      `constructor(x) { ${base === undefined ? '' : 'super(x);'} this.x = x; this.own = () => [this.x, n]; }`,
    );
  }
  if (random.next() < 0.2)
    members.push(
      `static #p = ${random.pick(['0', '[1]', "'p'", '() => 5'])}; static takeP() { return ${name}.#p; }`,
    );
  if (random.next() < 0.1)
    members.push('static #q = 0; static countQ() { return (this.#q += 1); }');
  if (random.next() < 0.2) members.push('#m(y) { return y + 1; } callM() { return this.#m(1); }');
  const heritage =
    base === undefined
      ? random.pick(['', '', '', ' extends Array', ' extends Error', ' extends Map'])
      : random.pick([` extends ${base}`, ` extends ${base}`, ` extends swap(${base})`, '']);
  const isDerived = heritage !== '';
  const body = members.map((text) =>
    isDerived || !text.startsWith('constructor') ? text : text.replace('super(x);', ''),
  );
  const fixed = body.map((text) =>
    text.startsWith('constructor') && isDerived && !text.includes('super(')
      ? text.replace('{ ', '{ super(); ')
      : text,
  );
  const supers = heritage === '' ? fixed.map((text) => text.replaceAll('super.', 'this.')) : fixed;
  const form = random.pick(['declaration', 'declaration', 'named', 'anonymous']);
  const inner = ` ${heritage} {\n    ${supers.join('\n    ')}\n  }`;
  if (form === 'declaration') return `class ${name}${inner}`;
  return `const ${name} = class ${form === 'named' ? `${name}_` : ''}${inner};`.replaceAll(
    `${name}.#`,
    'this.#',
  );
}

function memberText(random: Random, base: string | undefined, all: readonly string[]): string {
  const key = random.pick(keys);
  const prefix = random.pick(['', '', 'static ']);
  const other = random.pick(all);
  const body = random.pick([
    'return n + x;',
    "return 'text';",
    `return typeof ${other};`,
    `return this instanceof ${other};`,
    'return typeof this;',
    `return ${base === undefined ? '1' : 'super.a?.(x)'};`,
    "'use strict'; return arguments.length;",
  ]);
  switch (random.integer(0, 11)) {
    case 0:
      return `${prefix}${key}(x, y = 1) { ${body} }`;
    case 1:
      return `${prefix}get ${key}() { const x = 1; ${body} }`;
    case 2:
      return `${prefix}set ${key}(x) { ${body} }`;
    case 3:
      return `${prefix}get ${key}() { return n; } ${prefix}set ${key}(v) { void v; }`;
    case 4:
      return `${prefix}*${key}(x) { yield x; yield n; }`;
    case 5:
      return `static ${random.pick(['f', 'g', '[`f${K}`]'])} = ${random.pick(['1', "'s'", '[1, { a: 2 }]', 'new Map([[1, 2]])', 'S', 'n++', '(x) => x + n', '() => typeof this', 'function (x) { return x; }', `{ h: () => typeof this }`])};`;
    case 6:
      return `static { ${random.pick(['n += 1;', 'this.block = n;', "const old = this.prototype.a; this.prototype.a = function (...args) { return ['w', old?.apply(this, args)]; };", 'Object.defineProperty(this, "hid", { value: 7 });'])} }`;
    case 7:
      return `${random.pick(['i', 'j', "'k l'"])} = ${random.pick(['1', '[n]', '() => this.x ?? n', '{ deep: [() => this.i ?? 3] }', '(x) => x'])};`;
    case 8:
      return `static ${random.pick(['name', 'length'])} ${random.pick(['() { return 9; }', "= 'own';"])}`;
    case 9:
      return `make() { return new ${other}(1); }`;
    default:
      return `${prefix}async ${key}(x) { ${body} }`.replace('async', random.pick(['', '*']));
  }
}

function changeText(random: Random, all: readonly string[]): string {
  const name = random.pick(all);
  const other = random.pick(all);
  const side = random.pick([name, `${name}.prototype`]);
  const key = random.pick(["'a'", "'b'", "'f'", 'K', 'S', "'late'", 'Symbol.toStringTag']);
  const value = random.pick([
    '() => n',
    "'patched'",
    'function (x) { return [typeof this, x]; }',
    '7',
    '[3]',
    `${other}.prototype.a`,
    'new Map([[n, 1]])',
  ]);
  return random.pick([
    `Reflect.set(${side}, ${key}, ${value});`,
    `Reflect.defineProperty(${side}, ${key}, { value: ${value}, configurable: true });`,
    `Reflect.defineProperty(${side}, ${key}, { get: () => n, configurable: true });`,
    `Reflect.defineProperty(${side}, ${key}, { get: () => n, set: undefined });`,
    `Reflect.defineProperty(${side}, ${key}, { value: ${value}, writable: false });`,
    `Reflect.defineProperty(${side}, ${key}, { set() {}, get: undefined });`,
    `Reflect.deleteProperty(${side}, ${key});`,
    `Object.seal(${side});`,
    `const old = ${side}[${key}]; Reflect.set(${side}, ${key}, function (...args) { return ['wrapped', typeof old === 'function' ? attempt(() => old.apply(this, args)) : String(old)]; });`,
    `if (Array.isArray(${name}.f)) ${name}.f.push(n);`,
    `Reflect.defineProperty(${name}, 'name', { value: 'Renamed', configurable: true });`,
    `Object.freeze(${side});`,
    `Reflect.setPrototypeOf(${name}.prototype, { inherited: () => n });`,
    `Reflect.defineProperty(${name}.prototype, 'constructor', { value: Object });`,
    'n += 1;',
    `${name}.takeP?.(); ${name}.countQ?.();`,
  ]);
}
