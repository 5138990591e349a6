// Two copies of manycore in one program, as two versions in node_modules are: each runs its tasks, and
// memory that only one of them can share is refused by the other.

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hasCode, type Pool, shared } from '../../src/index.js';
import { openPool, ways } from '../pool/ways.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The library once more, from another folder. */
async function secondCopy(t: { after(body: () => void): void }): Promise<typeof shared> {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'manycore-copy-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['package.json', 'prebuilds', 'node_modules']) {
    symlinkSync(join(root, name), join(folder, name));
  }
  cpSync(join(root, 'dist/src'), join(folder, 'dist/src'), {
    recursive: true,
    filter: (name) => !/\.(?:ts|map)$/.test(name),
  });
  const url = pathToFileURL(join(folder, 'dist/src/index.js')).href;
  const other: { readonly shared: typeof shared } = await import(url);
  assert.notEqual(other.shared, shared);
  return other.shared;
}

const way = ways.find(({ channel }) => channel === 'shm');

test('memory of another copy of manycore is refused, not copied', async (t) => {
  assert.ok(way !== undefined);
  const pool: Pool = openPool(t, { size: 1 }, way);
  const otherShared = await secondCopy(t);
  const refusal = (path: RegExp) => (error: unknown) => {
    assert.ok(hasCode(error, 'TRANSFER_UNSUPPORTED'), String(error));
    assert.match(error.message, /another copy of manycore.*allocate it with shared\(\)/);
    assert.match(error.message, path);
    return true;
  };
  const fill = (given: Uint8Array): unknown => given.fill(7);
  for (const sizeBytes of [4, 100_000]) {
    const foreign = otherShared(sizeBytes);
    const part = new Uint8Array(foreign.buffer, foreign.byteOffset, 2);
    await assert.rejects(pool.run(fill, foreign), refusal(/path: the arguments\[0\]/));
    await assert.rejects(pool.run(fill, part), refusal(/path: the arguments\[0\]/));
    const inside = { list: [foreign.buffer] };
    await assert.rejects(
      pool.run((given) => given.list.length, inside),
      refusal(/\.list\[0\]/),
    );
    await assert.rejects(
      pool.run(() => foreign.length),
      refusal(/variable foreign/),
    );
  }
  const own = shared(4);
  await pool.run(fill, own);
  assert.equal(own[0], 7);
});
