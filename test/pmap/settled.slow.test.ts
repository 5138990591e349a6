// Outcomes instead of the first failure: those of `Promise.allSettled`, where each reason is what the
// same map without `settled` rejects with.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pmap } from '../../src/public.js';
import { OddError, Point } from './mappers.js';
import { count, mapWays, via, workerWays } from './ways.js';

type Failure = Error & { code?: string; itemIndex?: number };

function isOdd(item: number): number {
  if (item % 2 === 1) throw new OddError(new Point(item, 0));
  return item;
}

/** Values of what was fulfilled, indices of what was not. */
function described(outcomes: readonly PromiseSettledResult<unknown>[]): unknown[] {
  return outcomes.map((each) =>
    each.status === 'fulfilled' ? each.value : `failed at ${each.reason.itemIndex}`,
  );
}

const throwers: readonly (readonly [string, () => unknown])[] = [
  [
    'an error of a class of its own',
    () => {
      throw new OddError(new Point(1, 2), { cause: new TypeError('the reason') });
    },
  ],
  ['a rejection', () => Promise.reject(new OddError(new Point(1, 2)))],
  [
    'a text',
    () => {
      throw 'just text';
    },
  ],
  [
    'undefined',
    () => {
      throw undefined;
    },
  ],
  [
    'an object',
    () => {
      throw { reason: 5 };
    },
  ],
  [
    'a frozen error',
    () => {
      throw Object.freeze(new RangeError('frozen'));
    },
  ],
  [
    'an error with a field that cannot travel',
    () => {
      throw Object.assign(new TypeError('with baggage'), { baggage: new WeakMap(), kept: 7 });
    },
  ],
  [
    'an error whose cause cannot travel',
    () => {
      throw new RangeError('caused', { cause: new WeakRef({}) });
    },
  ],
  [
    'an AggregateError',
    () => {
      throw new AggregateError([new RangeError('one'), new TypeError('two')], 'several');
    },
  ],
];

/** Returns the class, message and cause of a failure. */
function told(error: unknown): unknown[] {
  const { name, message, code, itemIndex, cause, kept, point, errors } = error as Failure &
    Record<string, unknown>;
  const proto: unknown = Object.getPrototypeOf(error);
  return [proto, name, message, code, itemIndex, String(cause), kept, point, String(errors)];
}

for (const way of mapWays) {
  for (const chunk of [1, 3, 50, 'auto'] as const) {
    test(`${way.name}: with chunk ${chunk} each item has its outcome, in order`, async () => {
      const outcomes = await pmap(count(50), isOdd, { ...via(way), chunk, settled: true });
      assert.deepEqual(
        described(outcomes),
        count(50).map((item) => (item % 2 === 1 ? `failed at ${item}` : item)),
      );
    });
  }

  test(`${way.name}: outcomes are plain objects as of Promise.allSettled`, async () => {
    const outcomes = await pmap([1, 2], (item) => item, { ...via(way), settled: true });
    assert.deepEqual(outcomes, await Promise.allSettled([1, 2]));
  });

  test(`${way.name}: outcomes as they come are those of all items`, async () => {
    const outcomes = await pmap(count(50), isOdd, {
      ...via(way),
      settled: true,
      ordered: false,
      chunk: 3,
    });
    const failed = outcomes.filter((each) => each.status === 'rejected');
    assert.deepEqual(
      failed.map((each) => each.reason.itemIndex).sort((a, b) => a - b),
      count(50).filter((item) => item % 2 === 1),
    );
    assert.equal(outcomes.length, 50);
  });

  test(`${way.name}: outcomes of holes are holes`, async () => {
    const items = [1, 2, 3];
    delete items[1];
    const outcomes = await pmap(items, isOdd, { ...via(way), settled: true });
    assert.deepEqual([outcomes.length, Object.keys(outcomes)], [3, ['0', '2']]);
    const failed = outcomes.filter((each) => each.status === 'rejected');
    assert.deepEqual(
      failed.map((each) => each.reason.itemIndex),
      [0, 2],
    );
  });

  test(`${way.name}: items that reject later have outcomes as well`, async () => {
    const later = async (item: number): Promise<number> => {
      await new Promise((turn) => setImmediate(turn));
      return isOdd(item);
    };
    const outcomes = await pmap(count(30), later, { ...via(way), settled: true, chunk: 4 });
    assert.deepEqual(
      described(outcomes),
      count(30).map((item) => (item % 2 === 1 ? `failed at ${item}` : item)),
    );
  });

  test(`${way.name}: a map whose items all fail resolves with their outcomes`, async () => {
    const map = pmap(
      count(300),
      (item): number => {
        throw new RangeError(`${item}`);
      },
      { ...via(way), settled: true },
    );
    const outcomes = await map;
    assert.ok(
      outcomes.every((each, at) => each.status === 'rejected' && each.reason.message === `${at}`),
    );
    assert.equal(map.stats().doneItems, 300);
  });

  for (const [what, thrower] of throwers) {
    test(`${way.name}: the reason of an outcome, ${what}, is what the map would have rejected with`, async () => {
      const mapper = (item: number): unknown => (item === 2 ? thrower() : item);
      const options = { ...via(way), chunk: 5 };
      const rejected: unknown = await pmap(count(5), mapper, options).catch((error) => error);
      const outcomes = await pmap(count(5), mapper, { ...options, settled: true });
      const outcome = outcomes[2];
      assert.ok(outcome?.status === 'rejected');
      assert.deepEqual(told(outcome.reason), told(rejected));
      assert.deepEqual(
        outcomes.map((each) => each.status === 'fulfilled' && each.value),
        [0, 1, false, 3, 4],
      );
    });
  }

  test(`${way.name}: the stack of a reason has its line, its worker and item, and the caller of the map`, async () => {
    async function callerOfTheMap(): Promise<PromiseSettledResult<number>[]> {
      return await pmap(count(4), isOdd, { ...via(way), chunk: 4, settled: true });
    }
    const outcome = (await callerOfTheMap())[3];
    assert.ok(outcome?.status === 'rejected');
    const { stack } = outcome.reason;
    assert.match(stack, /^OddError: 3 is odd\n.*settled\.slow\.test\./);
    assert.match(stack, /item 3\]\n(?:.*\n)*.*callerOfTheMap/);
    if (way.way !== undefined) assert.match(stack, /at \[worker \d+.*item 3\]/);
  });
}

