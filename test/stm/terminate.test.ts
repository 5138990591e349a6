// Threads that are terminated at any moment, also in transactions and in methods of collections: each transaction has
// all of its effect or none, nobody is held up, and the numbers of the threads come back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pool } from '../../src/public.js';
import {
  atomically,
  atomicallyWhen,
  check,
  free,
  stmStats,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from '../../src/stm/public.js';
import { deadlineMs } from '../pool/calls/ways.js';
import { isFew, random, waitFor, withDeadline } from '../support/index.js';

const rounds = isFew ? 8 : 20;
const keys = 200;

/** Things that belong together: each key is in all collections or in none, and the counter has their number. */
function makeWorld() {
  return {
    accounts: Array.from({ length: 6 }, () => tvar({ amount: 100 })),
    map: tmap<number, string>(),
    sorted: tsortedMap<number, number>(),
    list: tlist<number>(),
    queue: tqueue<number>({ capacity: 1000 }),
    counter: tcounter(),
    steps: tvar(0),
  };
}

type World = ReturnType<typeof makeWorld>;

/** Changes a world for ever. */
function change(
  { accounts, map, sorted, list, queue, counter, steps }: World,
  count: number,
): never {
  for (let turn = 0; ; turn += 1) {
    const key = Math.floor(Math.random() * count);
    atomically(() => {
      const [from, to] = [accounts[turn % 6], accounts[(turn * 5 + 1) % 6]];
      from?.update(({ amount }) => ({ amount: amount - 1 }));
      to?.update(({ amount }) => ({ amount: amount + 1 }));
      const short = tvar(`short ${turn}`);
      free(short);
      if (map.has(key)) {
        map.delete(key);
        sorted.delete(key);
        list.delete(key);
        counter.add(-1);
        queue.take();
      } else {
        map.set(key, 'large '.repeat(key));
        sorted.set(key, key);
        list.add(key);
        counter.add(1);
        queue.put(key);
      }
      steps.update((step) => step + 1);
    });
  }
}

function assertIsWhole({ accounts, map, sorted, list, queue, counter }: World): void {
  atomically(() => {
    const sum = accounts.reduce((total, account) => total + account.get().amount, 0);
    assert.equal(sum, 600);
    const found = sorted.keys();
    assert.deepEqual(list.keys(), found);
    assert.deepEqual(
      map.keys().sort((left, right) => left - right),
      found,
    );
    for (const key of found) assert.equal(map.get(key), 'large '.repeat(key));
    assert.deepEqual([queue.size, counter.value], [found.length, found.length]);
  });
}

test('threads that are terminated in transactions leave all of each or nothing', async (t) => {
  const { integer } = random(t);
  const world = makeWorld();
  const { steps } = world;
  atomically(() => steps.set(1));
  await atomicallyWhen(() => check(steps.get() === 1)); // the thread that sleeps for this process counts, too
  let most = 0;
  for (let round = 0; round < rounds; round += 1) {
    const pool = new Pool({ size: 2, worker: 'thread' });
    const runs = [1, 2].map(() => assert.rejects(pool.run(change, world, keys)));
    const [before, enough] = [steps.peek(), integer(1, 200)];
    try {
      await atomicallyWhen(() => check(steps.get() >= before + enough), { timeoutMs: deadlineMs });
    } finally {
      await pool.destroy();
    }
    await Promise.all(runs);
    assertIsWhole(world);
    const after = steps.peek();
    changeOnce(world);
    assert.equal(steps.peek(), after + 1);
    most = Math.max(most, stmStats().threads);
  }
  // Threads of one round may still be ending.
  assert.ok(most <= 6, `${most} threads after ${rounds} rounds`);
  await waitFor(() => stmStats().threads <= 2);
});

/** One change of this thread, which meets what others have left. */
function changeOnce({ accounts, steps }: World): void {
  atomically(() => {
    for (const account of accounts) account.set(account.get());
    steps.update((step) => step + 1);
  });
}

test('threads that are terminated while they wait hold nobody up', async () => {
  const [gate, waiting] = [tvar(false), tcounter()];
  await atomicallyWhen(() => check(!gate.get()));
  for (let round = 1; round <= rounds / 4; round += 1) {
    const pool = new Pool({ size: 2, worker: 'thread' });
    const wait = async () => {
      waiting.add();
      await atomicallyWhen(() => check(gate.get()));
    };
    const runs = [1, 2].map(() => assert.rejects(pool.run(wait)));
    const both = atomicallyWhen(() => check(waiting.value === 2 * round));
    await withDeadline(both, deadlineMs, 'both wait');
    await pool.destroy();
    await Promise.all(runs);
  }
  const waits = atomicallyWhen(() => check(gate.get()), { timeoutMs: deadlineMs });
  atomically(() => gate.set(true));
  await waits;
  await waitFor(() => stmStats().threads <= 2);
});
