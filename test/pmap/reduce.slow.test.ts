// Reductions: neighbours are combined, in their order, wherever the chunks end.

import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { pmap, taskSignal } from '../../src/public.js';
import { deadlineMs, Gate, openPool } from '../pool/calls/ways.js';
import { random, waitFor, withDeadline } from '../support/index.js';
import { Point } from './mappers.js';
import { count, mapWays, via, workerWays } from './ways.js';

/** Associative, and not commutative: the order of the items shows. */
function join(left: string, right: string): string {
  return `${left}${right}`;
}

function lettersOf(item: number): string {
  return String.fromCharCode(97 + (item % 26));
}

const letters = count(500).map(lettersOf).join('');

async function* later(items: number): AsyncGenerator<number> {
  for (let item = 0; item < items; item += 1) {
    if (item % 50 === 0) await new Promise((turn) => setImmediate(turn));
    yield item;
  }
}

for (const way of mapWays) {
  for (const chunk of ['auto', 1, 2, 7, 499, 500, 501] as const) {
    test(`${way.name}: with chunk ${chunk} texts are joined in the order of the items`, async () => {
      const text = await pmap.reduce(count(500), lettersOf, join, '>', { ...via(way), chunk });
      assert.equal(text, `>${letters}`);
    });
  }

  test(`${way.name}: the order of a reduction does not depend on which chunk is first`, async () => {
    const slowFirst = (item: number): string => {
      const end = performance.now() + (item < 5 ? 3 : 0);
      while (performance.now() < end);
      return lettersOf(item);
    };
    const options = { ...via(way), ordered: false };
    assert.equal(await pmap.reduce(count(500), slowFirst, join, '', options), letters);
  });

  for (const [what, map, combine] of [
    ['an async map', async (item: number) => lettersOf(item), join],
    ['an async combine', lettersOf, async (left: string, right: string) => left + right],
    [
      'both async',
      async (item: number) => lettersOf(item),
      async (left: string, right: string) => {
        await new Promise((turn) => setImmediate(turn));
        return left + right;
      },
    ],
    [
      'a map that is async for some items',
      (item: number) => (item % 2 === 0 ? Promise.resolve(lettersOf(item)) : lettersOf(item)),
      join,
    ],
  ] as const) {
    test(`${way.name}: ${what} joins in order`, async () => {
      const text = await pmap.reduce(count(500), map, combine, '>', { ...via(way), chunk: 9 });
      assert.equal(text, `>${letters}`);
    });
  }

  for (const [what, open] of [
    ['a generator', () => count(500).values()],
    ['an async generator', () => later(500)],
    ['a typed array', () => new Uint16Array(count(500))],
  ] as const) {
    test(`${way.name}: ${what} is reduced in its order`, async () => {
      const text = await pmap.reduce(open() as Iterable<number>, lettersOf, join, '>', via(way));
      assert.equal(text, `>${letters}`);
    });
  }

  for (const [what, open] of [
    ['an array', (): Iterable<number> => []],
    ['holes', () => new Array<number>(9)],
    ['a generator', () => count(0).values()],
    ['a typed array', () => new Int8Array(0)],
  ] as const) {
    test(`${way.name}: ${what} without items is reduced to the initial value itself`, async () => {
      const initial = new Point(1, 2);
      const fail = (): never => {
        throw new Error('called');
      };
      assert.equal(await pmap.reduce(open(), fail, fail, initial, via(way)), initial);
    });
  }

  test(`${way.name}: one item is combined with the initial value, once`, async () => {
    const text = await pmap.reduce([25], lettersOf, join, 'a to ', via(way));
    assert.equal(text, 'a to z');
  });

  test(`${way.name}: holes take no part in a reduction`, async () => {
    const items = [1, 2, 3, 4];
    delete items[1];
    const text = await pmap.reduce(items, (item, index) => `${item}@${index} `, join, '', via(way));
    assert.equal(text, '1@0 3@2 4@3 ');
  });

  test(`${way.name}: undefined, null and false are values like others in a reduction`, async () => {
    const last = await pmap.reduce(
      [0, 1, 2, 3],
      (item) => [undefined, null, false, 0][item],
      (_, right) => right,
      'initial' as unknown as undefined,
      { ...via(way), chunk: 1 },
    );
    assert.equal(last, 0);
    const first = await pmap.reduce(
      [0, 1],
      () => 1 as number | undefined,
      (left) => left,
      undefined,
      { ...via(way), chunk: 1 },
    );
    assert.equal(first, undefined);
  });

  test(`${way.name}: arrays are combined to one in order`, async () => {
    const list = await pmap.reduce(
      count(100),
      (item) => (item % 3 === 0 ? [] : [item]),
      (left, right) => left.concat(right),
      [] as number[],
      { ...via(way), chunk: 4 },
    );
    assert.deepEqual(
      list,
      count(100).filter((item) => item % 3 !== 0),
    );
  });

  test(`${way.name}: a reduction ends however small its lead is`, async () => {
    for (const lead of [1, 2, 3, 5, 50]) {
      const abort = new AbortController();
      const options = { ...via(way), lead, signal: abort.signal };
      const reduction = pmap.reduce(count(60), lettersOf, join, '>', options);
      try {
        const text = await withDeadline(
          reduction,
          deadlineMs,
          `the end of a reduction with lead ${lead}`,
        );
        assert.equal(text, `>${letters.slice(0, 60)}`);
      } finally {
        abort.abort();
        await reduction.catch(() => {});
      }
    }
  });

  test(`${way.name}: a map that throws names the item`, async () => {
    const map = (item: number): string => {
      if (item === 33) throw new RangeError('no letter');
      return lettersOf(item);
    };
    const reduction = pmap.reduce(count(60), map, join, '', { ...via(way), chunk: 4 });
    await assert.rejects(reduction, { name: 'RangeError', message: 'no letter', itemIndex: 33 });
  });

  test(`${way.name}: a combine that throws or rejects rejects with that error`, async () => {
    const combines = [
      (left: string, right: string): string => {
        if (right.includes('z')) throw new RangeError('z');
        return left + right;
      },
      async (left: string, right: string): Promise<string> => {
        if (right.includes('z')) throw new RangeError('z');
        return left + right;
      },
    ];
    for (const combine of combines) {
      for (const chunk of [1, 5, 60]) {
        const reduction = pmap.reduce(count(60), lettersOf, combine, '', { ...via(way), chunk });
        await assert.rejects(reduction, { name: 'RangeError', message: 'z' });
      }
    }
  });

  test(`${way.name}: an error where partial results meet does not blame an item that is not to blame`, async () => {
    // One item a chunk: items are combined with each other only where partial results meet.
    const combine = (left: number, right: number): number => {
      if (left + right > 100) throw new RangeError('too much');
      return left + right;
    };
    const reduction = pmap.reduce([1, 2, 3, 4, 200], (item) => item, combine, 0, {
      ...via(way),
      chunk: 1,
    });
    await assert.rejects(reduction, (error: Error & { itemIndex?: number }) => {
      assert.equal(error.message, 'too much');
      assert.ok(error.itemIndex === undefined || error.itemIndex === 4, `item ${error.itemIndex}`);
      return true;
    });
  });

  test(`${way.name}: what cannot be reduced, or reduce, is refused`, async () => {
    const bad: readonly (readonly [unknown[], string])[] = [
      [[5, () => 1, () => 1, 0], 'OPTION_INVALID'],
      [[[1], 'map', () => 1, 0], 'TASK_NOT_FUNCTION'],
      [[[1], () => 1, undefined, 0], 'TASK_NOT_FUNCTION'],
      [[[1], () => 1, () => 1], 'OPTION_INVALID'],
      [[[1], () => 1, () => 1, 0, { settled: true }], 'OPTION_INVALID'],
      [[[1], () => 1, () => 1, 0, { into: new Int8Array(1) }], 'OPTION_INVALID'],
      [[[1], () => 1, () => 1, 0, { chunk: 0 }], 'OPTION_INVALID'],
    ];
    for (const [args, code] of bad) {
      await assert.rejects(Reflect.apply(pmap.reduce, undefined, args), { code });
    }
    await assert.rejects(Reflect.apply(pmap.reduce, undefined, [[1], () => 1, 0]), {
      message: 'combine is 0: it must be a function',
    });
    const initial: number | undefined = undefined;
    assert.equal(
      await pmap.reduce(
        [],
        (): number | undefined => 1,
        () => 1,
        initial,
        via(way),
      ),
      undefined,
    );
  });

  test(`${way.name}: a reduction is aborted, in its maps`, async () => {
    const abort = new AbortController();
    const options = { ...via(way), signal: abort.signal };
    const reduction = pmap.reduce(later(Infinity), lettersOf, (left) => left, '', options);
    await waitFor(() => reduction.stats().chunks > 2, deadlineMs, 'it is at work');
    abort.abort();
    await assert.rejects(reduction, { code: 'ABORTED' });
  });
}

