// A module that leads back to the program is not loaded by a worker: what it defines travels as code. What a
// task loads itself, and comes to the program, is refused before the program runs once more.

import assert from 'node:assert/strict';
import * as nodeModule from 'node:module';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

/** Definitions in both kinds of modules. */
const routes = `
let calls = 0;
calls = 2;
const find = (id) => ({ id, calls });
class Route { constructor(id) { this.id = id } go() { return [this.id, calls, find(this.id).id] } }
const table = { find, Route };
`;

const esm = (imports: string): string => `${imports}${routes}
export { find, Route, table };
export default find;
`;

const cjs = (requires: string): string => `${requires}${routes}
Object.assign(exports, { find, Route, table, default: find });
`;

/** Uses of an import of such a module: calls, and a function that returns its name. */
const calls = `
async function all(pool, at) {
  const made = new (at('Route'))(3);
  const { find, Route, table } = { find: at('find'), Route: at('Route'), table: at('table') };
  console.log(
    JSON.stringify([
      await pool.run(() => find(1)),
      await pool.run(() => new Route(2).go()),
      await pool.run(() => [made.go(), made instanceof Route]),
      await pool.run((given) => [given.go(), given instanceof Route], made),
      await pool.run(() => table.find(4)),
      await pool.run((given) => new given.Route(5).go(), table),
      (await pool.run(() => new Route(6))) instanceof Route,
    ]),
  );
  await pool.close();
}
`;

const expected = JSON.stringify([
  { id: 1, calls: 2 },
  [2, 2, 2],
  [[3, 2, 3], true],
  [[3, 2, 3], true],
  { id: 4, calls: 2 },
  [5, 2, 5],
  true,
]);

/** Ways from `routes` back to the program, as files of a folder. Others: context/modules/program-modules.test.ts. */
const circles: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  direct: { 'routes.mjs': esm("import { config } from './app.mjs';") },
  'by another': {
    'routes.mjs': esm("export * from './lib/other.mjs';"),
    'lib/other.mjs': "import { config } from '../app.mjs'; export const other = () => config;",
  },
  'by require': { 'routes.cjs': cjs("require('./app.cjs');") },
  'by require in a function that is called at once': {
    'routes.cjs': cjs("(function () { require('./app.cjs') })();"),
  },
};

function program(isCjs: boolean, worker: string): string {
  const begin = isCjs
    ? `exports.config = { name: 'app' };
const { Pool } = require('manycore');
console.log('loaded');
const routes = require('./routes.cjs');`
    : `import { Pool } from 'manycore';
import * as ns from './routes.mjs';
import { find, Route, table } from './routes.mjs';
export const config = { name: 'app' };
console.log('loaded');
const routes = { find, Route, table: { ...table, ns } };`;
  return `${begin}${calls}
void all(new Pool({ size: 1, worker: '${worker}' }), (name) => routes[name]);`;
}

test('no worker runs the program for a module that leads to it', async (t) => {
  const waiting = Object.entries(circles).entries();
  const runSome = async (): Promise<void> => {
    for (const [at, [name, files]] of waiting) {
      const isCjs = 'routes.cjs' in files;
      const app = isCjs ? 'app.cjs' : 'app.mjs';
      const worker = at % 2 === 0 ? 'process' : 'thread';
      const folder = programFolder(t, { ...files, [app]: program(isCjs, worker) });
      const { lines, stderr } = await runNode(folder, [app]);
      assert.deepEqual([...lines, stderr], ['loaded', expected, ''], name);
    }
  };
  await Promise.all([runSome(), runSome()]);
});

/** Ways by which a task comes to the program itself. */
const ways: Readonly<Record<string, string>> = {
  'import()': "() => import('./app.mjs')",
  'import() of a file URL': '() => import(import.meta.url)',
  'import() of a module that imports it': "() => import('./routes.mjs')",
  'import() of a CommonJS module that requires it': "() => import('./back.cjs')",
  'require of such a module': "() => require('./back.cjs')",
  'task() of such a module': "task(new URL('./routes.mjs', import.meta.url), 'find')",
};
/** Seen where Node has hooks in the thread itself. */
const hiddenWays: Readonly<Record<string, string>> = {
  'import() in an imported module': '() => lib.load()',
  'a name that is made while a module loads': "() => import('./hidden.mjs')",
};

test('a task that loads the program is refused, and the program does not run again', async (t) => {
  const all = { ...ways, ...('registerHooks' in nodeModule ? hiddenWays : {}) };
  const folder = programFolder(t, {
    'app.mjs': `import { createRequire } from 'node:module';
import { Pool, task } from 'manycore';
import * as lib from './lib.mjs';
export const config = { name: 'app' };
console.log('loaded');
const require = createRequire(import.meta.url);
for (const worker of ['process', 'thread']) {
  const pool = new Pool({ size: 1, worker });
  for (const fn of [${Object.values(all).join(', ')}]) {
    const refused = await pool.run(fn).catch((error) => error);
    console.log(refused.code, /which would run once more in the worker: put/.test(refused.message));
  }
  console.log(await pool.run(() => require.resolve('./back.cjs') !== ''));
  await pool.close();
}`,
    'routes.mjs': esm("import './app.mjs';"),
    'back.cjs': cjs("require('./app.mjs');"),
    'lib.mjs': "export const load = () => import('./app.mjs');",
    'hidden.mjs': "const name = './app'; export const { config } = await import(name + '.mjs');",
  });
  const { lines, stderr } = await runNode(folder, ['app.mjs']);
  const once = [...Object.keys(all).map(() => 'TRANSFER_IMPORT_FAILED true'), 'true'];
  assert.deepEqual(lines, ['loaded', ...once, ...once]);
  assert.equal(stderr, '');
});
