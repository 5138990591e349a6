// Modules that a function of a sandbox imports: only those below `read` are there.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { hasCode } from '../../src/errors.js';
import { partitionNeeds } from '../../src/public.js';
import { sandboxPool, skip } from './support.js';

/** A package with a module that imports another package; returns its folder, and a function of the module. */
async function program(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-modules-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = {
    'package.json': '{ "type": "module" }',
    'node_modules/twice/package.json': '{ "name": "twice", "exports": "./twice.cjs" }',
    'node_modules/twice/twice.cjs': 'module.exports = (value) => value * 2;',
    'src/main.js':
      "import { more } from './more.js'; export const run = (value) => more(value) + 1;",
    'src/more.js': "import twice from 'twice'; export const more = (value) => twice(value);",
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const made: { run: (value: number) => number } = await import(
    pathToFileURL(join(folder, 'src/main.js')).href
  );
  return { folder, fn: made.run };
}

test('the folders that a function needs are enough', { skip }, async (t) => {
  const { folder, fn } = await program(t);
  const needs = partitionNeeds(fn);
  assert.deepEqual(needs, [folder]);
  const pool = sandboxPool(t, { read: needs });
  assert.equal(await pool.run(fn, 20), 41);
});

test('a module outside of them is an error that names the way out', { skip }, async (t) => {
  const { folder, fn } = await program(t);
  const reads = [[], [join(folder, 'node_modules')], [join(folder, 'src')]];
  for (const read of reads) {
    const pool = sandboxPool(t, { read });
    await assert.rejects(pool.run(fn, 20), (error) => {
      assert.ok(hasCode(error, 'TRANSFER_IMPORT_FAILED'), String(error));
      assert.match(String(error), /no files but those below `read`: partitionNeeds\(fn\)/);
      return true;
    });
    assert.equal(await pool.run(() => 1), 1);
  }
});

test('a function without modules needs nothing', () => {
  const three = 3;
  assert.deepEqual(
    partitionNeeds(() => three),
    [],
  );
});
