// Tasks that run beside one another in a worker: what one of them does is no fault of the others.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Pool } from '../../src/public.js';
import { withDeadline } from '../support/index.js';
import { deadlineMs, Gate, openPool, ways } from './calls/ways.js';

/** Marks that it has begun, and resolves when the gate is open. */
const passGate = async (open: string, mark: string): Promise<string> => {
  writeFileSync(mark, '');
  while (!existsSync(open)) await new Promise((resolve) => setTimeout(resolve, 5));
  return 'done';
};

const exitAtGate = async (open: string, mark: string): Promise<never> => {
  writeFileSync(mark, '');
  while (!existsSync(open)) await new Promise((resolve) => setTimeout(resolve, 5));
  process.exit(3);
};

function goOn(mark?: string): Promise<never> {
  if (mark !== undefined) writeFileSync(mark, '');
  return new Promise(() => setInterval(() => {}, 1_000));
}

function block(mark: string): never {
  writeFileSync(mark, '');
  for (;;);
}

/** Runs `culprit`, and gives it up when it has begun: one that has not is just reclaimed. */
async function giveUp(pool: Pool, gate: Gate, culprit: (mark: string) => unknown): Promise<void> {
  const abort = new AbortController();
  const call = pool.with({ signal: abort.signal }).run(culprit, gate.mark('culprit'));
  await gate.reached('culprit');
  abort.abort();
  await assert.rejects(call, { code: 'ABORTED' });
}

for (const way of ways) {
  for (const how of ['aborted', 'out of time']) {
    test(`${way.name}: a task beside one that is ${how} finishes, and then the worker ends`, async (t) => {
      const pool = openPool(t, { size: 1, concurrentTasksPerWorker: 2, graceMs: 10 }, way);
      const gate = new Gate(t);
      const abort = new AbortController();
      const innocent = pool.run(passGate, gate.file, gate.mark('innocent'));
      await gate.reached('innocent');
      const options = how === 'aborted' ? { signal: abort.signal } : { timeoutMs: 50 };
      const culprit = pool.with(options).run(() => goOn());
      setTimeout(() => abort.abort(), 50);
      await assert.rejects(culprit, {
        code: how === 'aborted' ? 'ABORTED' : 'TASK_TIMED_OUT',
      });
      // In another worker, long before the neighbour is done.
      assert.equal(
        await withDeadline(
          pool.run(() => 'next'),
          deadlineMs,
          'the next task',
        ),
        'next',
      );
      assert.equal(pool.stats().exitedWorkers, 0);
      gate.open();
      assert.equal(await innocent, 'done');
      assert.equal(await pool.run(() => 'later'), 'later');
    });
  }

  test(`${way.name}: the rejection of a neighbour names the task that blocks the loop`, async (t) => {
    const pool = openPool(t, { size: 1, concurrentTasksPerWorker: 2, graceMs: 10 }, way);
    const gate = new Gate(t);
    const innocent = assert.rejects(pool.run(passGate, gate.file, gate.mark('innocent')), {
      code: 'WORKER_EXITED',
      message: /because block beside it went on after it was given up/,
    });
    await gate.reached('innocent');
    await giveUp(pool, gate, block);
    await withDeadline(innocent, deadlineMs, 'the neighbour is told');
  });

  test(`${way.name}: a neighbour that ends the worker itself is not explained by the task beside it`, async (t) => {
    const pool = openPool(t, { size: 1, concurrentTasksPerWorker: 2, graceMs: 10 }, way);
    const gate = new Gate(t);
    const neighbour = pool.run(exitAtGate, gate.file, gate.mark('neighbour'));
    const ended = assert.rejects(neighbour, (error: Error) => {
      assert.match(error.message, /exit code 3/);
      assert.doesNotMatch(error.message, /beside it/);
      return true;
    });
    await gate.reached('neighbour');
    await giveUp(pool, gate, goOn);
    // In another worker: the first one is to end.
    assert.equal(await pool.run(() => 'next'), 'next');
    gate.open();
    await withDeadline(ended, deadlineMs, 'the rejection of the neighbour');
  });

  test(`${way.name}: a neighbour with retry runs again elsewhere`, async (t) => {
    const pool = openPool(t, { size: 1, concurrentTasksPerWorker: 2, graceMs: 10 }, way);
    const gate = new Gate(t);
    const innocent = pool.with({ retry: 1 }).run(passGate, gate.file, gate.mark('innocent'));
    await gate.reached('innocent');
    await giveUp(pool, gate, block);
    gate.open();
    assert.equal(await withDeadline(innocent, deadlineMs, 'the neighbour'), 'done');
  });

  test(`${way.name}: a neighbour has its time, and no more`, async (t) => {
    const options = { size: 1, concurrentTasksPerWorker: 2, graceMs: 10, neighbourGraceMs: 100 };
    const pool = openPool(t, options, way);
    const gate = new Gate(t);
    const innocent = assert.rejects(pool.run(passGate, gate.file, gate.mark('innocent')), {
      code: 'WORKER_EXITED',
      message: /because goOn beside it .* raise neighbourGraceMs/,
    });
    await gate.reached('innocent');
    await giveUp(pool, gate, goOn);
    await withDeadline(innocent, deadlineMs, 'the neighbour is told');
  });
}
