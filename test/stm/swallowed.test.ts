// Transactions that catch what ends their attempt and go on: they run again, and commit nothing of that attempt.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  afterCommit,
  atomically,
  atomicallyWhen,
  check,
  free,
  nested,
  orElse,
  retry,
  type TVar,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from '../../src/stm/public.js';
import { deadlineMs, openPool } from '../pool/calls/ways.js';
import { withDeadline } from '../support/index.js';
import { sharingWays } from './sharing.js';
import { Other } from './words.js';

/** Calls `call`; returns what it throws, if it does. */
function swallow(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** A collection of each kind with two variables, for what an attempt that is over may do. */
function makeWorld() {
  const world = {
    one: tvar(0),
    two: tvar(0),
    third: tvar('third'),
    map: tmap<number, number>(),
    sorted: tsortedMap<number, number>(),
    list: tlist<number>(),
    queue: tqueue<number>(),
    counter: tcounter(1),
  };
  world.map.set(1, 1);
  world.sorted.set(1, 1);
  world.list.add(1);
  world.queue.put(1);
  return world;
}

type World = ReturnType<typeof makeWorld>;

const actions: Readonly<Record<string, (world: World) => unknown>> = {
  nothing: () => {},
  get: ({ two }) => two.get(),
  'get of another one': ({ third }) => third.get(),
  set: ({ third }) => third.set('zombie'),
  update: ({ third }) => third.update(() => 'zombie'),
  peek: ({ two }) => two.peek(),
  free: ({ third }) => free(third),
  tvar: () => tvar('zombie'),
  'tvar of a large value': () => tvar('zombie'.repeat(100)),
  tmap: () => tmap(),
  atomically: ({ third }) => atomically(() => third.set('zombie')),
  nested: ({ third }) => nested(() => third.set('zombie')),
  orElse: ({ third }) => orElse(() => third.set('zombie')),
  'orElse that retries': ({ third }) =>
    orElse(
      () => retry(),
      () => third.set('zombie'),
    ),
  retry: () => retry(),
  check: () => check(false),
  afterCommit: () => afterCommit(() => assert.fail('of an attempt that is over')),
  'map.set': ({ map }) => map.set(1, 9),
  'map.delete': ({ map }) => map.delete(1),
  'map.clear': ({ map }) => map.clear(),
  'sorted.update': ({ sorted }) => sorted.update(1, () => 9),
  'sorted.entries': ({ sorted }) => sorted.entries(),
  'list.add': ({ list }) => list.add(2),
  'list.delete': ({ list }) => list.delete(1),
  'queue.put': ({ queue }) => queue.put(2),
  'queue.take': ({ queue }) => queue.take(),
  'counter.add': ({ counter }) => counter.add(9),
  'another error': () => {
    throw new Error('of an attempt that is over');
  },
  'an error that goes on': () => assert.equal(1, 2),
};

for (const [name, act] of Object.entries(actions)) {
  test(`an attempt whose conflict was caught has no effect: ${name}`, () => {
    const other = new Other();
    const world = makeWorld();
    const { one, two, third, map, sorted, list, queue, counter } = world;
    let attempts = 0;
    const result = atomically(() => {
      attempts += 1;
      const first = one.get();
      if (attempts > 1) return [first, two.get()];
      other.set([one, 1], [two, 1]); // another one commits now
      const ended = swallow(() => two.get());
      assert.ok(ended instanceof Error && ended.name === 'LeavesTransaction', String(ended));
      if (name === 'an error that goes on') act(world);
      else swallow(() => act(world));
      return [first, 'zombie'];
    });
    assert.deepEqual([attempts, result], [2, [1, 1]]);
    assert.equal(third.peek(), 'third');
    assert.deepEqual([map.entries(), sorted.entries()], [[[1, 1]], [[1, 1]]]);
    assert.deepEqual([list.keys(), queue.size, queue.peek()], [[1], 1, 1]);
    assert.equal(counter.value, 1);
    other.close();
  });
}

test('a way that caught a conflict and retries does not lead to the next way', () => {
  const other = new Other();
  const [one, two] = [tvar(0), tvar(0)];
  let attempts = 0;
  const ways = () =>
    orElse<unknown>(
      () => {
        attempts += 1;
        const first = one.get();
        if (attempts === 1) other.set([one, 1], [two, 1]);
        const failed = swallow(() => two.get());
        if (failed !== undefined) retry(); // "there is no second one": which there always is
        return first;
      },
      () => 'a way for what never is',
    );
  assert.equal(atomically(ways), 1);
  assert.equal(attempts, 2);
  attempts = 0;
  assert.equal(ways(), 1);
  other.close();
});

test('a wait that caught a conflict and retries runs again at once', async () => {
  const other = new Other();
  const [one, two] = [tvar(0), tvar(0)];
  let attempts = 0;
  const waits = atomicallyWhen(
    () => {
      attempts += 1;
      one.get();
      if (attempts === 1) other.set([one, 1], [two, 1]);
      if (swallow(() => two.get()) !== undefined) retry();
      return two.get();
    },
    { timeoutMs: deadlineMs },
  );
  assert.equal(await waits, 1);
  assert.equal(attempts, 2);
  other.close();
});

test('a transaction whose retry was caught commits nothing, and waits', async () => {
  const [ready, seen] = [tvar(0), tvar('nothing')];
  const waits = atomicallyWhen(
    () => {
      if (swallow(() => check(ready.get() === 1)) !== undefined) seen.set('zombie');
      return seen.get();
    },
    { timeoutMs: deadlineMs },
  );
  assert.equal(seen.peek(), 'nothing');
  atomically(() => ready.set(1));
  assert.equal(await waits, 'nothing');
});

for (const way of sharingWays) {
  test(`conflicts of workers that are caught never commit; ${way.name}`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    const [one, two, stop, seen] = [tvar(0), tvar(0), tvar(false), tvar<unknown>([])];
    const write = () => {
      for (let round = 1; !stop.peek(); round += 1) {
        atomically(() => {
          one.set(round);
          two.set(round);
        });
      }
    };
    const read = () => {
      let caught = 0;
      for (let round = 0; caught < 100 && round < 100_000; round += 1) {
        const get = (variable: TVar<number>): number | undefined => {
          try {
            return variable.get();
          } catch {
            caught += 1;
            return undefined;
          }
        };
        let attempts = 0;
        const found = atomically(() => {
          attempts += 1;
          const first = get(one);
          // Others commit meanwhile; a transaction that failed often stops them.
          for (let spin = 0; attempts < 9 && spin < 20_000; spin += 1) Math.sqrt(spin);
          seen.set([first, get(two)]);
          return seen.get();
        });
        const [first, second] = Array.from(Object(found));
        if (first === undefined || first !== second) throw new Error(`${first} and ${second}`);
      }
      return caught;
    };
    const writes = pool.run(write);
    try {
      const caught = await withDeadline(pool.run(read), 3 * deadlineMs, 'conflicts');
      assert.ok(caught >= 100, `${caught} conflicts`);
    } finally {
      atomically(() => stop.set(true));
    }
    await writes;
  });
}
