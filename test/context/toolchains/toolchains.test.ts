// Functions as test runners and compilers hand them over: imports behind the names of Vite, helpers of
// TypeScript, Babel and swc. Long (over 400 lines): one table. The real tools run in npm run test:runners.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { closureReader } from '../../../src/context/closures/closure-reader.js';
import { loadModule, openedDefault } from '../../../src/context/decode/modules.js';
import { generatorOf } from '../../../src/worker/index.js';
import { Peer } from '../harness.js';

const peer = new Peer();
const folder = mkdtempSync(join(tmpdir(), 'manycore-toolchains-'));
after(() => {
  peer.close();
  rmSync(folder, { recursive: true, force: true });
});

const packages = join(folder, 'node_modules');
mkdirSync(join(packages, 'shapes'), { recursive: true });
mkdirSync(join(packages, 'vitest'), { recursive: true });
mkdirSync(join(folder, 'src'));
const cjs =
  'const kept = new WeakMap(); module.exports = Object.assign(() => 1, { area: (a) => a * a, keep: (o) => kept.set(o, 1) });';
writeFileSync(join(packages, 'shapes/index.cjs'), cjs);
writeFileSync(join(packages, 'vitest/index.mjs'), 'export const expect = () => {};');
writeFileSync(join(folder, 'src/helper.mjs'), 'export const twice = (n) => n * 2;');
writeFileSync(join(folder, 'src/broken.mjs'), 'export const twice: (n) => number;');

/** Adds exports that Node does not find, as vite-node does. */
function interop(namespace: Record<string, unknown>): unknown {
  const other: unknown = namespace['default'];
  return new Proxy(namespace, {
    get: (target, name) =>
      Reflect.get(target, name) ??
      (other === undefined ? undefined : Reflect.get(Object(other), name)),
  });
}

/** A module of the user as Vite compiles it: exports are getters. */
function ownModule(): object {
  const module = vm.runInThisContext(`(() => {
    const exports = {};
    let calls = 1;
    const registry = new WeakMap();
    const add = (n) => n + calls;
    Object.defineProperty(exports, 'add', { enumerable: true, get: () => add });
    Object.defineProperty(exports, 'registry', { enumerable: true, get: () => registry });
    return exports;
  })()`);
  assert.ok(typeof module === 'object');
  return module;
}

/** The result of `text`, the body of a module that Vite compiled. */
async function viteModule(text: string): Promise<unknown> {
  const load = async (source: string): Promise<unknown> => {
    if (source.startsWith('/src/')) return ownModule();
    const url = source.startsWith('node:')
      ? source
      : pathToFileURL(source.replace('/@fs', '')).href;
    return interop(await import(url));
  };
  const env = new Proxy(
    { MODE: 'test', DEV: '1' },
    { get: (o, k) => (k === 'DEV' ? true : Reflect.get(o, k)) },
  );
  const url = 'file:///src/app.js';
  const meta = { url, env, resolve: (name: string) => new URL(name, url).href };
  const dynamic = (source: string): Promise<unknown> =>
    import(pathToFileURL(join(folder, source)).href);
  const run: unknown = vm.runInThisContext(
    `'use strict';async (__vite_ssr_import__,__vite_ssr_dynamic_import__,__vite_ssr_import_meta__) => {${text}}`,
    { filename: join(folder, 'src/app.js') },
  );
  assert.ok(typeof run === 'function');
  return Reflect.apply(run, undefined, [load, dynamic, meta]);
}

const lodashLike = `"/@fs${packages}/shapes/index.cjs", {"importedNames":["area"]}`;

