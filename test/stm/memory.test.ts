// Inserts and deletes without end: the memory that they take stays what it was after the first part of them, in one
// process, and where one inserts what another one deletes. MANYCORE_ROUNDS sets how many there are.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  atomically,
  atomicallyWhen,
  free,
  stmStats,
  type TCounter,
  type TList,
  type TMap,
  type TQueue,
  type TSortedMap,
  type TVar,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from '../../src/stm/public.js';
import { openPool } from '../pool/calls/ways.js';
import { isFew, random } from '../support/index.js';
import { sharingWays } from './sharing.js';

const rounds = Number(process.env['MANYCORE_ROUNDS'] ?? (isFew ? 40_000 : 200_000));
/** The share of the rounds after which the memory is what it stays. */
const firstPart = 0.2;
/** Chunks of the heap that lists of free blocks may take later: some for each of the sizes, and each thread. */
const slackBytes = 8 * 65_536;
/** Job of a thread without a pause; handles of what it met are given back behind it. */
const roundsPerJob = 1000;

const kinds: Readonly<Record<string, () => (round: number, key: number) => void>> = {
  'a map': () => {
    const map = tmap<number, string>();
    return (round, key) => {
      if (!map.delete(key)) map.set(key, 'x'.repeat(round % 150));
    };
  },
  'a sorted map': () => {
    const map = tsortedMap<string, unknown>();
    return (round, key) => {
      if (!map.delete(`key ${key}`))
        map.set(`key ${key}`, { round, large: 'x'.repeat(round % 150) });
    };
  },
  'a sorted map of keys that only grow': () => {
    const map = tsortedMap<number, number>();
    return (round) => {
      map.set(round, round);
      map.delete(round - 500);
    };
  },
  'a list': () => {
    const list = tlist<number>();
    return (_, key) => {
      if (!list.delete(key % 50)) list.add(key % 50);
    };
  },
  'a queue': () => {
    const queue = tqueue<string>();
    return (round) => {
      queue.put('x'.repeat(round % 150));
      if (round % 500 >= 250) atomically(() => [queue.take(), queue.size > 250 && queue.take()]);
    };
  },
  variables: () => {
    const kept: TVar<unknown>[] = [];
    return (round, key) => {
      kept.push(tvar('x'.repeat(key)));
      if (kept.length > 100) {
        const [first] = kept.splice(round % 100, 1);
        if (first !== undefined) free(first);
      }
    };
  },
};

/** Runs `work` in jobs; fails if the memory grows behind the first part. */
async function assertIsFlat(t: TestContext, work: (round: number) => void): Promise<void> {
  const before = stmStats().memoryBytes;
  let first = 0;
  for (let round = 0; round < rounds; round += 1) {
    work(round);
    if (round % roundsPerJob === 0) await new Promise((resolve) => setImmediate(resolve));
    if (round === Math.floor(firstPart * rounds)) first = stmStats().memoryBytes;
  }
  const last = stmStats().memoryBytes;
  t.diagnostic(`${before} bytes at first, ${first} after the first part, ${last} at the end`);
  assert.ok(last <= first + slackBytes, `${last} bytes, ${first} after the first part`);
}

for (const [name, make] of Object.entries(kinds)) {
  test(`${rounds} inserts and deletes in ${name} keep the memory flat`, async (t) => {
    const { integer } = random(t);
    const step = make();
    await assertIsFlat(t, (round) => step(round, integer(0, 300)));
  });
}

interface World {
  readonly map: TMap<number, string>;
  readonly sorted: TSortedMap<string, number>;
  readonly list: TList<number>;
  readonly queue: TQueue<string>;
  readonly made: TQueue<TVar<string>>;
  readonly count: TCounter;
}

for (const way of sharingWays) {
  test(`the memory stays flat where one inserts and another one deletes; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    const world: World = {
      map: tmap(),
      sorted: tsortedMap(),
      list: tlist(),
      queue: tqueue({ capacity: 50 }),
      made: tqueue({ capacity: 50 }),
      count: tcounter(),
    };
    const insert = async (given: World, from: number, to: number) => {
      const { map, sorted, list, queue, made, count } = given;
      for (let key = from; key < to; key += 1) {
        await atomicallyWhen(() => {
          queue.put('x'.repeat(key % 150));
          made.put(tvar('y'.repeat(key % 300)));
          map.set(key, 'large '.repeat(key % 50));
          sorted.set(`key ${key}`, key);
          list.add(key);
          count.add(1);
        });
        if (key % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const remove = async (given: World, from: number, to: number) => {
      const { map, sorted, list, queue, made, count } = given;
      for (let key = from; key < to; key += 1) {
        await atomicallyWhen(() => {
          const text = queue.take();
          if (text.length !== key % 150) throw new Error(`${text} as item ${key}`);
          free(made.take());
          const found = [map.delete(key), sorted.delete(`key ${key}`), list.delete(key)];
          if (!found.every(Boolean)) throw new Error(`${found} for key ${key}`);
          count.add(-1);
        });
        if (key % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const part = Math.ceil(rounds / 100);
    const sizes: number[] = [];
    for (let at = 0; at < 10; at += 1) {
      const range = [at * part, (at + 1) * part] as const;
      // In turns: what a thread has freed is what it, or the other one, needs next.
      const both = at % 2 === 0 ? [insert, remove] : [remove, insert];
      await Promise.all(both.map((work) => pool.run(work, world, ...range)));
      sizes.push(stmStats().memoryBytes);
    }
    const { map, sorted, list, queue, made, count } = world;
    assert.deepEqual([map.size, sorted.size, list.keys().length], [0, 0, 0]);
    assert.deepEqual([queue.size, made.size, count.value], [0, 0, 0]);
    t.diagnostic(`bytes after each part: ${sizes.join(', ')}`);
    const [, first = 0] = sizes;
    const last = sizes.at(-1) ?? 0;
    assert.ok(last <= first + slackBytes, `${last} bytes, ${first} after the first part`);
  });
}
