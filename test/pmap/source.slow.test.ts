// The input of a map: read no further ahead than allowed, closed when no more is needed, and its errors
// reported.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  ArraySource,
  IteratorSource,
  indexAt,
  itemsOf,
  type Piece,
  partOf,
} from '../../src/pmap/source.js';
import { pmap } from '../../src/public.js';
import { deadlineMs, Gate, openPool } from '../pool/calls/ways.js';
import { blockUntil } from '../pool/tasks.js';
import { waitFor, withDeadline } from '../support/index.js';
import { count, mapWays, turns, via, workerWays } from './ways.js';

/** `0, 1, …` for ever, and what was done to it. */
class Endless {
  read = 0;
  closed = 0;
  readonly #throwsAt: number;
  readonly #fail: () => void;

  constructor(
    throwsAt = Infinity,
    fail = (): void => {
      throw broken;
    },
  ) {
    this.#throwsAt = throwsAt;
    this.#fail = fail;
  }

  *now(): Generator<number> {
    try {
      while (true) yield this.#next();
    } finally {
      this.closed += 1;
    }
  }

  async *later(): AsyncGenerator<number> {
    try {
      while (true) {
        if (this.read % 3 === 0) await new Promise((turn) => setImmediate(turn));
        yield this.#next();
      }
    } finally {
      this.closed += 1;
    }
  }

  #next(): number {
    if (this.read === this.#throwsAt) this.#fail();
    this.read += 1;
    return this.read - 1;
  }
}

const broken = new RangeError('the source is broken');

const kinds: readonly (readonly [string, 'now' | 'later'])[] = [
  ['a generator', 'now'],
  ['an async generator', 'later'],
];

for (const way of mapWays) {
  for (const [kind, open] of kinds) {
    test(`${way.name}: ${kind} is read no further ahead of the reader than lead`, async () => {
      const source = new Endless();
      const stream = pmap.stream(source[open](), (item) => item, { ...via(way), lead: 8 });
      for (let taken = 1; taken <= 40; taken += 1) {
        assert.deepEqual(await stream.next(), { done: false, value: taken - 1 });
        await turns(taken % 4);
        assert.ok(source.read <= taken + 8, `${source.read} read, ${taken} taken`);
      }
      await waitFor(() => source.read > 40, deadlineMs, 'it is read ahead');
      await stream.return?.();
      await waitFor(() => source.closed === 1);
    });

    test(`${way.name}: ${kind} without an end is read only so far while no results are taken`, async () => {
      const source = new Endless();
      const stream = pmap.stream(source[open](), (item) => item, via(way));
      await stream.next();
      let before = -1;
      const hasStopped = async (): Promise<boolean> => {
        before = source.read;
        await turns(50);
        return source.read === before && stream.stats().chunks > 0;
      };
      await waitFor(hasStopped, deadlineMs, 'nothing more is read');
      await stream.return?.();
    });

    test(`${way.name}: ${kind} is closed when the mapper fails`, async () => {
      const source = new Endless();
      const fail = (item: number): number => {
        if (item === 20) throw new Error('twenty');
        return item;
      };
      await assert.rejects(pmap(source[open](), fail, via(way)), {
        message: 'twenty',
        itemIndex: 20,
      });
      await waitFor(() => source.closed === 1);
    });

    test(`${way.name}: ${kind} is closed when its reader leaves the loop`, async () => {
      const source = new Endless();
      for await (const result of pmap.stream(source[open](), (item) => item * 2, via(way))) {
        if (result === 30) break;
      }
      await waitFor(() => source.closed === 1);
      const read = source.read;
      await turns(20);
      assert.equal(source.read, read);
    });

    for (const at of [0, 1, 50]) {
      test(`${way.name}: ${kind} that throws before item ${at} rejects the map with that very error`, async () => {
        const source = new Endless(at);
        const map = pmap(source[open](), (item) => item, { ...via(way), chunk: 4 });
        const outcome = await map.catch((error: unknown) => error);
        assert.equal(outcome, broken);
        assert.equal('itemIndex' in broken, false);
        assert.equal(source.read, at);
      });

      test(`${way.name}: ${kind} that throws before item ${at} ends a stream after results in order`, async () => {
        const source = new Endless(at);
        const seen: number[] = [];
        const read = async (): Promise<void> => {
          const stream = pmap.stream(source[open](), (item) => item, { ...via(way), lead: 6 });
          for await (const result of stream) seen.push(result);
        };
        const outcome = await read().catch((error: unknown) => error);
        assert.equal(outcome, broken);
        assert.deepEqual(seen, count(at));
      });
    }

    test(`${way.name}: ${kind} that ends its own map is closed`, async () => {
      const abort = new AbortController();
      const source = new Endless(50, () => abort.abort());
      const map = pmap(source[open](), (item) => item, { ...via(way), signal: abort.signal });
      await assert.rejects(map, { code: 'ABORTED' });
      await waitFor(() => source.closed === 1);
    });

    test(`${way.name}: ${kind} that throws rejects the map also with settled`, async () => {
      const map = pmap(new Endless(10)[open](), (item) => item, { ...via(way), settled: true });
      assert.equal(await map.catch((error: unknown) => error), broken);
    });
  }

  test(`${way.name}: an input whose iterator cannot be had rejects with what it threw`, async () => {
    const throws = (): never => {
      throw broken;
    };
    for (const items of [{ [Symbol.iterator]: throws }, { [Symbol.asyncIterator]: throws }]) {
      const map = pmap(items as Iterable<number>, (item) => item, via(way));
      assert.equal(await map.catch((error: unknown) => error), broken);
    }
  });

  test(`${way.name}: an iterator that answers with no object rejects the map with a TypeError`, async () => {
    const items = { [Symbol.iterator]: () => ({ next: () => Reflect.get({}, 'nothing') }) };
    await assert.rejects(
      pmap(items, (item) => item, via(way)),
      TypeError,
    );
  });

  for (const [what, close] of [
    ['throws', () => Promise.reject(new Error('not closed'))],
    ['never answers', () => new Promise<never>(() => {})],
  ] as const) {
    test(`${way.name}: an async input whose return() ${what} does not change what the map rejects with`, async () => {
      const items: AsyncIterable<number> = {
        [Symbol.asyncIterator]: () => ({
          next: async () => ({ done: false, value: 1 }),
          return: close,
        }),
      };
      const fail = (): never => {
        throw new Error('the mapper failed');
      };
      const map = pmap(items, fail, via(way));
      await assert.rejects(withDeadline(map, deadlineMs, 'the end'), /the mapper failed/);
    });
  }

  test(`${way.name}: an input that ended by itself is not closed`, async () => {
    let closed = 0;
    const steps = [1, 2, 3];
    const items = {
      [Symbol.iterator]: () => ({
        next: (): IteratorResult<number> => {
          const value = steps.shift();
          return value === undefined ? { done: true, value } : { done: false, value };
        },
        return: (): IteratorResult<number> => {
          closed += 1;
          return { done: true, value: undefined };
        },
      }),
    };
    assert.deepEqual(await pmap(items, (item) => item * 2, via(way)), [2, 4, 6]);
    assert.equal(closed, 0);
  });

  test(`${way.name}: an async input is read one item at a time`, async () => {
    let asked = 0;
    let most = 0;
    let next = 0;
    const items: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => ({
        next: async (): Promise<IteratorResult<number>> => {
          asked += 1;
          most = Math.max(most, asked);
          if (next % 2 === 0) await turns(1);
          asked -= 1;
          next += 1;
          return next > 100 ? { done: true, value: undefined } : { done: false, value: next };
        },
      }),
    };
    assert.equal((await pmap(items, (item) => item, via(way))).length, 100);
    assert.equal(most, 1);
  });

  test(`${way.name}: items of an async input are mapped while it waits for more`, async () => {
    let goOn = (): void => {};
    const wanted = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    async function* given(): AsyncGenerator<number> {
      yield* [1, 2, 3];
      await wanted;
      yield 4;
    }
    const stream = pmap.stream(given(), (item) => item * 2, { ...via(way), chunk: 100 });
    const seen: number[] = [];
    const read = async (): Promise<void> => {
      for await (const result of stream) {
        seen.push(result);
        if (seen.length === 3) goOn();
      }
    };
    await withDeadline(read(), deadlineMs, 'all results');
    assert.deepEqual(seen, [2, 4, 6, 8]);
  });
}

