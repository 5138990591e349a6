// The package in a context of node:vm, as Jest and the vmThreads of Vitest load it: with globals of
// its own, and a require() that knows no ES modules.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import type * as Manycore from '../../src/index.js';

const bundle = fileURLToPath(new URL('../../bundle/', import.meta.url));

/** Loads CommonJS modules into `context`; an ES module is refused as Jest does. */
function loaderFor(context: vm.Context): (file: string) => unknown {
  const load = (file: string): unknown => {
    const module: { exports: unknown } = { exports: {} };
    const fromNode = createRequire(file);
    const require = (specifier: string): unknown => {
      if (isBuiltin(specifier) || !specifier.startsWith('.')) return fromNode(specifier);
      if (specifier.endsWith('.cjs')) return load(join(dirname(file), specifier));
      throw Object.assign(new Error('Must use import'), { code: 'ERR_REQUIRE_ESM' });
    };
    const parameters = ['module', 'exports', 'require', '__filename', '__dirname'];
    const options = { filename: file, parsingContext: context };
    const body: unknown = vm.compileFunction(readFileSync(file, 'utf8'), parameters, options);
    assert.ok(typeof body === 'function');
    Reflect.apply(body, undefined, [module, module.exports, require, file, dirname(file)]);
    return module.exports;
  };
  return load;
}

/** The globals of Node that Jest gives each context, by what is missing there. */
function nodeGlobals(): Record<string, unknown> {
  const ofLanguage = new Set<unknown>(vm.runInNewContext('Object.getOwnPropertyNames(globalThis)'));
  const names = Object.getOwnPropertyNames(globalThis).filter((name) => !ofLanguage.has(name));
  return Object.fromEntries(names.map((name) => [name, Reflect.get(globalThis, name)]));
}

/** The package in a context of its own, and a way to evaluate text beside it. */
function realm(t: TestContext) {
  const context = vm.createContext(nodeGlobals());
  const library: unknown = loaderFor(context)(join(bundle, 'index.cjs'));
  assert.ok(isLibrary(library));
  const pool = new library.Pool({ size: 1 });
  t.after(() => pool.close());
  /** Calls `text`, which is a function of `run` and `library`. */
  const evaluate = async (text: string): Promise<unknown> => {
    const fn: unknown = vm.runInContext(`(${text})`, context);
    assert.ok(typeof fn === 'function');
    return Reflect.apply(fn, undefined, [pool.run.bind(pool), library]);
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

test('the CommonJS entry has what the ES module has, and its hosts run', async (t) => {
  const { evaluate } = realm(t);
  const exported = await import('../../src/index.js');
  const found = await evaluate('(run, library) => Object.keys(library).sort()');
  assert.deepEqual(JSON.stringify(found), JSON.stringify(Object.keys(exported).sort()));
});

test('a global that was set in the context travels as one that was set in the program', async (t) => {
  const { evaluate, context } = realm(t);
  vm.runInContext('globalThis.limit = 7', context);
  assert.equal(await evaluate('(run) => run(() => limit + 1)'), 8);
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
