// What a host does before it leaves in order: the pool's teardown, and the end of what perHost made.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostNumber, isInsideHost, perHost } from '../../src/index.js';
import { library, runProgram } from '../faults/child.js';
import { waitFor } from '../support/index.js';
import { Gate, openPool, ways } from './ways.js';

for (const way of ways) {
  test(`${way.name}: teardown runs and is awaited when a pool closes or replaces its hosts`, async (t) => {
    const gate = new Gate(t);
    const [closed, recycled] = [gate.mark('closed'), gate.mark('recycled')];
    for (const [mark, end] of [
      [closed, 'close'],
      [recycled, 'recycle'],
    ] as const) {
      const teardown = async (): Promise<void> => {
        const { writeFileSync } = await import('node:fs');
        await new Promise((resolve) => setTimeout(resolve, 20));
        writeFileSync(mark, '');
      };
      const pool = openPool(t, { size: 1, teardown, graceMs: 20_000 }, way);
      await pool.run(() => 1);
      await pool[end]();
    }
    assert.deepEqual(gate.marks.sort(), ['closed', 'recycled']);
  });

  test(`${way.name}: a teardown that throws or hangs does not hold close()`, async (t) => {
    for (const teardown of [
      () => {
        throw new Error('no');
      },
      () => new Promise(() => {}),
    ]) {
      const pool = openPool(t, { size: 1, teardown, graceMs: 100 }, way);
      await pool.run(() => 1);
      await pool.close();
      assert.deepEqual(pool.stats().hosts, []);
    }
  });

  test(`${way.name}: values of perHost are disposed of, the last one first`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    const open = (name: string) => async () => {
      const { appendFileSync } = await import('node:fs');
      return {
        [Symbol.asyncDispose]: async () => appendFileSync(`${folder}/mark-log`, `${name} `),
      };
    };
    const first = perHost(open('first'));
    const second = perHost(open('second'));
    const pool = openPool(t, { size: 1, graceMs: 20_000 }, way);
    await pool.run(async () => {
      await first();
      await second();
    });
    await pool.close();
    const { readFileSync } = await import('node:fs');
    assert.equal(readFileSync(`${folder}/mark-log`, 'utf8'), 'second first ');
  });

  test(`${way.name}: a host knows that it is one, and its number`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const inside = await pool.run(() => [isInsideHost(), hostNumber()]);
    assert.deepEqual(inside, [true, pool.stats().hosts[0]?.id]);
    assert.deepEqual([isInsideHost(), hostNumber()], [false, undefined]);
  });
}

test('teardown and disposal run at the end of a program that closes nothing', async (t) => {
  for (const end of ['', 'process.exit(0);']) {
    const { stderr, status } = await runProgram(
      t,
      `import fs from 'node:fs';
       import { Pool, perHost, run } from ${JSON.stringify(library)};
       const pool = new Pool({ size: 1, teardown: async () => {
         await new Promise((resolve) => setTimeout(resolve, 5));
         fs.writeSync(2, 'torn down ');
       } });
       await pool.run(() => 1);
       const value = perHost(() => ({ [Symbol.dispose]: () => fs.writeSync(2, 'disposed ') }));
       await run(() => void value());
       ${end}`,
    );
    assert.equal(status, 0, stderr);
    await waitFor(() => /torn down/.test(stderr) && /disposed/.test(stderr));
  }
});
