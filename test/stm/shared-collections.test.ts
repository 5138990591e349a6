// Collections that several workers use at once: nothing is lost, and lists are of one moment.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  atomically,
  atomicallyWhen,
  type TCounter,
  type TList,
  type TMap,
  type TQueue,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
} from '../../src/stm/public.js';
import { openPool } from '../pool/calls/ways.js';
import { sharingWays } from './sharing.js';

const workers = 3;

for (const way of sharingWays) {
  for (const make of [tsortedMap<number, number>, tmap<number, number>]) {
    test(`${make.name}: workers that use neighbours lose nothing; ${way.name}`, async (t) => {
      const pool = openPool(t, { size: workers }, way);
      const map = make();
      const work = (given: TMap<number, number>, own: number, count: number) => {
        const kept = new Map<number, number>();
        for (let round = 0; round < 4000; round += 1) {
          const key = Math.floor(Math.random() * 300) * count + own;
          if (Math.random() < 0.5) {
            given.set(key, round);
            kept.set(key, round);
          } else if (given.delete(key) !== kept.delete(key)) throw new Error(`key ${key}`);
        }
        return [...kept];
      };
      const kept = await Promise.all(
        Array.from({ length: workers }, (_, own) => pool.run(work, map, own, workers)),
      );
      const wanted = kept.flat().sort(([left], [right]) => left - right);
      assert.deepEqual(
        map.entries().sort(([left], [right]) => left - right),
        wanted,
      );
    });
  }

  test(`a list of a map is of one moment; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: workers }, way);
    const accounts = tsortedMap<number, number>();
    const count = 200;
    for (let account = 0; account < count; account += 1) accounts.set(account, 100);
    const move = (given: typeof accounts) => {
      for (let round = 0; round < 2000; round += 1) {
        const [from, to] = [Math.floor(Math.random() * 200), Math.floor(Math.random() * 200)];
        atomically(() => {
          given.update(from, (value = 0) => value - 1);
          given.update(to, (value = 0) => value + 1);
        });
      }
    };
    const look = (given: typeof accounts) => {
      for (let round = 0; round < 200; round += 1) {
        const sum = given.values().reduce((total, value) => total + value, 0);
        if (sum !== 20_000) throw new Error(`a sum of ${sum}`);
      }
    };
    await Promise.all([
      pool.run(move, accounts),
      pool.run(move, accounts),
      pool.run(look, accounts),
    ]);
    assert.equal(
      accounts.values().reduce((total, value) => total + value, 0),
      100 * count,
    );
  });

  test(`a list in reverse is of one moment while leaves come and go; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: workers }, way);
    const map = tsortedMap<number, boolean>();
    const half = 500;
    // Each key has one in the other half, so leaves far from each other change together.
    const toggle = (given: typeof map, distance: number) => {
      for (let round = 0; round < 3000; round += 1) {
        const key = Math.floor(Math.random() * distance);
        atomically(() => {
          for (const each of [key, key + distance]) {
            if (!given.delete(each)) given.set(each, true);
          }
        });
      }
    };
    const look = (given: typeof map, distance: number) => {
      for (let round = 0; round < 300; round += 1) {
        const keys = given.keys({ reverse: true });
        const lower = keys.filter((key) => key < distance);
        const upper = keys.filter((key) => key >= distance).map((key) => key - distance);
        if (lower.join() !== upper.join()) throw new Error(`${upper.join()} and ${lower.join()}`);
        if (keys.some((key, at) => at > 0 && key >= (keys[at - 1] ?? 0)))
          throw new Error(keys.join());
      }
    };
    await Promise.all([
      pool.run(toggle, map, half),
      pool.run(toggle, map, half),
      pool.run(look, map, half),
    ]);
    assert.deepEqual(map.keys({ reverse: true }), map.keys().reverse());
  });

  test(`a list in reverse is whole while others empty the leaves before it; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: workers }, way);
    const map = tsortedMap<number, number>();
    // Blocks of more keys than three leaves have: at least two leaves end when one is emptied.
    const [blocks, size] = [6, 100];
    for (let key = 0; key < (blocks / 2) * size; key += 1)
      map.set(2 * size * Math.floor(key / size) + (key % size), 0);
    const move = (given: typeof map, count: number, keys: number) => {
      for (let round = 1; round <= 150; round += 1) {
        atomically(() => {
          const all = Array.from({ length: count }, (_, block) => block).sort(
            () => Math.random() - 0.5,
          );
          const from = all.find((block) => given.has(block * keys)) ?? -1;
          const to = all.find((block) => !given.has(block * keys)) ?? -1;
          for (let key = 0; key < keys; key += 1) {
            if (!given.delete(from * keys + key)) throw new Error(`no key ${key} of block ${from}`);
            given.set(to * keys + key, round);
          }
        });
      }
    };
    const look = (given: typeof map, count: number, keys: number) => {
      for (let round = 0; round < 400; round += 1) {
        const from = Math.floor(Math.random() * count) * keys;
        const found = given.entries(round % 2 === 0 ? { reverse: true } : { from, reverse: true });
        const isAll = round % 2 === 1 || found.length === (count / 2) * keys;
        // Each block has all its keys from the last one to the first one, with one value.
        const isWhole = found.every(([key, value], at) => {
          const [start] = found[at - (at % keys)] ?? [0];
          return key === start - (at % keys) && value === found[at - (at % keys)]?.[1];
        });
        if (!isAll || !isWhole || found.length % keys !== 0) throw new Error(JSON.stringify(found));
      }
    };
    await Promise.all([
      pool.run(move, map, blocks, size),
      pool.run(move, map, blocks, size),
      pool.run(look, map, blocks, size),
    ]);
    assert.deepEqual(map.keys({ reverse: true }), map.keys().reverse());
    assert.equal(map.size, (blocks / 2) * size);
  });

  test(`a list, a queue and a counter lose nothing; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: workers }, way);
    const list = tlist<number>();
    const queue = tqueue<number>({ capacity: 5 });
    const counter = tcounter();
    const items = 600;
    const toggle = (given: TList<number>, own: number, count: number) => {
      const kept = new Set<number>();
      for (let round = 0; round < 2000; round += 1) {
        const key = Math.floor(Math.random() * 30) * count + own;
        if (kept.has(key)) {
          if (!given.delete(key)) throw new Error(`no key ${key}`);
          kept.delete(key);
        } else if (given.add(key)) kept.add(key);
        else throw new Error(`key ${key} is there`);
      }
      return [...kept];
    };
    const kept = await Promise.all(
      Array.from({ length: workers }, (_, own) => pool.run(toggle, list, own, workers)),
    );
    assert.deepEqual(
      list.keys(),
      kept.flat().sort((left, right) => left - right),
    );
    const put = async (given: TQueue<number>, count: number) => {
      for (let item = 0; item < count; item += 1) await atomicallyWhen(() => given.put(item));
    };
    const take = async (given: TQueue<number>, sum: TCounter, count: number) => {
      let last = -1;
      for (let item = 0; item < count; item += 1) {
        const found = await atomicallyWhen(() => {
          const taken = given.take();
          sum.add(taken);
          return taken;
        });
        if (found <= last) throw new Error(`${found} behind ${last}`);
        last = found;
      }
    };
    await Promise.all([
      pool.run(put, queue, items),
      pool.run(take, queue, counter, items / 2),
      pool.run(take, queue, counter, items / 2),
    ]);
    assert.equal(queue.size, 0);
    assert.equal(counter.value, (items * (items - 1)) / 2);
  });
}

test('a collection that comes back is the one that was sent', async (t) => {
  const [way] = sharingWays;
  assert.ok(way);
  const pool = openPool(t, { size: 1 }, way);
  const all = [tsortedMap(), tmap(), tlist(), tqueue(), tcounter()] as const;
  const back = await pool.run((given: typeof all) => given, all);
  for (const [at, each] of all.entries()) assert.equal(back[at], each);
});
