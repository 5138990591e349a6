// The package as an ES module in a context of node:vm, as Jest and the vmThreads of Vitest load it: a result
// is made of the modules and the classes that the test has.
// Not here: CommonJS (realms.test.ts).

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const folder = mkdtempSync(join(tmpdir(), 'manycore-realm-modules-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const texts: Record<string, string> = {
  'own.mjs': `
export class Point { constructor(x) { this.x = x } }
export class Fault extends Error {}
process.ownLoads = (process.ownLoads ?? 0) + 1;`,
  'program.mjs': `
import * as os from 'node:os';
import { Pool } from 'manycore';
import { Fault, Point } from './own.mjs';
const pool = new Pool({ size: 1 });
const run = pool.run.bind(pool);
const found = {};
found.result = (await run(() => new Point(1))) instanceof Point;
found.part = (await run(() => [{ at: new Point(1) }]))[0].at instanceof Point;
found.error = (await run(() => { throw new Fault('x') }).catch((e) => e)) instanceof Fault;
found.inside = (await run(async () => new (await import('./own.mjs')).Point(1))) instanceof Point;
const import_ = await run(() => () => import('./own.mjs'));
found.function = (await import_()).Point === Point;
found.builtin = (await run(() => os.EOL + os.default.EOL)) === os.EOL + os.EOL;
found.bare = (await run(() => () => 7))() === 7;
found.loads = process.ownLoads;
await pool.close();
const threads = new Pool({ size: 1, worker: 'thread' });
const shared = await threads.run(() => new Int32Array(new SharedArrayBuffer(4)));
found.shared = shared instanceof Int32Array && shared.buffer instanceof SharedArrayBuffer;
await threads.close();
console.log(JSON.stringify(found));`,
};

let found: Record<string, unknown> = {};

before(() => {
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
  const loader = fileURLToPath(new URL('../fixtures/in-context.js', import.meta.url));
  const output = execFileSync(process.execPath, [
    '--experimental-vm-modules',
    '--no-warnings',
    loader,
    pathToFileURL(join(folder, 'program.mjs')).href,
    new URL('../../../bundle/index.js', import.meta.url).href,
  ]);
  const printed: unknown = JSON.parse(String(output));
  assert.ok(typeof printed === 'object' && printed !== null);
  found = { ...printed };
});

const instances: Record<string, string> = {
  result: 'a result',
  part: 'a part of a result',
  error: 'an error',
  inside: 'an instance of a class that the function imported inside',
};
for (const [key, what] of Object.entries(instances)) {
  test(`${what} is an instance of the class that the test imported`, () => {
    assert.equal(found[key], true);
  });
}

test('a function that a worker sent imports the modules that the test has', () => {
  assert.equal(found['function'], true);
});

test('the namespace of a module of Node is that of the worker', () =>
  assert.equal(found['builtin'], true));

test('a function that a worker sent without captures arrives', () =>
  assert.equal(found['bare'], true));

test('shared memory of a thread has the classes of the context', () => {
  assert.equal(found['shared'], true);
});

test('a result loads no module a second time', () => assert.equal(found['loads'], 1));
