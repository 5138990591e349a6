// Collections against plain ones, alone and as parts of transactions: random operations with one answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import {
  atomically,
  atomicallyWhen,
  free,
  nested,
  orElse,
  retry,
  type TList,
  type TMap,
  type TSortedMap,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from '../../src/stm/public.js';
import { random } from '../support/index.js';

const coded = (code: Parameters<typeof hasCode>[1]) => (error: unknown) => hasCode(error, code);

type Key = number | string;

/** Kinds of keys: each draws one of a few hundred, so that keys meet. */
const kindsOfKeys: Readonly<Record<string, (next: () => number) => () => Key>> = {
  integers: (next) => () => Math.floor(next() * 400) - 200,
  'numbers of all kinds': (next) => () =>
    [0, -0, 1.5, -1e300, 2 ** 31, -(2 ** 31), Infinity, -Infinity, 5e-324][
      Math.floor(next() * 18)
    ] ?? Math.floor(next() * 500) / 8,
  texts: (next) => () => 'x'.repeat(next() * 3) + Math.floor(next() * 100),
  'texts of all characters': (next) => () =>
    String.fromCharCode(...Array.from({ length: next() * 3 }, () => next() ** 4 * 0xffff)),
  'numbers and texts': (next) => () => {
    const number = Math.floor(next() * 200);
    return next() < 0.5 ? number : String(number);
  },
  'growing numbers': (next) => {
    let last = 0;
    return () => {
      if (next() < 0.7) last += 1;
      return next() < 0.7 ? last : Math.floor(next() * last);
    };
  },
};

const values: readonly ((next: () => number) => unknown)[] = [
  (next) => Math.floor(next() * 1000),
  (next) => next(),
  () => null,
  () => undefined,
  (next) => 'short'.repeat(next() * 4),
  (next) => 'a text that is larger than what a leaf holds '.repeat(next() * 9),
  (next) => ({ deep: [next(), { text: 'x'.repeat(next() * 100) }] }),
  (next) => BigInt(Math.floor(next() * 1e9)) ** 3n,
];

function compare(left: Key, right: Key): number {
  if (typeof left !== typeof right) return typeof left === 'number' ? -1 : 1;
  return left < right ? -1 : Number(left > right);
}

function sorted(model: ReadonlyMap<Key, unknown>): [Key, unknown][] {
  return [...model].sort(([left], [right]) => compare(left, right));
}

function pick<T>(list: readonly T[], next: () => number): T {
  const found = list[Math.floor(next() * list.length)];
  if (found === undefined) throw new RangeError('an empty list');
  return found;
}

/** One random operation on both; parts of a transaction may be undone. */
function operate(
  map: TMap<Key, unknown>,
  model: Map<Key, unknown>,
  key: Key,
  next: () => number,
): void {
  const what = next();
  if (what < 0.45) {
    const value = pick(values, next)(next);
    map.set(key, value);
    model.set(key === 0 ? 0 : key, value);
  } else if (what < 0.75) assert.equal(map.delete(key), model.delete(key));
  else if (what < 0.9) {
    assert.deepEqual(map.get(key), model.get(key));
    assert.equal(map.has(key), model.has(key));
  } else {
    const undone = new Error('undone');
    const change = (): void => {
      map.set(key, 'undone');
      for (const [each] of map.entries().slice(0, 3)) map.delete(each);
      throw undone;
    };
    assert.throws(() => atomically(() => nested(change)), undone);
  }
}

for (const [kind, keysFrom] of Object.entries(kindsOfKeys)) {
  for (const make of [tsortedMap<Key, unknown>, tmap<Key, unknown>]) {
    test(`${make.name} with ${kind} is as a Map`, (t) => {
      const next = random(t).next;
      const keyOf = keysFrom(next);
      const map = make();
      const model = new Map<Key, unknown>();
      for (let round = 0; round < 3000; round += 1) {
        if (next() < 0.8) operate(map, model, keyOf(), next);
        else {
          const several = Math.floor(next() * 8);
          atomically(() => {
            for (let step = 0; step < several; step += 1) operate(map, model, keyOf(), next);
          });
        }
        if (round % 500 !== 499) continue;
        const entries = map.entries().sort(([left], [right]) => compare(left, right));
        assert.deepEqual(entries, sorted(model));
        assert.equal(map.size, model.size);
        if (next() < 0.2) {
          map.clear();
          model.clear();
        }
      }
      free(map);
      assert.throws(() => map.get(1), coded('STM_GONE'));
    });
  }
}