const viteCases: [title: string, text: string, expected: unknown][] = [
  [
    'a builtin by name',
    'const __vite_ssr_import_0__ = await __vite_ssr_import__("node:path");\nreturn () => (0,__vite_ssr_import_0__.basename)("/a/b")',
    'b',
  ],
  [
    'a builtin by default',
    'const __vi_import_0__ = await __vite_ssr_import__("node:path");\nreturn () => __vi_import_0__.default.basename("/a/b")',
    'b',
  ],
  [
    'a builtin as namespace',
    'const __vite_ssr_import_0__ = await __vite_ssr_import__("node:os");\nreturn () => { const os = __vite_ssr_import_0__; return typeof os.cpus + typeof os.default }',
    'functionobject',
  ],
  [
    'a package by default',
    `const __vite_ssr_import_0__ = await __vite_ssr_import__(${lodashLike});\nreturn () => __vite_ssr_import_0__.default.area(3)`,
    9,
  ],
  [
    'a package by a name that Node does not find',
    `const __vite_ssr_import_0__ = await __vite_ssr_import__(${lodashLike});\nreturn () => (0,__vite_ssr_import_0__.area)(3)`,
    9,
  ],
  [
    'the exports that it uses of an own module',
    'const __vite_ssr_import_0__ = await __vite_ssr_import__("/src/own.js");\nreturn () => (0,__vite_ssr_import_0__.add)(2)',
    3,
  ],
  [
    'import.meta.resolve',
    'return () => [__vite_ssr_import_meta__.resolve("./b.js"), __vite_ssr_import_meta__.resolve("node:fs"), typeof __vite_ssr_import_meta__.vitest].join()',
    'file:///src/b.js,node:fs,undefined',
  ],
  [
    'import.meta',
    'return () => [__vite_ssr_import_meta__.url, __vite_ssr_import_meta__.env.MODE, __vite_ssr_import_meta__.env.DEV].join()',
    'file:///src/app.js,test,true',
  ],
  [
    'import() of an own module',
    'return async (n) => (await __vite_ssr_dynamic_import__("/src/helper.mjs")).twice(2)',
    4,
  ],
  [
    'import() of a builtin',
    'return async () => typeof (await __vite_ssr_dynamic_import__("node:os")).cpus',
    'function',
  ],
];

for (const [title, text, expected] of viteCases) {
  test(`Vite: ${title} is the same in a worker`, async () => {
    const fn = await viteModule(text);
    assert.ok(isFunction(fn));
    assert.deepEqual(await peer.run(fn), expected);
  });
}

test('Vite: expect() of Vitest is refused by name, with a way out', async () => {
  const source = `"/@fs${packages}/vitest/index.mjs", {"importedNames":["expect"]}`;
  const fn = await viteModule(
    `const __vite_ssr_import_0__ = await __vite_ssr_import__(${source});\nreturn () => (0,__vite_ssr_import_0__.expect)(1)`,
  );
  assert.ok(isFunction(fn));
  await assert.rejects(async () => peer.run(fn), {
    code: 'TRANSFER_UNSUPPORTED',
    message: /expect of Vitest.*check it there/s,
  });
});

test('Vite: import() of a module that only Vite can compile fails with that reason', async () => {
  const fn = await viteModule('return () => __vite_ssr_dynamic_import__("/src/broken.mjs")');
  assert.ok(isFunction(fn));
  await assert.rejects(async () => peer.run(fn), {
    code: 'TRANSFER_IMPORT_FAILED',
    message: /Vite compiles/,
  });
});

test('expect() of Jest is refused by name', async () => {
  const expect = Object.assign(function expect() {}, { hasAssertions() {}, extend() {} });
  await assert.rejects(async () => peer.run(() => expect()), {
    code: 'TRANSFER_UNSUPPORTED',
    message: /expect\(\) of Jest/,
  });
});

const awaiter = `const __awaiter = (self, args, P, body) => new Promise((resolve, reject) => {
  const it = body.apply(self, args || []);
  const step = (r) => r.done ? resolve(r.value) : Promise.resolve(r.value).then((v) => step(it.next(v)), reject);
  step(it.next());
});`;

