// Histories of queues that two workers use, alone and together with variables.

import { test } from 'node:test';
import { requireNative } from '../../../src/native.js';
import { someOf } from '../../support/index.js';
import { assertFound, assertOrder, mutants, type Recording } from './programs.js';
import { contradictionInQueues, type Queue, type QueueRun } from './queue-history.js';

requireNative(); // without it there is nothing to run

/** Worker 0 alone puts into the first queue, worker 1 alone takes from the second one. */
const queues: readonly Queue[] = [
  { capacity: 4, alone: ['put', 0] },
  { capacity: 3, alone: ['take', 1] },
];

const recording: Recording = {
  shared: `
    const shared = [${queues.map(({ capacity }) => `tqueue({ capacity: ${capacity} })`)}];
    const variables = [tvar(0), tvar(0)];`,
  worker: `
    let items = 0;
    const put = (queue) => {
      items += 1;
      const item = items * workers + worker;
      const isPut = orElse(() => { shared[queue].put(item); return true; }, () => false);
      return isPut ? { queue, what: 'put', item } : { queue, what: 'full' };
    };
    const take = (queue) => {
      const item = orElse(() => shared[queue].take(), () => undefined);
      return item === undefined ? { queue, what: 'none' } : { queue, what: 'take', item };
    };
    const ways = worker === 0
      ? [() => put(0), () => put(0), () => take(0), () => put(1)]
      : [() => take(0), () => put(1), () => take(1), () => take(1)];`,
  choose: `
    const steps = Array.from({ length: 1 + random(3) }, () => ways[random(ways.length)]);
    const used = [0, 1].filter(() => Math.random() < 0.2);`,
  attempt: `
    for (const at of used) {
      const version = versionOf(at, variables[at].get());
      run.reads.push(version);
      variables[at].set((version.count + 1) * ids + id);
      run.writes.push({ variable: at, count: version.count + 1, by: id });
    }
    for (const step of steps) {
      run.steps.push(step());
      think();
    }`,
  end: `
    const rest = { id: 1 + runs.length, worker: workers, start: now(), reads: [], writes: [] };
    const taken = [];
    for (const queue of shared.keys()) {
      const take = () => orElse(() => shared[queue].take(), () => undefined);
      for (let item = take(); item !== undefined; item = take()) taken.push({ queue, what: 'take', item });
    }
    runs.push({ ...rest, steps: taken, end: now() });`,
  transactions: 3000,
};

const contradictionIn = (runs: readonly QueueRun[]) => contradictionInQueues(queues, runs);

test('transactions on queues have an order, and attempts in vain fit into it', async (t) => {
  await assertOrder(t, recording, contradictionIn);
});

const found = [
  'a commit that loses a write',
  'a commit without validation',
  'a longer snapshot without validation',
  'an attempt that forgets a read',
] as const;
for (const what of someOf(found, 1)) {
  test(`${what} is found by queues`, async (t) => {
    await assertFound(t, recording, mutants[what], contradictionIn);
  });
}