for (const way of workerWays) {
  test(`${way.name}: a reduction that failed combines no further`, async (t) => {
    const combined = new Gate(t).mark('combined');
    const until = async (isOver: () => boolean): Promise<void> => {
      do await new Promise((turn) => setTimeout(turn, 1));
      while (!isOver());
    };
    // One worker waits with its item until the other combines what it mapped meanwhile.
    const map = async (item: number): Promise<number> => {
      if (item !== 10) return item;
      await until(() => existsSync(combined));
      throw new RangeError('ten');
    };
    // A combine ends when the failure has reached its worker: calls after that are calls too many.
    const combine = async (left: number, right: number): Promise<number> => {
      const signal = taskSignal();
      appendFileSync(combined, '.');
      await until(() => signal?.aborted === true);
      return left + right;
    };
    const pool = openPool(t, { size: 2, graceMs: 60_000 }, way.way);
    const reduction = pmap.reduce(count(500), map, combine, 0, { pool, chunk: 1 });
    await assert.rejects(reduction, { message: 'ten', itemIndex: 10 });
    await waitFor(() => pool.stats().runningTasks + pool.stats().waitingTasks === 0, deadlineMs);
    const calls = readFileSync(combined, 'utf8').length;
    assert.ok(calls < 10, `combine was called ${calls} times`);
  });

  test(`${way.name}: a chunk answers with one value: workers combine what they mapped`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const pids = await pmap.reduce(
      count(40),
      () => [process.pid],
      (left, right) => [...new Set([...left, ...right, process.pid])],
      [] as number[],
      { pool, chunk: 10 },
    );
    const [worker] = pool.stats().workers;
    assert.deepEqual(pids, [worker?.pid ?? process.pid]);
    // Four chunks of items, and the partial results of them with the initial value.
    assert.equal(pool.stats().completedTasks, 5);
  });

  test(`${way.name}: a partial result that cannot travel blames no item that is not in its chunk`, async () => {
    const reduction = pmap.reduce(
      count(2),
      () => [1, 2, 3, 4, 5, new WeakRef({})] as unknown[],
      (left, right) => [...left, ...right],
      [] as unknown[],
      { ...via(way), chunk: 2 },
    );
    await assert.rejects(reduction, (error: Error & { code?: string; itemIndex?: number }) => {
      assert.equal(error.code, 'TRANSFER_UNSUPPORTED');
      // The WeakRef is sixth in the list, and there are two items.
      assert.ok((error.itemIndex ?? 0) < 2, `item ${error.itemIndex}`);
      return true;
    });
  });
}

test('however items are cut, a reduction joins them in order', async (t) => {
  const { seed } = random(t);
  const options = fc.record({
    chunk: fc.oneof(fc.constant('auto' as const), fc.integer({ min: 1, max: 40 })),
    items: fc.integer({ min: 0, max: 120 }),
    ordered: fc.boolean(),
  });
  const pool = openPool(t, { size: 3 });
  await fc.assert(
    fc.asyncProperty(options, async ({ items, ...rest }) => {
      const text = await pmap.reduce(count(items), lettersOf, join, '>', { pool, ...rest });
      assert.equal(text, `>${letters.slice(0, items)}`);
    }),
    { seed, numRuns: 60 },
  );
});
