// A call whose captured state is large and the same as before: a warning, once, with the variable's name.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { pmap } from '../../src/index.js';
import { openPool } from './ways.js';

/** The warnings of ours while `body` runs. */
async function warningsOf(t: TestContext, body: () => Promise<void>): Promise<string[]> {
  const told: string[] = [];
  const onWarning = (warning: Error): void => {
    if (Reflect.get(warning, 'code') === 'LARGE_CAPTURE') told.push(warning.message);
  };
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  await body();
  await new Promise((turn) => setImmediate(turn)); // they are emitted in the next turn
  return told;
}

const words = (count: number): string[] => Array.from({ length: count }, (_, at) => `word ${at}`);

test('one warning for a function that sends the same large state again', async (t) => {
  const pool = openPool(t, { size: 1 });
  const table = words(20_000);
  const small = words(10);
  const told = await warningsOf(t, async () => {
    for (let call = 0; call < 4; call += 1) {
      await pool.run(function lookUp() {
        return [table.length, small.length];
      });
    }
  });
  assert.equal(told.length, 1);
  assert.match(told[0] ?? '', /function lookUp sends \d+ KiB .*the variable table.*perHost/);
});

test('none for a small state, one that changes, or one call', async (t) => {
  const pool = openPool(t, { size: 1 });
  const small = words(100);
  const changing = words(20_000);
  const once = words(20_001);
  const told = await warningsOf(t, async () => {
    for (let call = 0; call < 4; call += 1) {
      changing[0] = `call ${call}`;
      await pool.run(() => small.length);
      await pool.run(() => changing.length);
    }
    await pool.run(() => once.length);
    await pmap(words(100), (word) => once.length + word.length, { pool, chunk: 10 });
  });
  assert.deepEqual(told, []);
});
