// A memory that is full: a clear error without an effect, and room again once something is freed. Slow, because it
// fills 1 GiB.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireNative } from '../../src/native.js';
import { programFolder, runNode } from '../pool/programs.js';

requireNative(); // without it there is no such memory

const program = `
  import assert from 'node:assert/strict';
  import { setImmediate as turn } from 'node:timers/promises';
  import { atomically, free, stmStats, tmap, tvar } from 'manycore/stm';
  const full = { code: 'SHARED_MEMORY_FULL' };
  const large = 'x'.repeat(60_000);
  const before = tvar('before');
  const map = tmap();
  const all = [];
  const fill = async () => {
    for (;;) {
      try {
        all.push(tvar(large));
      } catch (error) {
        assert.equal(error.code, full.code);
        assert.match(error.message, /free/);
        return;
      }
      if (all.length % 1000 === 0) await turn();
    }
  };
  await fill();
  const count = all.length;
  assert.ok(count * large.length > 0.9 * 2 ** 30, String(count));
  assert.throws(() => atomically(() => { before.set('after'); map.set(1, large); }), full);
  assert.throws(() => map.set(1, large), full);
  assert.equal(before.peek(), 'before');
  assert.equal(map.size, 0);
  for (const each of all.splice(0, count / 2)) atomically(() => free(each));
  atomically(() => { before.set('after'); map.set(1, large); });
  assert.equal(before.peek(), 'after');
  assert.equal(map.get(1).length, large.length);
  const { memoryBytes } = stmStats();
  await fill();
  assert.ok(all.length > 0.95 * count, all.length + ' of ' + count); // the last ones are not free yet
  assert.ok(stmStats().memoryBytes <= memoryBytes + 2 ** 20);`;

/** A memory that collections fill, and that is emptied through them. */
const collections = `
  import assert from 'node:assert/strict';
  import { setImmediate as turn } from 'node:timers/promises';
  import { atomically, free, tlist, tmap, tqueue, tvar } from 'manycore/stm';
  const full = { code: 'SHARED_MEMORY_FULL' };
  const fill = async (add) => {
    for (let count = 0; ; count += 1) {
      try {
        add(count);
      } catch (error) {
        assert.equal(error.code, full.code);
        return count;
      }
      if (count % 1000 === 999) await turn();
    }
  };
  const [queue, list, maps] = [tqueue(), tlist(), [tmap(), tmap(), tmap()]];
  for (let key = 0; key < 50; key += 1) list.add(key);
  for (let item = 0; item < 50; item += 1) atomically(() => queue.put(item));
  const large = 'x'.repeat(60_000);
  const count = await fill((at) => maps[at % maps.length].set(at, large));
  await fill((at) => tvar(at)); // also the last small block
  assert.throws(() => tvar(1), full);
  assert.throws(() => maps[0].set(-1, 1), full);
  // Transactions that free memory work: an item is taken, a key deleted, a map emptied or ended.
  for (let item = 0; item < 50; item += 1) assert.equal(atomically(() => queue.take()), item);
  for (let key = 0; key < 50; key += 1) assert.equal(list.delete(key), true);
  assert.equal(maps[0].delete(0), true);
  maps[1].clear();
  assert.equal(maps[1].size, 0);
  free(maps[2]);
  for (let key = 0; key < count / 3 - 100; key += 1) maps[1].set(key, large);
  assert.equal(maps[1].get(1).length, large.length);`;

test('collections that have filled the memory can be emptied', async (t) => {
  const folder = programFolder(t, { 'main.mjs': collections });
  const { stderr, exitCode } = await runNode(folder, ['main.mjs']);
  assert.equal(exitCode, 0, stderr);
});

test('a full memory is an error without an effect, and has room once something is freed', async (t) => {
  const folder = programFolder(t, { 'main.mjs': program });
  const { stderr, exitCode } = await runNode(folder, ['main.mjs']);
  assert.equal(exitCode, 0, stderr);
});
