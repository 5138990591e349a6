// A hundred thousand short tasks while a random worker is killed every 50 ms. Every promise settles once,
// with the right result or with WORKER_EXITED; afterwards nothing of it is left.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { hasCode, Pool } from '../../src/public.js';
import {
  childrenOf,
  isFew,
  openDescriptors,
  random,
  waitFor,
  withDeadline,
} from '../support/index.js';

const taskCount = isFew ? 20_000 : 100_000;
const killEveryMs = 50;
/**
 * Limit of the kills: where workers start slowly, starts take most of the time, and the last tasks run
 * undisturbed.
 */
const killForMs = 60_000;
/** Calls that wait at a time: a caller with backpressure. */
const callsAtOnce = 1000;

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

function work(value: number): number {
  return value * 2 + 1;
}

test(`${taskCount.toLocaleString('en')} tasks settle exactly once each while workers are killed, and nothing is left`, async (t) => {
  const dice = random(t);
  const before = {
    descriptors: openDescriptors().length,
    children: childrenOf(process.pid).length,
  };
  const pool = new Pool({ size: 2 });
  t.after(() => pool.destroy());
  await pool.warm();
  collect();
  const heapBefore = process.memoryUsage().heapUsed;

  /** A worker is ready until its end was noticed: each is killed once. */
  const killed = new Set<number | undefined>();
  const endOfKilling = performance.now() + killForMs;
  const killer = setInterval(() => {
    if (performance.now() > endOfKilling) return;
    const { workers } = pool.stats();
    const alive = workers.filter(({ state, pid }) => state === 'ready' && !killed.has(pid));
    const { pid } = alive.length > 0 ? dice.pick(alive) : {};
    if (pid === undefined) return;
    process.kill(pid, 'SIGKILL');
    killed.add(pid);
  }, killEveryMs);
  t.after(() => clearInterval(killer));

  const settled = new Uint8Array(taskCount);
  let lost = 0;
  const repeated = pool.with({ retry: 1000 });
  const call = async (index: number): Promise<void> => {
    const mayRepeat = index % 2 === 0;
    try {
      const result = await (mayRepeat ? repeated : pool).run(work, index);
      assert.equal(result, work(index));
    } catch (error) {
      if (mayRepeat || !hasCode(error, 'WORKER_EXITED')) throw error;
      lost += 1;
    }
    settled[index] = (settled[index] ?? 0) + 1;
  };
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < taskCount) {
      next += 1;
      await call(next - 1);
    }
  };
  const callers = Array.from({ length: callsAtOnce }, caller);
  await withDeadline(Promise.all(callers), 150_000, 'all tasks');
  clearInterval(killer);

  const kills = killed.size;
  t.diagnostic(`${kills} workers killed, ${lost} tasks lost with them`);
  assert.ok(settled.every((count) => count === 1));
  assert.ok(kills > 0);
  assert.ok(lost <= kills, `${lost} tasks lost by ${kills} kills`);
  const { completedTasks, failedTasks, runningTasks, waitingTasks } = pool.stats();
  assert.deepEqual([completedTasks + failedTasks, failedTasks], [taskCount, lost]);
  assert.deepEqual([runningTasks, waitingTasks], [0, 0]);
  await withDeadline(pool.close(), 20_000, 'close');
  await waitFor(
    () => childrenOf(process.pid).length === before.children,
    undefined,
    'no child is left',
  );
  await waitFor(
    () => {
      collect();
      return openDescriptors().length <= before.descriptors + 2;
    },
    undefined,
    'no descriptor is left',
  );
  const grownMiB = (process.memoryUsage().heapUsed - heapBefore) / 2 ** 20;
  assert.ok(grownMiB < 16, `the heap grew by ${grownMiB} MiB`);
});