for (const way of workerWays) {
  for (const chunk of [1, 6, 100]) {
    test(`${way.name}: with chunk ${chunk} an item that cannot travel has its outcome, and the others theirs`, async () => {
      const items: unknown[] = count(30);
      items[4] = new WeakRef({});
      items[17] = { deep: new WeakMap() };
      const outcomes = await pmap(items, (item) => item, { ...via(way), chunk, settled: true });
      assert.deepEqual(
        described(outcomes),
        count(30).map((item) => (item === 4 || item === 17 ? `failed at ${item}` : item)),
      );
      const codes = [4, 17].map((at) => Reflect.get(outcomes[at] ?? {}, 'reason').code);
      assert.deepEqual(codes, ['TRANSFER_UNSUPPORTED', 'TRANSFER_UNSUPPORTED']);
    });

    test(`${way.name}: with chunk ${chunk} a result that cannot travel has its outcome, and the others theirs`, async () => {
      const mapper = (item: number): unknown =>
        item === 4 ? new WeakRef({}) : item === 17 ? { deep: new WeakMap() } : item;
      const outcomes = await pmap(count(30), mapper, { ...via(way), chunk, settled: true });
      assert.deepEqual(
        described(outcomes),
        count(30).map((item) => (item === 4 || item === 17 ? `failed at ${item}` : item)),
      );
      const codes = [4, 17].map((at) => Reflect.get(outcomes[at] ?? {}, 'reason').code);
      assert.deepEqual(codes, ['TRANSFER_UNSUPPORTED', 'TRANSFER_UNSUPPORTED']);
    });
  }

  test(`${way.name}: the error of a result that cannot travel names the path from the result on`, async () => {
    const mapper = (item: number): unknown => (item === 1 ? { deep: [new WeakMap()] } : item);
    const options = { ...via(way), chunk: 3 };
    const rejected: Failure = await pmap(count(3), mapper, options).then(
      () => assert.fail('it resolved'),
      (error) => error,
    );
    const outcome = (await pmap(count(3), mapper, { ...options, settled: true }))[1];
    assert.ok(outcome?.status === 'rejected');
    assert.match(rejected.message, /path: the result\.deep\[0\]$/);
    assert.equal(outcome.reason.message, rejected.message);
  });

  test(`${way.name}: a mapper that cannot travel rejects the map also with settled`, async () => {
    const handle = new WeakRef({});
    const map = pmap([1, 2], () => handle.deref(), { ...via(way), settled: true });
    await assert.rejects(map, { code: 'TRANSFER_UNSUPPORTED' });
  });
}