test('a range has the entries from its start on, before its end', (t) => {
  const next = random(t).next;
  const map: TSortedMap<Key, number> = tsortedMap();
  const model = new Map<Key, number>();
  for (let count = 0; count < 300; count += 1) {
    const key = next() < 0.5 ? Math.floor(next() * 500) : `k${Math.floor(next() * 500)}`;
    map.set(key, count);
    model.set(key, count);
  }
  for (let round = 0; round < 200; round += 1) {
    const bound = (): Key | undefined =>
      next() < 0.2 ? undefined : next() < 0.5 ? next() * 500 : `k${Math.floor(next() * 500)}`;
    const [from, to] = [bound(), bound()];
    const limit = next() < 0.5 ? undefined : Math.floor(next() * 20);
    const reverse = next() < 0.5;
    const wanted = sorted(model)
      .filter(([key]) => from === undefined || compare(key, from) >= 0)
      .filter(([key]) => to === undefined || compare(key, to) < 0)
      .sort(([one], [other]) => (reverse ? compare(other, one) : compare(one, other)))
      .slice(0, limit);
    const range = {
      ...(next() < 0.5 || reverse ? { reverse } : {}),
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
      ...(limit !== undefined && { limit }),
    };
    assert.deepEqual(map.entries(range), wanted);
    assert.deepEqual(
      map.keys(range),
      wanted.map(([key]) => key),
    );
    assert.deepEqual(
      map.values(range),
      wanted.map(([, value]) => value),
    );
  }
});

test('a list in reverse is of one moment in the transaction that changes the map, too', (t) => {
  const next = random(t).next;
  const map: TSortedMap<Key, number> = tsortedMap();
  const model = new Map<Key, number>();
  const all = () => map.entries({ reverse: true });
  const wanted = () => sorted(model).reverse();
  assert.deepEqual(all(), []);
  for (let round = 0; round < 300; round += 1) {
    atomically(() => {
      for (let step = next() * 20; step > 0; step -= 1) {
        const key = next() < 0.9 ? Math.floor(next() * 400) : '\uffff'.repeat(512);
        if (next() < 0.5) {
          map.set(key, round);
          model.set(key, round);
        } else {
          map.delete(key);
          model.delete(key);
        }
      }
      assert.deepEqual(all(), wanted());
    });
    assert.deepEqual(all(), wanted());
  }
});

test('ranges in both directions are right wherever leaves were filled and emptied', (t) => {
  const { integer, next } = random(t);
  const room = 2000;
  const map = tsortedMap<number, number>();
  let model = new Map<number, number>();
  /** Sets or deletes neighbours, more than a leaf has. */
  const change = (round: number): void => {
    const [start, count, isFill] = [integer(0, room), integer(1, 150), next() < 0.45];
    for (let key = start; key < Math.min(start + count, room); key += 1) {
      if (isFill) {
        map.set(key, round);
        model.set(key, round);
      } else assert.equal(map.delete(key), model.delete(key));
    }
  };
  const compareRange = (): void => {
    const [from, to] = [integer(-100, room), integer(0, room + 100)];
    const limit = next() < 0.5 ? room : integer(0, 100);
    const wanted: [number, number][] = [];
    for (let key = from; key < to; key += 1) {
      const value = model.get(key);
      if (value !== undefined) wanted.push([key, value]);
    }
    assert.deepEqual(map.entries({ from, to, limit }), wanted.slice(0, limit));
    wanted.reverse();
    assert.deepEqual(map.entries({ from, to, limit, reverse: true }), wanted.slice(0, limit));
  };
  const undone = new Error('undone');
  for (let round = 0; round < 800; round += 1) {
    atomically(() => {
      change(round);
      compareRange();
      if (next() < 0.7) return;
      const before = new Map(model);
      const part = (): void => {
        change(round);
        compareRange();
        throw undone;
      };
      assert.throws(() => nested(part), undone);
      model = before;
    });
    compareRange();
  }
});

test('a map whose keys only grow gives the leaves of those before back', () => {
  const map = tsortedMap<number, string>();
  for (let key = 0; key < 60_000; key += 1) {
    map.set(key, `value ${key}`);
    if (key >= 100) assert.ok(map.delete(key - 100));
  }
  assert.equal(map.entries({ limit: 1 })[0]?.[0], 59_900);
  assert.equal(map.size, 100);
});

test('a part that is undone leaves a map as it was, whatever it split or removed', () => {
  const map = tsortedMap<number, number>();
  for (let key = 0; key < 100; key += 1) map.set(key, key);
  const before = map.entries();
  atomically(() => {
    assert.equal(
      orElse(
        () => {
          for (let key = 100; key < 200; key += 1) map.set(key, key);
          for (let key = 0; key < 90; key += 1) map.delete(key);
          assert.equal(map.size, 110);
          return retry();
        },
        () => 'other',
      ),
      'other',
    );
  });
  assert.deepEqual(map.entries(), before);
});

