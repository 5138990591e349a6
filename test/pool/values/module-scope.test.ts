// Scope of functions in modules: `require` of another file, `import.meta`, namespaces of Node's modules.
// The program prints a line for each call that differs from one without workers.

import assert from 'node:assert/strict';
import * as nodeModule from 'node:module';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

const files = {
  'sub/near.cjs': 'exports.near = 1;',
  'sub/node_modules/inner/index.js': 'exports.inner = 1;',
  'node_modules/dual/package.json': '{"exports":{"import":"./a.mjs","require":"./b.cjs"}}',
  'node_modules/dual/a.mjs': 'export const a = 1;',
  'node_modules/dual/b.cjs': 'exports.b = 1;',
  'node_modules/plain/package.json': '{"main":"main.js"}',
  'node_modules/plain/main.js': 'exports.plain = 1;',
  'own.cjs': `exports.own = () => [module.id, module.path, module.paths, module.filename, module.loaded,
  require.resolve('./sub/near.cjs'), require.resolve.paths('x'), module.require('./sub/near.cjs')];`,
};

const head = `import { Pool } from 'manycore';
import { inspect } from 'node:util';
import { createRequire } from 'node:module';
const outcome = async (body) => {
  try { return inspect(await body(), { depth: 4 }) } catch (e) { return inspect([e.name, e.code, e.message]) }
};
const pool = new Pool({ size: 1, worker: process.argv[2] });
async function check(calls) {
  for (const [fn, ...args] of calls) {
    const home = await outcome(() => fn(...args));
    const there = await outcome(() => pool.run(fn, ...args));
    if (there !== home) console.log(String(fn), inspect(args, { depth: 0 }), home, there);
  }
  await pool.close();
  console.log('checked', calls.length);
}
`;

/** Runs `calls` in both kinds of workers; gives what differs. */
async function differences(
  t: Parameters<typeof programFolder>[0],
  text: string,
  calls: readonly string[],
): Promise<string> {
  const list = `await check([${calls.map((call) => `[${call}]`).join(',\n')}]);`;
  const folder = programFolder(t, { ...files, 'main.mjs': `${head}${text}\n${list}` });
  const runs = ['process', 'thread'].map((worker) => runNode(folder, ['main.mjs', worker]));
  const [some, others] = await Promise.all(runs);
  const ended = `checked ${calls.length}`;
  return [some, others]
    .map((run) => [...(run?.lines ?? []), run?.stderr].join('\n').replace(`${ended}\n`, ''))
    .join('');
}

test('a require function resolves from the folder for which it was made', async (t) => {
  const text = `const sub = createRequire(new URL('./sub/x.js', import.meta.url));
const held = { sub };
const { own } = createRequire(import.meta.url)('./own.cjs');`;
  const looks = "[r('./near.cjs').near, r('inner').inner, r.resolve('inner')]";
  const found = await differences(t, text, [
    `() => ((r) => ${looks})(sub)`,
    `() => ((r) => ${looks})(held.sub)`,
    `(r) => ${looks}, sub`,
    `({ r }) => ${looks}, { r: sub }`,
    'own',
  ]);
  assert.equal(found, '');
});

const specifiers = [
  ...['./x.js', '../x.js', '/abs.js', '.', './x.js?q#h', 'file:///x.js', 'data:text/javascript,1'],
  ...['fs', 'node:fs', 'plain', 'nothing', '@x/y', 'mailto:a@b.c', 'https://x.y/z.js'],
];
/**
 * Specifiers that Node resolves otherwise than \`require\`, or refuses: only if a worker can call Node's
 * resolver.
 */
const furtherSpecifiers = [
  ...['dual', 'dual/nothing', '#none', '', './a%2fb', '//host/x.js', '@x', './%ff', 'manycore'],
  ...['node:nothing', 'foo:bar', 'sub/../x'],
];

test('import.meta is that of the module', async (t) => {
  const isAsked = 'registerHooks' in nodeModule;
  const all = isAsked ? [...specifiers, ...furtherSpecifiers] : specifiers;
  const found = await differences(t, 'const meta = import.meta;', [
    '() => [import.meta.url, import.meta.dirname, import.meta.filename, import.meta.main]',
    '() => [Object.keys(import.meta), Object.getPrototypeOf(import.meta), import.meta.resolve.name]',
    "() => [meta.url, meta.resolve('./x.js')]",
    "(given) => [given.url, given.resolve('./x.js')], meta",
    "() => { const { resolve } = import.meta; return resolve('plain') }",
    '() => import.meta.resolve(1)',
    "() => import.meta.resolve(new URL('file:///x.js'))",
    ...all.map((each) => `(name) => import.meta.resolve(name), ${JSON.stringify(each)}`),
  ]);
  assert.equal(found, '');
});

test('import.meta.resolve of a package with two builds is refused without the resolver of Node', {
  skip: 'registerHooks' in nodeModule,
}, async (t) => {
  const found = await differences(t, '', ["() => import.meta.resolve('dual')"]);
  assert.match(found, /TRANSFER_UNSUPPORTED[^]*call it outside of the function/);
});

test('a namespace of a module of Node is that of the worker, wherever it is', async (t) => {
  const names = ['fs', 'path', 'os', 'crypto', 'util', 'events', 'assert', 'fs/promises', 'tls'];
  const imports = names.map((name, at) => `import * as n${at} from 'node:${name}';`).join('\n');
  const text = `${imports}
const later = await import('node:path');
const all = [${names.map((_, at) => `n${at}`).join(', ')}];
const held = { n0, deep: { later } };
process.on('warning', (warning) => console.log(String(warning)));`;
  const shape =
    'Object.prototype.toString.call(ns), Object.keys(ns), typeof ns.default, Object.isFrozen(ns), Reflect.ownKeys(ns).length';
  const found = await differences(t, text, [
    ...names.map((_, at) => `(ns) => [${shape}], n${at}`),
    ...names.map((_, at) => `() => { const ns = n${at}; return [${shape}] }`),
    `() => all.map((ns) => [${shape}])`,
    `(given) => given.map((ns) => [${shape}]), all`,
    "() => [held.n0 === n0, held.n0.default === n0.default, held.deep.later.join('a', 'b'), later === n1]",
    "(given) => [given.n0 === n0, given.deep.later === n1, given.deep.later.default.join('a')], held",
    '() => [n0, later]',
  ]);
  assert.equal(found, '');
});
