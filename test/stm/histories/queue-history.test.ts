// The judge of histories of queues, on small ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, random } from '../../support/index.js';
import { contradictionInQueues, type Queue, type QueueRun, type Step } from './queue-history.js';

/** A queue for two items, where worker 0 puts and worker 1 takes, judged by the order of either. */
const sides = {
  put: [{ capacity: 2, alone: ['put', 0] }],
  take: [{ capacity: 2, alone: ['take', 1] }],
} as const;

/** A run of one step. Runs with the same time are beside each other. */
function step(time: number, what: Step['what'], item?: number, more?: Partial<QueueRun>): QueueRun {
  const worker = what === 'put' || what === 'full' ? 0 : 1;
  const id = 100 * time + 10 * (item ?? 0) + worker + 1;
  const steps = [{ queue: 0, what, ...(item !== undefined && { item }) }];
  return {
    id,
    worker,
    steps,
    start: 10 * time,
    end: 10 * time + 9,
    reads: [],
    writes: [],
    ...more,
  };
}

function several(time: number, ...runs: readonly QueueRun[]): QueueRun {
  return { ...step(time, 'none'), worker: 0, steps: runs.flatMap(({ steps }) => steps) };
}

const inVain = { isInVain: true };
const read = (count: number, by: number) => ({ reads: [{ variable: 0, count, by }] });
const both = ['put', 'take'];

/** Histories, and the sides by which something is found in them. */
const ofQueues: Readonly<Record<string, readonly [readonly string[], ...QueueRun[]]>> = {
  'items in their order': [
    ...([
      [],
      step(1, 'put', 1),
      step(2, 'put', 2),
      step(3, 'take', 1),
      step(4, 'take', 2),
    ] as const),
  ],
  'nothing beside a put': [[], step(1, 'put', 1), step(1, 'none'), step(2, 'take', 1)],
  'no room until a take': [
    ...([[], step(1, 'put', 1), step(2, 'put', 2), step(3, 'full'), step(3, 'take', 1)] as const),
    ...[step(4, 'put', 3), step(5, 'take', 2), step(6, 'take', 3), step(7, 'none')],
  ],
  'a put in vain': [
    ...([[], step(1, 'put', 1), step(2, 'put', 2, inVain), step(3, 'take', 1)] as const),
    step(4, 'none'),
  ],
  'a take in vain': [[], step(1, 'put', 1), step(2, 'take', 1, inVain), step(3, 'take', 1)],
  'an own item': [
    [],
    several(1, step(1, 'put', 1), step(1, 'take', 1), step(1, 'none')),
    { ...several(2, step(2, 'put', 2), step(2, 'take', 2), step(2, 'none')), isInVain: true },
  ],
  'an item that is lost': [both, step(1, 'put', 1), step(2, 'put', 2), step(3, 'take', 1)],
  'an item that is taken twice': [both, step(1, 'put', 1), step(2, 'take', 1), step(3, 'take', 1)],
  'an item of an attempt in vain': [both, step(1, 'put', 1, inVain), step(2, 'take', 1)],
  'another order': [
    ...([
      both,
      step(1, 'put', 1),
      step(2, 'put', 2),
      step(3, 'take', 2),
      step(4, 'take', 1),
    ] as const),
  ],
  'another order in one transaction': [
    ...([both, step(1, 'put', 1), step(2, 'put', 2)] as const),
    { ...several(3, step(3, 'take', 2), step(3, 'take', 1)), worker: 1 },
  ],
  'another order than that of a variable': [
    ...([both, step(1, 'put', 1, { writes: [{ variable: 0, count: 1, by: 111 }] })] as const),
    step(2, 'take', 1, read(0, 0)),
  ],
  'a take before its put': [both, step(2, 'put', 1), step(1, 'take', 1)],
  'a take in vain before its put': [
    ...([both, step(2, 'put', 1), step(1, 'take', 1, inVain), step(3, 'take', 1)] as const),
  ],
  'a take in vain out of order': [
    ...([both, step(1, 'put', 1), step(2, 'put', 2), step(3, 'take', 2, inVain)] as const),
    ...[step(4, 'take', 1), step(5, 'take', 2)],
  ],
  'an item too much': [
    ...([both, step(1, 'put', 1), step(2, 'put', 2), step(3, 'put', 3)] as const),
    ...[step(4, 'take', 1), step(5, 'take', 2), step(6, 'take', 3)],
  ],
  'nothing behind an own put': [
    both,
    several(1, step(1, 'put', 1), step(1, 'none')),
    step(2, 'take', 1),
  ],
  'nothing where an item is': [['take'], step(1, 'put', 1), step(2, 'none'), step(3, 'take', 1)],
  'no room for a second item': [['put'], step(1, 'put', 1), step(2, 'full'), step(3, 'take', 1)],
};

for (const [what, [found, ...runs]] of Object.entries(ofQueues)) {
  test(`in a history of a queue, ${what} ${found.length === 0 ? 'fits' : 'is found'}`, () => {
    const seen = Object.entries(sides)
      .filter(([, queues]) => contradictionInQueues(queues, runs) !== undefined)
      .map(([side]) => side);
    assert.deepEqual(seen, found);
  });
}

/** Transactions on a plain queue, one after the other, some in vain; the last one empties it. */
function queueHistory({ integer, pick }: Random, [what, alone]: Queue['alone']): QueueRun[] {
  let items: readonly number[] = [];
  let count = 0;
  const runs: QueueRun[] = [];
  const operate = (queue: number[], isPut: boolean): Step => {
    if (isPut && queue.length === 3) return { queue: 0, what: 'full' };
    if (isPut) count += 1;
    const item = isPut ? count : queue.shift();
    if (isPut) queue.push(count);
    return item === undefined
      ? { queue: 0, what: 'none' }
      : { queue: 0, what: isPut ? 'put' : 'take', item };
  };
  const add = (worker: number, isInVain: boolean, sides: readonly boolean[]): void => {
    const queue = [...items];
    const steps = sides.map((isPut) => operate(queue, isPut));
    if (!isInVain) items = queue;
    const time = 10 * runs.length;
    const [start, end] = [time - integer(0, 5), time + integer(0, 5)];
    runs.push({ id: runs.length + 1, worker, steps, start, end, isInVain, reads: [], writes: [] });
  };
  for (let turn = 0; turn < 30; turn += 1) {
    const worker = integer(0, 2);
    const sides = worker === alone ? [true, false] : [what !== 'put'];
    const steps = Array.from({ length: integer(1, 6) }, () => pick(sides));
    add(worker, integer(0, 3) === 0, steps);
  }
  const rest = items.map(() => false);
  add(2, false, rest);
  return runs;
}

test('histories of a plain queue fit, by the order of each side', (t) => {
  const seeded = random(t);
  for (let round = 0; round < 2000; round += 1) {
    const alone = [seeded.pick(['put', 'take'] as const), 0] as const;
    const runs = queueHistory(seeded, alone);
    const found = contradictionInQueues([{ capacity: 3, alone }], runs);
    assert.equal(found, undefined, JSON.stringify([alone, runs]));
  }
});