test('a search through leaves that a part has made leaves no trace of them', () => {
  const map = tsortedMap<number, unknown>();
  for (let key = 0; key < 32; key += 1) map.set(key, 'old');
  const part = () => {
    map.set(20, 'undone');
    map.set(15.5, 0); // divides the leaf
    for (let count = 1; count <= 16; count += 1) map.set(count / 100, 0); // and its first half
    assert.ok(map.has(31));
    throw new Error('undone');
  };
  atomically(() => {
    assert.throws(() => nested(part), { message: 'undone' });
    assert.equal(map.get(20), 'old');
    map.set(20, 'new');
  });
  assert.equal(map.get(20), 'new');
  assert.equal(map.size, 32);
});

test('a list is as a sorted set', (t) => {
  const next = random(t).next;
  const list = tlist<Key>();
  const model = new Map<Key, unknown>();
  const keyOf = kindsOfKeys['numbers and texts']?.(next);
  assert.ok(keyOf);
  for (let round = 0; round < 3000; round += 1) {
    const key: Key = keyOf();
    const what = next();
    if (what < 0.4) {
      assert.equal(list.add(key), !model.has(key));
      model.set(key, true);
    } else if (what < 0.7) assert.equal(list.delete(key), model.delete(key));
    else assert.equal(list.has(key), model.has(key));
  }
  assert.deepEqual(
    [...list],
    sorted(model).map(([key]) => key),
  );
  free(list);
  assert.throws(() => list.has(1), coded('STM_GONE'));
});

test('a queue gives its items in order, and waits where it is empty or full', async () => {
  const queue = tqueue<number>({ capacity: 3 });
  assert.throws(() => queue.take(), coded('STM_WOULD_BLOCK'));
  for (const item of [1, 2, 3]) queue.put(item);
  assert.throws(() => queue.put(4), coded('STM_WOULD_BLOCK'));
  const late = atomicallyWhen(() => queue.put(4));
  assert.equal(queue.peek(), 1);
  assert.equal(queue.take(), 1);
  await late;
  assert.equal(queue.size, 3);
  assert.deepEqual(
    atomically(() => [queue.take(), queue.take(), queue.take()]),
    [2, 3, 4],
  );
  const next = atomicallyWhen(() => queue.take());
  queue.put(5);
  assert.equal(await next, 5);
  free(queue);
  assert.throws(() => queue.peek(), coded('STM_GONE'));
});

test('a counter adds up, also in a transaction that is undone', () => {
  const counter = tcounter(5);
  counter.add();
  counter.add(-3.5);
  assert.throws(() =>
    atomically(() => {
      counter.add(100);
      throw new Error('undone');
    }),
  );
  assert.equal(counter.value, 2.5);
  free(counter);
  assert.throws(() => counter.value, coded('STM_GONE'));
});

test('what no collection can hold is refused, without an effect', () => {
  const map = tsortedMap<Key, unknown>();
  map.set('a', 1);
  const bad: readonly (readonly [() => unknown, Parameters<typeof hasCode>[1]])[] = [
    [() => map.set(Number.NaN, 1), 'STM_VALUE'],
    // @ts-expect-error: no key
    [() => map.get({}), 'STM_VALUE'],
    [() => map.set('x'.repeat(513), 1), 'STM_VALUE_TOO_LARGE'],
    [() => tmap().set('x'.repeat(511), 1), 'STM_VALUE_TOO_LARGE'],
    [() => map.set('a', () => 1), 'STM_VALUE'],
    [() => map.set('a', 'x'.repeat(70_000)), 'STM_VALUE_TOO_LARGE'],
    [() => map.entries({ limit: -1 }), 'OPTION_INVALID'],
    [() => Reflect.apply(map.entries, map, [{ reverse: 'yes' }]), 'OPTION_INVALID'],
    [() => Reflect.apply(map.entries, map, [{ form: 1 }]), 'OPTION_INVALID'],
    [() => Reflect.apply(tmap().entries, tmap(), [{ from: 1 }]), 'OPTION_INVALID'],
    [() => tqueue({ capacity: 0 }), 'OPTION_INVALID'],
    [() => Reflect.apply(tcounter().add, tcounter(), ['1']), 'OPTION_INVALID'],
    // @ts-expect-error: nothing that can be freed
    [() => free({}), 'OPTION_INVALID'],
  ];
  for (const [call, code] of bad) assert.throws(call, coded(code), String(call));
  assert.deepEqual(map.entries(), [['a', 1]]);
});

test('collections are values of variables and of others', () => {
  const inner = tmap<string, TList<number>>();
  const list = tlist<number>();
  inner.set('numbers', list);
  const outer = tvar({ of: [inner] });
  atomically(() => outer.get().of[0]?.get('numbers')?.add(5));
  assert.equal(inner.get('numbers'), list);
  assert.deepEqual(list.keys(), [5]);
});
