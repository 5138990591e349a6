// The package in a context of node:vm, as Jest and the vmThreads of Vitest load it: with globals of its own,
// and a require() that loads no ES modules.

import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import type * as Manycore from '../../../src/public.js';
import { loaderFor } from '../toolchains/runner-loader.js';
import { nodeGlobals } from './node-globals.js';

const bundle = fileURLToPath(new URL('../../../bundle/', import.meta.url));

/** Modules as Jest compiled them: the content of their files is no CommonJS. */
const ownFolder = join(tmpdir(), `manycore-realms-${process.pid}`);
const ownText: Record<string, string> = {
  'own.js': `
  Object.defineProperty(exports, '__esModule', { value: true });
  exports.registry = new WeakMap();
  const step = 2;
  exports.double = (n) => n * step;
  exports.Account = class Account { constructor(n) { this.n = n } more() { return new Account(this.n + 1) } };`,
  'double.js': 'exports.double = (n) => n * 2',
  // Istanbul's coverage gives each module such `counts`.
  'counted.js':
    'const counts = { f: [0] }; exports.double = (n) => { counts.f[0] += 1; return n * 2 }',
};

const textOf = (file: string): string | undefined => ownText[relative(ownFolder, file)];

before(() => {
  mkdirSync(ownFolder, { recursive: true });
  for (const name of Object.keys(ownText)) {
    writeFileSync(join(ownFolder, name), 'throw new Error("not as Jest compiled it")');
  }
});
after(() => rmSync(ownFolder, { recursive: true }));

/** The package in a context of its own, and a way to evaluate text beside it. */
function realm(t: TestContext) {
  const context = vm.createContext(nodeGlobals());
  const requireFrom = loaderFor(context, { textOf });
  const library: unknown = requireFrom(join(bundle, 'x.cjs'))('./index.cjs');
  assert.ok(isLibrary(library));
  const pool = new library.Pool({ size: 1 });
  t.after(() => pool.close());
  /** Calls `text`, which is a function of `run`, `library` and `require`. */
  const evaluate = async (text: string): Promise<unknown> => {
    const filename = join(ownFolder, 'app.js');
    const fn: unknown = vm.runInContext(`(${text})`, context, { filename });
    assert.ok(typeof fn === 'function');
    return Reflect.apply(fn, undefined, [pool.run.bind(pool), library, requireFrom(filename)]);
  };
  return { evaluate, context };
}

function isLibrary(value: unknown): value is typeof Manycore {
  return typeof value === 'object' && value !== null && 'Pool' in value && 'run' in value;
}

test('a function in a context of node:vm travels with what it captured', async (t) => {
  const { evaluate } = realm(t);
  assert.equal(await evaluate('(run) => { let k = 20; k += 1; return run((x) => k * x, 2) }'), 42);
});

test('the CommonJS entry has what the ES module has, and its workers run', async (t) => {
  const { evaluate } = realm(t);
  const exported = await import('../../../src/public.js');
  const found = await evaluate('(run, library) => Object.keys(library).sort()');
  assert.deepEqual(JSON.stringify(found), JSON.stringify(Object.keys(exported).sort()));
});

test('a global that was set in the context travels as one that was set in the program', async (t) => {
  const { evaluate, context } = realm(t);
  vm.runInContext('globalThis.limit = 7', context);
  assert.equal(await evaluate('(run) => run(() => limit + 1)'), 8);
});

test('a global of Node that a runner gave to the context is that of the worker', async (t) => {
  const { evaluate } = realm(t);
  assert.notEqual(await evaluate('(run) => run(() => process.pid)'), process.pid);
  assert.equal(await evaluate('(run) => run(() => Buffer.from("a").length + [URL].length)'), 2);
});

test('an arrow in a context of node:vm takes along the `this` around it', async (t) => {
  const { evaluate } = realm(t);
  const text = `(run) => {
    class Report { title = 'figures'; lines(start) { return start(() => this.title) } }
    return new Report().lines(run);
  }`;
  assert.equal(await evaluate(text), 'figures');
});

