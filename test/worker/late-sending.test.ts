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
