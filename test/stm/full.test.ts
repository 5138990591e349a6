// A memory that is full: a clear error without an effect, and room again once something is freed.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
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
  assert.ok(count * large.length > 0.75 * 2 ** 26, String(count));
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

/** A memory that values of one size fill after those of another were freed. */
const sizes = `
  import assert from 'node:assert/strict';
  import { setImmediate as turn } from 'node:timers/promises';
  import { atomically, free, tmap, tqueue, tvar } from 'manycore/stm';
  const [queue, map] = [tqueue(), tmap()];
  const ways = {
    variables: {
      add: (text, all) => all.push(tvar(text)),
      empty: async (all) => { for (const each of all) atomically(() => free(each)); },
    },
    map: {
      add: (text, all) => all.push(map.set(all.length, text)),
      empty: async (all) => {
        for (let key = 0; key < all.length; key += 1) {
          map.delete(key);
          if (key % 1000 === 0) await turn();
        }
      },
    },
    queue: {
      add: (text, all) => { atomically(() => queue.put(text)); all.push(0); },
      empty: async (all) => { for (const _ of all) atomically(() => queue.take()); },
    },
  };
  const fill = async ({ add, empty }, bytes) => {
    const [text, all] = ['x'.repeat(bytes), []];
    for (;;) {
      try {
        add(text, all);
      } catch (error) {
        assert.equal(error.code, 'SHARED_MEMORY_FULL');
        break;
      }
      if (all.length % 1000 === 0) await turn();
    }
    await empty(all);
    return all.length * bytes;
  };
  const order = [['variables', 60_000], ['map', 100], ['queue', 5_000], ['map', 20_000], ['queue', 300], ['variables', 60_000]];
  const filled = [];
  for (const [way, bytes] of order) filled.push(await fill(ways[way], bytes));
  // A value of 100 bytes takes 160 with its variable, and variables stay what they are.
  for (const bytes of filled) assert.ok(bytes > filled[0] / 3, String(filled));`;

/** Settings of the environment: a small memory, with the native core and without. */
const memories = {
  'of the native core': 'process.env.MANYCORE_STM_MEMORY_MIB = 64;',
  'of threads': 'process.env.MANYCORE_STM_MEMORY_MIB = 64; process.env.MANYCORE_NATIVE = "off";',
};

async function run(t: TestContext, text: string, settings: string): Promise<void> {
  const folder = programFolder(t, { 'main.mjs': text, 'settings.mjs': settings });
  const { stderr, exitCode } = await runNode(folder, ['--import', './settings.mjs', 'main.mjs']);
  assert.equal(exitCode, 0, stderr);
}

for (const [which, settings] of Object.entries(memories)) {
  test(`a memory ${which} that one size has filled has room for every other size`, async (t) => {
    await run(t, sizes, settings.replace('64', '32'));
  });

  test(`collections that have filled the memory ${which} can be emptied`, async (t) => {
    await run(t, collections, settings);
  });

  test(`a full memory ${which} is an error without an effect, and has room later`, async (t) => {
    await run(t, program, settings);
  });
}

test('all processes of a program have the memory of its first one, and its settings', async (t) => {
  const sizes = `
    import assert from 'node:assert/strict';
    import { Pool } from 'manycore';
    import { stmStats, tvar } from 'manycore/stm';
    const fill = (from) => {
      const large = 'x'.repeat(60_000);
      for (let count = from; ; count += 1) {
        try { tvar(large); } catch { return count; }
      }
    };
    const pool = new Pool({ size: 1, env: { MANYCORE_STM_MEMORY_MIB: '4096' } });
    const count = await pool.run(fill, 0);
    assert.ok(count > 700 && count < 1024, String(count));
    assert.equal(fill(count), count);
    await pool.close();`;
  await run(t, sizes, memories['of the native core']);
});

test('settings that cannot be are refused, with what they may be', async (t) => {
  const wrong = `
    import assert from 'node:assert/strict';
    import { run } from 'manycore';
    import { atomically, tvar } from 'manycore/stm';
    const uses = [() => tvar(1), () => atomically(() => 1), () => run(() => 1)];
    const cases = [
      ['MANYCORE_STM_MEMORY_MIB', ['15', '4097', '1.5', 'much', '-1', 'Infinity'], /from 16 to 4096$/],
      ['MANYCORE_STM_PATIENCE_MS', ['0', 'soon', '1e12'], /from 1 to 3600000$/],
    ];
    for (const [name, values, wanted] of cases) {
      for (const value of values) {
        process.env[name] = value;
        for (const use of uses) {
          const call = async () => use();
          await assert.rejects(call, ({ code, message }) => {
            assert.equal(code, 'OPTION_INVALID', name + value + use + message);
            assert.match(message, new RegExp(name + ' is .?' + value + '.*it must be an integer'));
            assert.match(message, wanted);
            return true;
          });
        }
        delete process.env[name];
      }
    }
    assert.equal(tvar(1).peek(), 1);
    assert.equal(await run(() => 2), 2);`;
  for (const native of ['', 'process.env.MANYCORE_NATIVE = "off";']) {
    await run(t, wrong.replace(', () => run(() => 1)', native && ''), native);
  }
});