test('a class, a bound function and a generator travel from a context of node:vm', async (t) => {
  const { evaluate } = realm(t);
  const text = `async (run) => {
    class Secret { #v; constructor(v) { this.#v = v } get twice() { return this.#v * 2 } }
    const add = (function (a, b) { return this.base + a + b }).bind({ base: 1 }, 2);
    const items = [];
    for await (const item of await run(function* () { yield 1; yield 2 })) items.push(item);
    return JSON.stringify([await run(() => new Secret(4).twice), await run(() => add(3)), items]);
  }`;
  assert.equal(await evaluate(text), '[8,6,[1,2]]');
});

test('an error of a task is one of the context, with its code', async (t) => {
  const { evaluate } = realm(t);
  const text = `async (run) => {
    const failed = await run(() => { throw new RangeError('too far') }).catch((error) => error);
    const refused = await run(async () => 1, new WeakMap()).catch((error) => error);
    return [failed instanceof RangeError, failed.message, refused instanceof Error, refused.code].join();
  }`;
  assert.equal(await evaluate(text), 'true,too far,true,TRANSFER_UNSUPPORTED');
});

const ofOwnModule: Record<string, readonly [text: string, expected: unknown]> = {
  'an object that a module exports': [
    "(run, library, require) => { const own_1 = require('./own.js'); return run((n) => own_1.double(n), 21) }",
    42,
  ],
  'a function of a module': [
    "(run, library, require) => { const { double } = require('./own.js'); return run((n) => double(n), 21) }",
    42,
  ],
  'an instance of a class of a module': [
    `(run, library, require) => {
      const { Account } = require('./own.js'), a = new Account(1); return run(() => a.more().n) }`,
    2,
  ],
  'a module with state that is required inside': [
    `(run, library, require) => run(async (n) => {
      const { double } = await Promise.resolve().then(() => require('./counted.js')); return double(n) }, 4)`,
    8,
  ],
  'a module that is required inside': [
    `(run, library, require) => run(async (n) => {
      const { double } = await Promise.resolve().then(() => require('./double.js')); return double(n) }, 4)`,
    8,
  ],
};

for (const [what, [text, expected]] of Object.entries(ofOwnModule)) {
  test(`a module that only its loader can compile travels by value: ${what}`, async (t) => {
    const { evaluate } = realm(t);
    assert.equal(await evaluate(text), expected);
  });
}

const ofTheLanguage: Record<string, readonly [text: string, className: string]> = {
  'an Array': ['[1, [2]]', 'Array'],
  'an Object': ['({ a: 1 })', 'Object'],
  'a Map': ['new Map([[1, 2]])', 'Map'],
  'a Set': ['new Set([1])', 'Set'],
  'a Date': ['new Date(0)', 'Date'],
  'a RegExp': ['/a/g', 'RegExp'],
  'a boxed number': ['Object(1)', 'Number'],
  'an Error': ['new RangeError("x")', 'RangeError'],
  'a typed array': ['new Float64Array([1])', 'Float64Array'],
  'an ArrayBuffer': ['new ArrayBuffer(2)', 'ArrayBuffer'],
};

test('a result has the classes of the context, at each depth', async (t) => {
  const { evaluate } = realm(t);
  for (const [what, [value, name]] of Object.entries(ofTheLanguage)) {
    const text = `async (run) => {
      const whole = await run(() => ${value});
      const deep = await run(() => new Map([[{ a: [new Set([${value}])] }, ${value}]]));
      const mixed = await run(() => ({ method() {}, held: ${value} }));
      const [key, inMap] = [...deep][0];
      const found = [whole, mixed.held, inMap, [...key.a[0]][0]];
      return found.map((each) => Object.getPrototypeOf(each) === ${name}.prototype).join();
    }`;
    assert.equal(await evaluate(text), 'true,true,true,true', what);
  }
});

test('a function that a worker sent runs with the globals of the context, at its place', async (t) => {
  const { evaluate, context } = realm(t);
  vm.runInContext('globalThis.limit = 7', context);
  const text = `async (run) => {
    const fn = await run(() => (list) => [list instanceof Array, new Map(), limit, new Error().stack]);
    const [isArray, map, number, stack] = fn([1]);
    return [fn instanceof Function, isArray, map instanceof Map, number, /:2:\\d+/.test(stack)].join();
  }`;
  assert.equal(await evaluate(text), 'true,true,true,7,true');
});