test('the `this` that a compiler gives to its helper for async functions is not needed', async () => {
  const text = `(() => { ${awaiter} return (n) => __awaiter(this, void 0, void 0, function* () { return (yield n) + 1 }) })()`;
  const fn: unknown = vm.runInThisContext(text, { filename: join(folder, 'lowered.cjs') });
  assert.ok(isFunction(fn));
  assert.equal(await peer.run(fn, 2), 3);
});

test('a lowered async arrow that means the `this` around it has it, or is refused', async () => {
  const text = `(() => { ${awaiter} return class { n = 4; make() { return () => __awaiter(this, void 0, void 0, function* () { return this.n }) } } })()`;
  const made: unknown = vm.runInThisContext(text, { filename: join(folder, 'lowered-this.cjs') });
  assert.ok(isFunction(made));
  const fn: unknown = Reflect.construct(made, []).make();
  assert.ok(isFunction(fn));
  if (closureReader() !== undefined) assert.equal(await peer.run(fn), 4);
  else await assert.rejects(async () => peer.run(fn), { code: 'TRANSFER_UNREADABLE' });
});

const helpers = {
  Babel: `function _interopRequireWildcard(e, t) { var r = new WeakMap(), n = new WeakMap();
    return (_interopRequireWildcard = function (e, t) {
      if (!t && e && e.__esModule) return e;
      var o = t ? n : r, f = { __proto__: null, default: e };
      if (o.has(e)) return o.get(e);
      for (const k in e) if (k !== 'default') f[k] = e[k];
      o.set(e, f); return f;
    })(e, t) }; _interopRequireWildcard({}); const helper = _interopRequireWildcard;`,
  swc: `var cache = new WeakMap(); function _getRequireWildcardCache() { return cache }
    function _interop_require_wildcard(e, t) {
      if (!t && e && e.__esModule) return e;
      const known = _getRequireWildcardCache(); if (known.has(e)) return known.get(e);
      const f = { __proto__: null, ...e, default: e }; known.set(e, f); return f;
    } const helper = _interop_require_wildcard;`,
};

for (const [tool, helper] of Object.entries(helpers)) {
  test(`import() as ${tool} writes it for CommonJS gives one namespace, with a default`, async () => {
    const text = `(() => { ${helper} return (path) => {
      const [a, b] = [helper(path), helper(path)];
      return [a === b, a.default === path, a.base, helper({ __esModule: true, x: 1 }).x].join();
    } })()`;
    const fn: unknown = vm.runInThisContext(text, { filename: join(folder, `${tool}.cjs`) });
    assert.ok(isFunction(fn));
    const home: unknown = Reflect.apply(fn, undefined, [{ base: 7 }]);
    assert.equal(await peer.run(fn, { base: 7 }), home);
  });
}

test('the namespace of a package that only re-exports is imported again, however it is held', async () => {
  mkdirSync(join(packages, 'reexports'));
  const part = `export const registry = { kept: new WeakMap() };
    export const keep = (o) => registry.kept.set(o, 1).has(o);`;
  writeFileSync(join(packages, 'reexports/part.mjs'), part);
  const entry = join(packages, 'reexports/index.mjs');
  writeFileSync(join(packages, 'reexports/more.mjs'), 'export const more = (n) => n + 1;');
  writeFileSync(entry, "export * from './part.mjs'; export * from './more.mjs';");
  const namespace: unknown = await import(pathToFileURL(entry).href);
  const made: unknown = vm.runInThisContext('((held) => () => held.keep({}))', {
    filename: join(folder, 'holder.cjs'),
  });
  assert.ok(isFunction(made));
  const fn = made(namespace);
  assert.ok(isFunction(fn));
  assert.equal(await peer.run(fn), true);
});

