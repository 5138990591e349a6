// Work of a worker before it leaves in order: the pool's teardown, and the end of values of perWorker.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isInsideWorker, perWorker, workerNumber } from '../../../src/public.js';
import { library, runProgram } from '../../faults/child.js';
import { waitFor } from '../../support/index.js';
import { Gate, openPool, ways } from '../calls/ways.js';

for (const way of ways) {
  test(`${way.name}: teardown runs and is awaited when a pool closes or replaces its workers`, async (t) => {
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
      assert.deepEqual(pool.stats().workers, []);
    }
  });

  test(`${way.name}: setup and teardown share what they captured`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    let open = 'nothing';
    const held = { name: 'nothing' };
    const setup = (): void => {
      open = 'variable';
      held.name = 'object';
    };
    const teardown = async (): Promise<void> => {
      const { writeFileSync } = await import('node:fs');
      writeFileSync(`${folder}/mark-${open}-${held.name}`, '');
    };
    const pool = openPool(t, { size: 1, setup, teardown, graceMs: 20_000 }, way);
    await pool.run(() => 1);
    await pool.close();
    assert.deepEqual(gate.marks, ['variable-object']);
    assert.deepEqual([open, held.name], ['nothing', 'nothing']);
  });

  test(`${way.name}: what a teardown and disposals throw is an error of the pool, and the rest is done`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    const teardown = (): never => {
      throw new RangeError('not torn down');
    };
    const disposing = (name: string, fails: boolean) =>
      perWorker(async () => {
        const { writeFileSync } = await import('node:fs');
        return {
          [Symbol.dispose]: () => {
            writeFileSync(`${folder}/mark-${name}`, '');
            if (fails) throw new Error('not disposed');
          },
        };
      });
    const [first, second] = [disposing('first', false), disposing('second', true)];
    for (const [options, text] of [
      [{ teardown }, /not torn down/],
      [{}, /not disposed/],
    ] as const) {
      const pool = openPool(t, { size: 1, graceMs: 20_000, ...options }, way);
      const errors: unknown[] = [];
      pool.on('error', (error) => errors.push(error.cause));
      if (options.teardown === undefined) {
        await pool.run(async () => {
          await first();
          await second();
        });
      } else await pool.run(() => 1);
      await pool.close();
      assert.equal(errors.length, 1);
      assert.match(String(errors[0]), text);
    }
    assert.deepEqual(gate.marks, ['first', 'second']);
  });

  test(`${way.name}: perWorker calls its factory again after it threw or its promise was rejected`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const attempts = perWorker(() => ({ count: 0 }));
    for (const kind of ['throws', 'rejects']) {
      const value = perWorker(() => {
        const all = attempts();
        all.count += 1;
        const { count } = all;
        if (count % 2 === 0) return kind === 'throws' ? count : Promise.resolve(count);
        if (kind === 'throws') throw new Error('was down');
        return Promise.reject(new Error('was down'));
      });
      const call = (): Promise<number> => pool.run(async () => await value());
      await assert.rejects(call(), /was down/);
      const made = await call();
      assert.equal(await call(), made);
    }
  });

  test(`${way.name}: values of perWorker are disposed of, the last one first`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    const open = (name: string) => async () => {
      const { appendFileSync } = await import('node:fs');
      return {
        [Symbol.asyncDispose]: async () => appendFileSync(`${folder}/mark-log`, `${name} `),
      };
    };
    const first = perWorker(open('first'));
    const second = perWorker(open('second'));
    const pool = openPool(t, { size: 1, graceMs: 20_000 }, way);
    await pool.run(async () => {
      await first();
      await second();
    });
    await pool.close();
    const { readFileSync } = await import('node:fs');
    assert.equal(readFileSync(`${folder}/mark-log`, 'utf8'), 'second first ');
  });

  test(`${way.name}: code in a worker can read that it is one, and its number`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const inside = await pool.run(() => [isInsideWorker(), workerNumber()]);
    assert.deepEqual(inside, [true, pool.stats().workers[0]?.id]);
    assert.deepEqual([isInsideWorker(), workerNumber()], [false, undefined]);
  });
}

test('teardown and disposal run at the end of a program that closes nothing', async (t) => {
  for (const end of ['', 'process.exit(0);']) {
    const { stderr, status } = await runProgram(
      t,
      `import fs from 'node:fs';
       import { Pool, perWorker, run } from ${JSON.stringify(library)};
       const pool = new Pool({ size: 1, teardown: async () => {
         await new Promise((resolve) => setTimeout(resolve, 5));
         fs.writeSync(2, 'torn down ');
       } });
       await pool.run(() => 1);
       const value = perWorker(() => ({ [Symbol.dispose]: () => fs.writeSync(2, 'disposed ') }));
       await run(() => void value());
       ${end}`,
    );
    assert.equal(status, 0, stderr);
    await waitFor(() => /torn down/.test(stderr) && /disposed/.test(stderr));
  }
});
