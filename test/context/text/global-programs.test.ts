// Random sets of functions that use globals of the program in every spelling: the same result as at home,
// where all functions see one global scope. `MANYCORE_RUNS=n` makes that many programs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import vm from 'node:vm';
import { type Random, random } from '../../support/index.js';
import { Peer } from '../harness.js';

const peer = new Peer();
before(() => Object.assign(globalThis, { window: globalThis, self: globalThis }));
after(() => {
  peer.close();
  for (const name of ['window', 'self']) Reflect.deleteProperty(globalThis, name);
});

/** Expressions for the global object. */
const objects = [
  'globalThis',
  'globalThis',
  'global',
  'g',
  'window',
  'self',
  'globalThis.window',
  "(typeof window !== 'undefined' ? window : globalThis)",
  "(typeof mcgNone === 'object' && mcgNone || self)",
];
/** `o`: an expression for the global object, `key`: one for the key of a global. */
const keyReads: readonly ((o: string, key: string) => string)[] = [
  (o, key) => `out.push(${o}[${key}])`,
  (o, key) => `out.push(${o}?.[${key}] ?? 'none')`,
  (o, key) => `{ const { [${key}]: v = 'none' } = ${o}; out.push(v) }`,
  (o, key) => `{ let v; const all = ({ [${key}]: v } = ${o}); out.push(v, all === globalThis) }`,
  (o, key) => `out.push(${key} in ${o})`,
  (o, key) => `out.push(Reflect.has(${o}, ${key}), Object.hasOwn(${o}, ${key}))`,
  (o, key) => `out.push(${o}.hasOwnProperty(${key}), Reflect.get(${o}, ${key}))`,
  (o, key) => `((root) => { out.push(root[${key}]) })(${o})`,
  (o, key) => `{ const root = ${o}, k = ${key}; out.push(root[k], k in root) }`,
];
const keyWrites: readonly ((o: string, key: string, value: string) => string)[] = [
  (o, key, value) => `out.push(${o}[${key}] = ${value})`,
  (o, key, value) => `${o}[${key}] += ${value}`,
  (o, key, value) => `${o}[${key}] ||= ${value}`,
  (o, key, value) => `(${o}[${key}]) ??= ${value}`,
  (o, key) => `${o}[${key}]++`,
  (o, key) => `out.push(--${o}[${key}], ${o}[${key}]--)`,
  (o, key, value) => `Reflect.set(${o}, ${key}, ${value})`,
  (o, key, value) =>
    `out.push(Object.defineProperty(${o}, ${key}, { value: ${value}, writable: true, enumerable: true, configurable: true }) === globalThis)`,
  (o, key, value) => `[${o}[${key}]] = [${value}]`,
  (o, key, value) => `for (${o}[${key}] of [0, ${value}]) out.push(${o}[${key}])`,
  (o, key) => `delete ${o}[${key}]`,
  (o, key) => `out.push(delete ${o}?.[${key}])`,
  (o, key) => `Reflect.deleteProperty(${o}, ${key})`,
  (o, key, value) => `Object.assign(globalThis, { absent_mcg: ${value} }), out.push(${o}[${key}])`,
];
/** The same by names of variables. */
const reads: readonly ((name: string) => string)[] = [
  (name) => `out.push(globalThis.${name})`,
  (name) => `out.push(typeof ${name}, typeof ${name} === 'undefined' ? 'none' : ${name})`,
  (name) => `{ const { ${name} = 'none' } = globalThis; out.push(${name}) }`,
  (name) =>
    `{ let ${name}; const all = ({ ${name} } = global); out.push(${name}, all === globalThis) }`,
  (name) => `out.push(Reflect.get(globalThis, '${name}'), g.${name}, window.${name})`,
];
const writes: readonly ((name: string, value: string) => string)[] = [
  (name, value) => `out.push(globalThis.${name} = ${value})`,
  (name, value) => `(globalThis.${name}) ??= ${value}`,
  (name) => `globalThis.${name}++`,
  (name) => `out.push(--g.${name}, global.${name}--)`,
  (name, value) => `({ x: globalThis.${name} = ${value} } = {})`,
  (name) => `out.push(delete globalThis?.${name})`,
  (name, value) => `globalThis.${name} = globalThis[key_${name}] = ${value}`,
];
/** Writes that need sloppy code, or a global that exists. */
const bareWrites: readonly ((name: string, value: string) => string)[] = [
  (name, value) => `if (typeof ${name} !== 'undefined') ${name} = ${value}`,
  (name, value) => `if ('${name}' in globalThis) ${name} += ${value}`,
];
const methods = [
  `function () { 'use strict'; return [this === globalThis, typeof this] }`,
  `function () { return this === globalThis }`,
  `(...args) => args.length`,
  `function (first) { return [this === globalThis, Array.isArray(first)] }`,
  `{ of: class { static make(x) { return [this.name, x] } } }.of.make`,
];
const calls: readonly ((name: string) => string)[] = [
  (name) => `globalThis.${name}(1)`,
  (name) => `globalThis.${name}?.(2)`,
  (name) => `(globalThis?.${name})(3)`,
  (name) => `g.${name}\`x\``,
  (name) => `globalThis.absent_${name}?.(4)`,
  (name) => `global['${name}'].call(globalThis, 5)`,
];

