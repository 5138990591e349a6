// Wake-ups between two processes: none is lost in very many rounds, in which both sleep all the time, nor where the
// waker ends between the release of its locks and the waking. Slow, because each round is two sleeps:
// MANYCORE_ROUNDS sets how many there are.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { Pool } from '../../src/public.js';
import {
  atomically,
  atomicallyWhen,
  check,
  stmStats,
  type TQueue,
  tqueue,
  tvar,
} from '../../src/stm/public.js';
import { deadlineMs, openPool, processWays } from '../pool/calls/ways.js';
import { isFew, withDeadline } from '../support/index.js';

const wanted = process.env['MANYCORE_ROUNDS'];
const rounds = wanted === undefined ? (isFew ? 5_000 : 100_000) : Number(wanted);
/** Longest wait for one change: a lost wake-up fails here. */
const waitMs = 2 * deadlineMs;
const way = processWays.find(({ channel }) => channel === 'shm');

test(`no wake-up is lost in ${rounds} rounds over queues of one slot`, async (t) => {
  const pool = openPool(t, { size: 1 }, way);
  const [there, back] = [tqueue<number>({ capacity: 1 }), tqueue<number>({ capacity: 1 })];
  const { sleeps } = stmStats();
  const answer = async (
    from: TQueue<number>,
    to: TQueue<number>,
    count: number,
    timeoutMs: number,
  ) => {
    for (let round = 0; round < count; round += 1) {
      const item = await atomicallyWhen(() => from.take(), { timeoutMs });
      await atomicallyWhen(() => to.put(item), { timeoutMs });
    }
  };
  const answers = pool.run(answer, there, back, rounds, waitMs);
  for (let round = 0; round < rounds; round += 1) {
    there.put(round);
    pause();
    assert.equal(await atomicallyWhen(() => back.take(), { timeoutMs: waitMs }), round);
  }
  await answers;
  const slept = stmStats().sleeps - sleeps;
  t.diagnostic(`${slept} sleeps`);
  assert.ok(slept > rounds / 10, `${slept} sleeps only`);
});

test('items of a queue of one slot arrive in order where both sides wait', async (t) => {
  const pool = openPool(t, { size: 2 }, way);
  const queue = tqueue<number>({ capacity: 1 });
  const count = Math.ceil(rounds / 10);
  const put = async (into: TQueue<number>, items: number, timeoutMs: number) => {
    for (let item = 0; item < items; item += 1)
      await atomicallyWhen(() => into.put(item), { timeoutMs });
  };
  const take = async (from: TQueue<number>, items: number, timeoutMs: number) => {
    for (let item = 0; item < items; item += 1) {
      const found = await atomicallyWhen(() => from.take(), { timeoutMs });
      if (found !== item) throw new Error(`${found} instead of ${item}`);
    }
  };
  await Promise.all([pool.run(put, queue, count, waitMs), pool.run(take, queue, count, waitMs)]);
});

test('no wake-up is lost in rounds over two variables', async (t) => {
  const pool = openPool(t, { size: 1 }, way);
  const [ask, reply] = [tvar(0), tvar(0)];
  const serve = async (count: number, timeoutMs: number) => {
    for (let round = 1; round <= count; round += 1) {
      const next = () => {
        check(ask.get() === round);
        reply.set(round);
      };
      await atomicallyWhen(next, { timeoutMs });
    }
  };
  const count = Math.ceil(rounds / 2);
  const serves = pool.run(serve, count, waitMs);
  for (let round = 1; round <= count; round += 1) {
    atomically(() => ask.set(round));
    pause();
    await atomicallyWhen(() => check(reply.get() === round), { timeoutMs: waitMs });
  }
  await serves;
});

/** Computes for up to about as long as an answer takes, so that a wait also begins in the moment of the change. */
function pause(): void {
  const spins = Math.random() * 60_000;
  for (let spin = 0; spin < spins; spin += 1) Math.sqrt(spin);
}

/** Steps of commit.rs: the first and the last release of a lock, the waking, the end. */
const killsOfWaker = ['8:1', '8:2', '8:3', '9:1', '10:1'];

for (const kill of killsOfWaker) {
  test(`sleepers of two processes wake where their waker is killed before step ${kill}`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    for (let round = 0; round < 2; round += 1) {
      const gates = [tvar(0), tvar(0), tvar(0)];
      const begun = tvar(0);
      const wait = async (all: typeof gates, starts: typeof begun, timeoutMs: number) => {
        const sleeps = all.map((gate) =>
          atomicallyWhen(() => check(gate.get() === 1), { timeoutMs }),
        );
        atomically(() => starts.set(1));
        return (await Promise.all(sleeps)).length;
      };
      const there = pool.run(wait, gates, begun, waitMs);
      await atomicallyWhen(() => check(begun.get() === 1), { timeoutMs: waitMs });
      const here = wait(gates, begun, waitMs);
      const env = { ...process.env, MANYCORE_STM_KILL: kill };
      const killed = new Pool({ size: 1, worker: 'process', channel: 'shm', env });
      const open = () =>
        atomically(() => {
          for (const gate of gates) gate.set(1);
        });
      // Nobody but the sleepers uses the variables: they complete the commit.
      const ends = assert.rejects(killed.run(open), (error) => hasCode(error, 'WORKER_EXITED'));
      await withDeadline(ends, waitMs, 'the end of the waker');
      assert.deepEqual(await Promise.all([here, there]), [3, 3]);
      await killed.destroy();
    }
  });
}
