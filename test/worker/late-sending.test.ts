// A worker loads the sending half of the context layer for its first value that is not plain.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pool } from '../../src/public.js';

/** True: this process has loaded it. */
async function hasSendingHalf(): Promise<boolean> {
  const { createRequire } = await import('node:module');
  const files = Object.keys(createRequire('/').cache);
  return files.some((file) => file.endsWith('/context/sending.js'));
}

class Money {
  readonly amount = 1;
}

for (const worker of ['process', 'thread'] as const) {
  test(`a ${worker} loads the sending half for what is not plain`, async (t) => {
    const pool = new Pool({ size: 1, worker });
    t.after(() => pool.destroy());
    const plain = {
      text: 'one',
      list: [1, { two: 2n }],
      bytes: new Uint8Array(3),
    };
    assert.deepEqual(await pool.run(() => plain), plain);
    assert.equal(await pool.run(hasSendingHalf), false);
    assert.ok((await pool.run(() => new Money())) instanceof Money);
    assert.equal(await pool.run(hasSendingHalf), true);
  });
}

test('results arrive that are not plain while a task imports manycore', async (t) => {
  const file = new URL('../../src/public.js', import.meta.url).href;
  for (let round = 0; round < 5; round += 1) {
    const pool = new Pool({ size: 1, concurrentTasksPerWorker: 8 });
    t.after(() => pool.destroy());
    const imported = pool.run(async () => typeof (await import(file)).run);
    const results = Array.from({ length: 6 }, (_, turns) =>
      pool.run(async () => {
        for (let turn = 0; turn < turns; turn += 1) {
          await new Promise((resolve) => setImmediate(resolve));
        }
        return new Map([[turns, new Money()]]);
      }),
    );
    for (const [turns, result] of (await Promise.all(results)).entries()) {
      assert.ok(result.get(turns) instanceof Money);
    }
    assert.equal(await imported, 'function');
  }
});

test('a Node that requires no ES modules loads the sending half at once', async (t) => {
  const pool = new Pool({
    size: 1,
    worker: 'process',
    execArgv: ['--no-experimental-require-module'],
  });
  t.after(() => pool.destroy());
  assert.ok((await pool.run(() => new Money())) instanceof Money);
  await assert.rejects(
    pool.run(() => {
      throw new RangeError('thrown there');
    }),
    { name: 'RangeError', message: 'thrown there' },
  );
});