interface Program {
  readonly text: string;
  readonly names: readonly (string | symbol)[];
}

/** A key that does not appear in the text, and a test whether a program has one. */
const computed = (key: string): string => `computed(${key})`;

function program(from: Random, serial: number): Program {
  const names = [0, 1].map((at) => `mcg${serial}_${at}`);
  const method = `mcg${serial}_f`;
  const [odd, symbol] = [`mcg-${serial}`, Symbol.for(`mcg${serial}`)];
  const shownSymbol = `Symbol.for('mcg${serial}')`;
  const keys = [`'${odd}'`, 'key_odd', shownSymbol, 'key_symbol'];
  for (const name of names) keys.push(`'${name}'`, `key_${name}`);
  const statement = (isSloppy: boolean): string => {
    const name = from.pick(names);
    const value = String(from.integer(1, 9));
    const at = from.next();
    if (at < 0.1) return `out.push(${from.pick(calls)(method)})`;
    if (at < 0.6) {
      const key = at < 0.14 ? computed(from.pick(keys)) : from.pick(keys);
      const o = from.pick(objects);
      if (from.next() < 0.5) return from.pick(keyReads)(o, key);
      return from.pick(keyWrites)(o, key, value);
    }
    if (at < 0.77) return from.pick(reads)(name);
    if (at < 0.9) return from.pick(writes)(name, value);
    return isSloppy ? from.pick(bareWrites)(name, value) : from.pick(reads)(name);
  };
  const body = (isSloppy: boolean): string =>
    `{ const out = []${Array.from({ length: from.integer(1, 5) }, () => {
      const text = statement(isSloppy);
      return `\n${/^\w/.test(text) ? '' : ';'}${text}`; // a line that begins with a name needs no ;
    }).join('')}
return out }`;
  const shapes: readonly (() => string)[] = [
    () => `() => ${body(true)}`,
    () => `function () { 'use strict'; const g = globalThis; return (() => ${body(false)})() }`,
    () => `new (class { m() ${body(false)} })().m`,
    () => `{ x() ${body(true)} }.x`,
  ];
  const functions = Array.from({ length: from.integer(1, 4) }, () => `(${from.pick(shapes)()})`);
  const main = `(...more) => [fs.map((f) => f()), more.map((f) => f()), (() => ${body(true)})()]`;
  const ofMethod = from.pick(methods);
  return {
    names: [...names, method, odd, symbol],
    text: `(() => {
const g = globalThis;
const computed = (key) => key;
const ${names.map((name) => `key_${name} = '${name}'`).join()}, key_odd = '${odd}', key_symbol = ${shownSymbol};
const fs = [${functions.join()}], args = [${from.next() < 0.3 ? `() => ${body(true)}` : ''}];
return { main: ${main}, args, method: (${ofMethod}) };
})()`,
  };
}

interface Made {
  readonly main: (...more: (() => unknown)[]) => unknown;
  readonly args: readonly (() => unknown)[];
  readonly method: unknown;
}

async function evaluate(text: string, isStrict: boolean): Promise<Made> {
  if (!isStrict) return vm.runInThisContext(text);
  return (await import(`data:text/javascript,export default ${encodeURIComponent(text)}`)).default;
}

test('functions of a call see one global scope', async (t) => {
  const from = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 20);
  let refusals = 0;
  for (let serial = 0; serial < runs; serial += 1) {
    const { text, names } = program(from, serial);
    const { main, args, method } = await evaluate(text, from.next() < 0.6);
    const values = [
      [1, 'one', { a: 1 }, undefined][from.integer(0, 4)],
      from.pick([2, 0]),
      method,
      3,
      'four',
    ];
    const reset = (): void => {
      Reflect.deleteProperty(globalThis, 'absent_mcg');
      for (const [at, name] of names.entries()) {
        const value: unknown = structuredCloneOf(values[at]);
        const descriptor = { value, writable: true, enumerable: true, configurable: true };
        if (at !== 1 || values[1] === 2) Object.defineProperty(globalThis, name, descriptor);
        else Reflect.deleteProperty(globalThis, name);
      }
    };
    reset();
    const home = seen(() => main(...args));
    reset();
    const there = await peer.run(main, ...args).then(
      (result) => seen(() => result),
      (error: unknown) => `${error}`,
    );
    for (const name of [...names, 'absent_mcg']) Reflect.deleteProperty(globalThis, name);
    // A computed key of a global of the program is refused, and nothing else is.
    if (text.includes('computed(') && /path: globalThis[.[]/.test(there)) refusals += 1;
    else assert.equal(there, home, text);
  }
  t.diagnostic(`${refusals} of ${runs} programs were refused`);
});

function structuredCloneOf(value: unknown): unknown {
  return typeof value === 'function' ? value : structuredClone(value);
}

function seen(body: () => unknown): string {
  try {
    return JSON.stringify(body(), (_key, value) => (value === undefined ? 'undefined' : value));
  } catch (error) {
    return `${error}`;
  }
}