/** A bundle of webpack for development: a module with an export that cannot travel. */
const webpackBundle = (text: string): unknown =>
  vm.runInThisContext(
    `(() => {
      const modules = { './own.js': { double: (n) => n * 2 }, './app.js': { kept: new WeakMap() } };
      function __webpack_require__(id) { return modules[id] }
      const own__WEBPACK_IMPORTED_MODULE_3__ = {};
      for (const [key, get] of Object.entries({ double: () => modules['./own.js'].double, kept: () => modules['./app.js'].kept }))
        Object.defineProperty(own__WEBPACK_IMPORTED_MODULE_3__, key, { enumerable: true, get });
      return ${text};
    })()`,
    { filename: join(folder, 'bundle.js') },
  );

const webpackCases: Record<string, string> = {
  'import()':
    'async (n) => (await Promise.resolve(/*! import() */).then(() => (__webpack_require__(/*! ./own.js */ "./own.js")))).double(n)',
  'import(), as older versions write it':
    'async (n) => (await Promise.resolve(/*! import() */).then(__webpack_require__.bind(__webpack_require__, /*! ./own.js */ "./own.js"))).double(n)',
};

for (const [what, text] of Object.entries(webpackCases)) {
  test(`webpack: ${what} in a bundle takes along that module, and no other`, async () => {
    const fn = webpackBundle(text);
    assert.ok(isFunction(fn));
    assert.equal(await peer.run(fn, 4), 8);
  });
}

test('an object of a generator that was lowered for ES5 streams as a generator does', () => {
  const steps = (n: number) => ({
    next: () => ({ done: n <= 0, value: n }),
    throw: () => {},
    return: () => {},
  });
  const sync: object = {
    ...steps(1),
    [Symbol.iterator]() {
      return this;
    },
  };
  const asynchronous: object = {
    ...steps(1),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  const iterable = { ...steps(1), [Symbol.iterator]: () => [1].values() };
  assert.equal(generatorOf(sync), sync);
  assert.equal(generatorOf(asynchronous), asynchronous);
  assert.equal(generatorOf(iterable), undefined);
  assert.equal(
    generatorOf({
      next: () => {},
      [Symbol.iterator]() {
        return this;
      },
    }),
    undefined,
  );
});

const lowered: Record<string, string> = {
  TypeScript:
    'class Secret { constructor(v) { box.set(this, v) } get v() { return __classPrivateFieldGet(this, box, "f") } }',
  esbuild:
    'class Secret { constructor(v) { __privateAdd(this, box, v) } get v() { return __privateGet(this, box) } }',
  Babel:
    'class Secret { constructor(v) { _classPrivateFieldInitSpec(this, box, v) } get v() { return _classPrivateFieldGet(box, this) } }',
  swc: 'class Secret { constructor(v) { _class_private_field_init(this, box, v) } get v() { return _class_private_field_get(this, box) } }',
};

for (const [tool, text] of Object.entries(lowered)) {
  test(`#private members that ${tool} lowered are refused with the target to compile for`, async () => {
    const made = `(() => { const box = new WeakMap(); ${text} return () => new Secret(1).v })()`;
    const fn: unknown = vm.runInThisContext(made, {
      filename: join(folder, `private-${tool}.cjs`),
    });
    assert.ok(isFunction(fn));
    await assert.rejects(async () => peer.run(fn), {
      code: 'TRANSFER_UNSUPPORTED',
      message: /#private members of Secret.*ES2022.*variable box/s,
    });
  });
}

const decorated: Record<string, string> = {
  'a member':
    'class B { constructor() { __runInitializers(_init, 5, this); __privateAdd(this, box, 1) } }',
  'the class':
    'let B = class { constructor() { __privateAdd(this, box, 1) } }; B = __decorateClass([d], B)',
};

for (const [what, text] of Object.entries(decorated)) {
  test(`#private members that esbuild lowered for a decorator of ${what} are refused with that reason`, async () => {
    const made = `(() => {
      const __decorateClass = (list, made) => made, d = 1;
      const box = new WeakMap(); ${text}; return () => new B();
    })()`;
    const fn: unknown = vm.runInThisContext(made, {
      filename: join(folder, `decorated-${what.replace(' ', '-')}.cjs`),
    });
    assert.ok(isFunction(fn));
    await assert.rejects(async () => peer.run(fn), {
      code: 'TRANSFER_UNSUPPORTED',
      message: /#private members of B.*a class with a decorator, for every target.*variable box/s,
    });
  });
}

function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === 'function';
}