for (const way of workerWays) {
  for (const [kind, open] of kinds) {
    test(`${way.name}: ${kind} is read no further than lead while its items are at work`, async (t) => {
      const gate = new Gate(t);
      const [file, mark] = [gate.file, gate.mark('busy')];
      const source = new Endless();
      const abort = new AbortController();
      const map = pmap(source[open](), (item) => blockUntil(file, mark, item), {
        pool: openPool(t, { size: 2 }, way.way),
        chunk: 100,
        lead: 10,
        signal: abort.signal,
      });
      map.catch(() => {});
      await gate.reached('busy');
      await turns(50);
      assert.ok(source.read <= 10, `${source.read} read`);
      abort.abort();
      await assert.rejects(map, { code: 'ABORTED' });
      await waitFor(() => source.closed === 1);
    });
  }
}

test('taken in pieces of any size, and in parts of them, a sparse array gives each item with its index', () => {
  const anyItems = fc.array(fc.option(fc.nat(), { nil: undefined }), { maxLength: 60 });
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
  fc.assert(
    fc.property(anyItems, sizes, sizes, (values, takes, cuts) => {
      const items: unknown[] = [];
      for (const [at, value] of values.entries()) if (value !== undefined) items[at] = value;
      items.length = values.length;
      const source = new ArraySource(items);
      const found: unknown[] = [];
      found.length = items.length;
      let position = 0;
      const put = (piece: Piece): void => {
        assert.equal(piece.position, position);
        position += piece.count;
        const taken = itemsOf(piece);
        for (let at = 0; at < piece.count; at += 1) found[indexAt(piece, at)] = taken[at];
      };
      for (let round = 0; !source.isDone; round += 1) {
        const piece = source.take(takes[round % takes.length] ?? 1);
        const cut = cuts[round % cuts.length] ?? 1;
        if (piece === undefined) continue;
        if (cut >= piece.count) put(piece);
        else
          for (const [from, to] of [
            [0, cut],
            [cut, piece.count],
          ] as const)
            put(partOf(piece, from, to));
      }
      assert.deepEqual(found, items);
      assert.deepEqual(Object.keys(found), Object.keys(items));
    }),
  );
});

test('an iterator is read no longer at a time than it may be', () => {
  const slow = function* (): Generator<number> {
    for (const item of count(100)) {
      const end = performance.now() + 1;
      while (performance.now() < end);
      yield item;
    }
  };
  assert.deepEqual(new IteratorSource(slow(), 1).take(100)?.items, [0]);
  assert.equal(new IteratorSource(slow(), Infinity).take(100)?.count, 100);
  assert.equal(new IteratorSource(count(1000).values(), Infinity).take(1000)?.count, 1000);
});