test('the output of TypeScript for `import * as` in CommonJS reads a module in a worker', async () => {
  const task: unknown = vm.runInThisContext(`(() => {
    var __createBinding = (o, m, k) => { Object.defineProperty(o, k, { enumerable: true, get: function() { return m[k]; } }); };
    var __setModuleDefault = (o, v) => { Object.defineProperty(o, "default", { enumerable: true, value: v }); };
    var __importStar = (function () {
      var ownKeys = function(o) {
        ownKeys = Object.getOwnPropertyNames || function (o) { return []; };
        return ownKeys(o);
      };
      return function (mod) {
        if (mod && mod.__esModule) return mod;
        var result = {};
        if (mod != null) for (var k = ownKeys(mod), i = 0; i < k.length; i++) if (k[i] !== "default") __createBinding(result, mod, k[i]);
        __setModuleDefault(result, mod);
        return result;
      };
    })();
    return () => {
      const shapes = { area: (a) => a * a, default: 5 };
      const made = __importStar(shapes);
      return [made.area(3), made.default === shapes, Object.keys(made).join(), __importStar({ __esModule: true, a: 1 }).a];
    };
  })()`);
  assert.ok(typeof task === 'function');
  const expected = [9, true, 'area,default', 1];
  assert.deepEqual(Reflect.apply(task, undefined, []), expected);
  assert.deepEqual(await peer.run(() => Reflect.apply(task, undefined, [])), expected);
});

test('Vitest 4: import.meta.env is in a worker what it is in the test', async (t) => {
  const env = new Proxy(process.env, {
    get: (_target, key) => (key === 'DEV' ? true : process.env[String(key)]),
  });
  const worker = { ctx: { rpc: new Proxy({}, {}) }, metaEnv: env };
  Reflect.set(globalThis, '__vitest_worker__', worker);
  Object.assign(process.env, { VITE_NAME: 'home', DEV: '1' });
  t.after(() => {
    Reflect.deleteProperty(globalThis, '__vitest_worker__');
    for (const name of ['VITE_NAME', 'DEV']) Reflect.deleteProperty(process.env, name);
  });
  const made: unknown = vm.runInThisContext(
    `((env) => [
      () => { const env = Object.assign(globalThis.__vitest_worker__?.metaEnv ?? {}); return [env.VITE_NAME, env.DEV, 'PATH' in env]; },
      () => [env.VITE_NAME, env.DEV, 'PATH' in env],
    ])`,
    { filename: join(folder, 'src/env.test.js') },
  );
  assert.ok(isFunction(made));
  const tasks: unknown = made(env);
  assert.ok(Array.isArray(tasks));
  for (const task of tasks) assert.deepEqual(await peer.run(task), ['home', true, true]);
});

test('a name that only a loader of a runner finds in CommonJS is one of its default export', async () => {
  const file = join(folder, 'names.cjs');
  writeFileSync(file, "const all = { ['tw' + 'ice']: (n) => n * 2 }; module.exports = all;");
  const definition = {
    kind: 'module',
    specifier: pathToFileURL(file).href,
    parent: '',
    isRequired: false,
    importType: '',
  } as const;
  const exports = await loadModule(definition);
  const all: unknown = exports('default');
  assert.equal(exports('twice'), Reflect.get(Object(all), 'twice'));
  assert.deepEqual({ ...Object(exports(openedDefault)) }, { ...Object(all), default: all });
  assert.equal(exports('nothing'), undefined);
});
