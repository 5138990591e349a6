// One failing item ends the map: its error arrives unchanged, with the place of the item. The error of an
// item that cannot travel names it too. Workers that end are in death.slow.test.ts.

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { hasItemIndex, pmap, taskSignal } from '../../src/public.js';
import { deadlineMs, Gate, openPool } from '../pool/calls/ways.js';
import { waitFor, withDeadline } from '../support/index.js';
import { OddError, Point, spinFor } from './mappers.js';
import { count, mapWays, sharedPool, via, workerWays } from './ways.js';

type Failure = Error & { code?: string; itemIndex?: number };

/** Returns the rejection of a map over `0, 1, … 39` whose mapper calls `thrower` for item 17. */
async function failureOf(thrower: () => unknown, options: object): Promise<Failure> {
  const mapper = (item: number): unknown => (item === 17 ? thrower() : item);
  const map = pmap(count(40), mapper, { chunk: 6, ...options });
  const settled = map.then(
    () => assert.fail('it resolved'),
    (error: unknown) => error,
  );
  return (await withDeadline(settled, deadlineMs, 'the map rejects')) as Failure;
}

const throwers: readonly (readonly [string, () => unknown])[] = [
  [
    'thrown',
    () => {
      throw new OddError(new Point(17, 3), { cause: new TypeError('the reason') });
    },
  ],
  [
    'rejected with',
    () => Promise.reject(new OddError(new Point(17, 3), { cause: new TypeError('the reason') })),
  ],
  [
    'rejected with later',
    async () => {
      await new Promise((turn) => setImmediate(turn));
      throw new OddError(new Point(17, 3), { cause: new TypeError('the reason') });
    },
  ],
];

for (const way of mapWays) {
  for (const [how, thrower] of throwers) {
    test(`${way.name}: an error that is ${how} keeps class, code, cause and properties, and names its item`, async () => {
      const error = await failureOf(thrower, via(way));
      const { itemIndex } = error;
      assert.ok(error instanceof OddError && error instanceof RangeError);
      assert.deepEqual(
        [error.name, error.message, error.code, error.point, itemIndex],
        ['OddError', '17 is odd', 'ODD', new Point(17, 3), 17],
      );
      assert.ok(error.point instanceof Point && error.cause instanceof TypeError);
      assert.deepEqual(Object.keys(error).includes('itemIndex'), false);
    });
  }

  test(`${way.name}: the stack of a failure has its line, the item, and the caller of the map`, async () => {
    async function callerOfTheMap(): Promise<Failure> {
      return await failureOf(() => {
        throw new RangeError('in the mapper');
      }, via(way));
    }
    const { stack = '' } = await callerOfTheMap();
    const place = way.way === undefined ? 'item 17' : 'worker \\d+.*, item 17';
    assert.match(stack, /^RangeError: in the mapper\n.*failures\.slow\.test\./);
    assert.match(stack, new RegExp(`at \\[${place}\\]\\n.*failures\\.slow\\.test\\.`));
    assert.match(stack, /callerOfTheMap/);
  });

  for (const [what, thrown] of [
    ['a text', 'just text'],
    ['a number', 0],
    ['a BigInt', 5n],
    ['undefined', undefined],
    ['null', null],
    ['false', false],
  ] as const) {
    test(`${way.name}: ${what} that is thrown is the cause of MAP_ITEM_FAILED, which names the item`, async () => {
      for (const thrower of [
        () => {
          throw thrown;
        },
        () => Promise.reject(thrown),
      ]) {
        const error = await failureOf(thrower, via(way));
        assert.deepEqual(
          [error.code, error.itemIndex, error.cause],
          ['MAP_ITEM_FAILED', 17, thrown],
        );
        assert.match(error.message, /item 17/);
      }
    });
  }

  test(`${way.name}: an object that is thrown arrives as it is, and names its item`, async () => {
    const error = await failureOf(() => {
      throw { reason: 5 };
    }, via(way));
    assert.deepEqual([error, error.itemIndex], [{ reason: 5 }, 17]);
  });

  test(`${way.name}: a frozen error arrives`, async () => {
    const error = await failureOf(() => {
      throw Object.freeze(new RangeError('frozen'));
    }, via(way));
    assert.deepEqual([error.name, error.message], ['RangeError', 'frozen']);
  });

  test(`${way.name}: a revoked Proxy that is thrown rejects the map`, async () => {
    const mapper = (): never => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      throw proxy;
    };
    // A promise cannot resolve with such a thing, so what came is only counted.
    let rejections = 0;
    const map = pmap(count(3), mapper, via(way)).catch(() => {
      rejections += 1;
    });
    await withDeadline(map, deadlineMs, 'the map rejects');
    assert.equal(rejections, 1);
  });

  test(`${way.name}: an error with a field that cannot travel arrives, and names its item`, async () => {
    const error = await failureOf(() => {
      throw Object.assign(new TypeError('with baggage'), { baggage: new WeakMap(), kept: 7 });
    }, via(way));
    assert.deepEqual(
      [error.name, error.message, Reflect.get(error, 'kept'), error.itemIndex],
      ['TypeError', 'with baggage', 7, 17],
    );
  });

  test(`${way.name}: the first of several failures is the one that is reported`, async () => {
    const mapper = (item: number): never => {
      throw new RangeError(`item ${item}`);
    };
    const map = pmap(count(1000), mapper, via(way));
    await assert.rejects(map, (error: Failure) => error.message === `item ${error.itemIndex}`);
    assert.equal(map.stats().doneItems, 0);
  });

  test(`${way.name}: after a failure no further item is read`, async () => {
    const mapper = (item: number): number => {
      if (item === 3) throw new Error('three');
      return spinFor(1, item);
    };
    const source = count(100_000).values(); // which cannot be closed, and says how far it was read
    await assert.rejects(pmap(source, mapper, { ...via(way), chunk: 1 }), { itemIndex: 3 });
    const next = source.next().value ?? Number.NaN;
    if (way.way !== undefined) {
      const pool = sharedPool(way.way);
      await waitFor(() => pool.stats().runningTasks + pool.stats().waitingTasks === 0);
    }
    assert.equal(source.next().value, next + 1);
  });

  test(`${way.name}: of a map in a mapper the error names the item of the outer map`, async () => {
    const inner = (item: number): number => {
      if (item === 5) throw new RangeError('within');
      return item;
    };
    const error = await failureOf(() => pmap(count(9), inner, { channel: 'inline' }), via(way));
    assert.deepEqual([error.message, error.itemIndex], ['within', 17]);
  });
}

for (const way of workerWays) {
  test(`${way.name}: the tasks of the other items abort after a failure`, async (t) => {
    const gate = new Gate(t);
    const [waiting, heard] = [gate.mark('waiting'), gate.mark('heard')];
    const mapper = async (item: number): Promise<void> => {
      const { existsSync, writeFileSync } = await import('node:fs');
      if (item === 1) {
        while (!existsSync(waiting)) await new Promise((turn) => setTimeout(turn, 1));
        throw new Error('one');
      }
      const aborted = new Promise<unknown>((resolve) => {
        taskSignal()?.addEventListener('abort', resolve);
      });
      writeFileSync(waiting, '');
      await aborted;
      writeFileSync(heard, '');
    };
    const pool = openPool(t, { size: 2, graceMs: 60_000 }, way.way);
    await assert.rejects(pmap([0, 1], mapper, { pool, chunk: 1 }), { itemIndex: 1 });
    await gate.reached('heard');
    assert.equal(await pool.run(() => 'next'), 'next');
    assert.equal(pool.stats().exitedWorkers, 0);
  });

  test(`${way.name}: async items behind a failure in another chunk are not begun`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    const mapper = async (item: number): Promise<void> => {
      const { existsSync, writeFileSync } = await import('node:fs');
      writeFileSync(`${folder}/mark-${item}`, '');
      if (item === 10) {
        while (!existsSync(`${folder}/mark-0`)) await new Promise((turn) => setTimeout(turn, 1));
        throw new Error('ten');
      }
      const aborted = new Promise<unknown>((resolve) => {
        taskSignal()?.addEventListener('abort', resolve);
      });
      await aborted;
    };
    const pool = openPool(t, { size: 2, graceMs: 60_000 }, way.way);
    await assert.rejects(pmap(count(20), mapper, { pool, chunk: 10 }), { itemIndex: 10 });
    await waitFor(() => pool.stats().workers.every(({ tasksInFlight }) => tasksInFlight === 0));
    assert.deepEqual(gate.marks, ['0', '10']);
  });

  for (const [what, item] of [
    ['a WeakRef', new WeakRef({})],
    ['an object that holds a WeakMap', { deep: [new WeakMap()] }],
    ['a promise', new Promise(() => {})],
  ] as const) {
    test(`${way.name}: an item that cannot travel, ${what}, is named by its index`, async () => {
      const items = [...count(17), item, ...count(4)];
      for (const chunk of [1, 6, 100]) {
        const map = pmap(items, () => 1, { ...via(way), chunk });
        await assert.rejects(map, (error: Failure) => {
          assert.deepEqual([error.code, error.itemIndex], ['TRANSFER_UNSUPPORTED', 17]);
          assert.match(error.stack ?? '', /\[.*item 17\]/);
          return true;
        });
      }
      assert.deepEqual(await pmap([1], (each) => each, via(way)), [1]);
    });
  }

  test(`${way.name}: an item whose getter throws is read by the mapper alone`, async () => {
    const item = Object.defineProperty({ x: 0 }, 'x', {
      enumerable: true,
      get() {
        throw new RangeError('not to be read');
      },
    });
    const items = [...Array.from({ length: 17 }, (_, x) => ({ x })), item];
    assert.equal((await pmap(items, () => 1, { ...via(way), chunk: 6 })).length, 18);
    const map = pmap(items, ({ x }) => x, { ...via(way), chunk: 6 });
    await assert.rejects(map, { name: 'RangeError', itemIndex: 17 });
  });

  test(`${way.name}: an item whose own method of sending throws is named by its index`, async () => {
    class Sent {
      [Symbol.for('manycore.send')](): never {
        throw new RangeError('not to be sent');
      }
    }
    const map = pmap([...count(17), new Sent()], () => 1, { ...via(way), chunk: 6 });
    await assert.rejects(map, { itemIndex: 17 });
  });

  for (const [what, make] of [
    ['a WeakRef', () => new WeakRef({})],
    ['deep in an object', () => ({ deep: [new WeakSet()] })],
    [
      'a generator',
      function* () {
        yield 1;
      },
    ],
  ] as const) {
    test(`${way.name}: a result that cannot travel, ${what}, is named by its index`, async () => {
      const error = await failureOf(make, via(way));
      assert.deepEqual([error.code, error.itemIndex], ['TRANSFER_UNSUPPORTED', 17]);
      assert.match(error.stack ?? '', /\[worker .*item 17\]/);
    });
  }

  test(`${way.name}: a mapper that cannot travel is refused before anything is sent or read`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const handle = new WeakRef({});
    let opened = 0;
    const items = {
      [Symbol.iterator]() {
        opened += 1;
        return [1, 2][Symbol.iterator]();
      },
    };
    const mapper = (): unknown => handle.deref();
    const check = { code: 'TRANSFER_UNSUPPORTED', message: /handle/ };
    await assert.rejects(pmap(items, mapper, { pool }), check);
    await assert.rejects(pmap.filter(items, mapper, { pool }), check);
    await assert.rejects(
      pmap.reduce(items, mapper, (left) => left, 0, { pool }),
      check,
    );
    await assert.rejects(pmap.pairs([1, 2], mapper, { pool }), check);
    await assert.rejects(
      pmap(new Float64Array(2), () => Number(mapper()), { pool }),
      check,
    );
    const { completedTasks, failedTasks } = pool.stats();
    assert.deepEqual([opened, completedTasks, failedTasks], [0, 0, 0]);
  });

  test(`${way.name}: a mapper of a module that is gone in the worker is TRANSFER_IMPORT_FAILED, and its worker lives on`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const file = `${new Gate(t).folder}/gone.mjs`;
    writeFileSync(file, 'export class Gone {}');
    const { Gone } = await import(file);
    rmSync(file);
    const list = [1];
    const map = pmap(count(5), () => [new Gone(), list], { pool });
    await assert.rejects(withDeadline(map, deadlineMs, 'the map rejects'), {
      code: 'TRANSFER_IMPORT_FAILED',
    });
    assert.deepEqual(await pmap([2], (item) => item, { pool }), [2]);
    assert.equal(pool.stats().startedWorkers, 1);
  });
}

test('the error of an item that cannot travel names the item, and has its itemIndex', async (t) => {
  const pool = openPool(t, { size: 1 });
  await assert.rejects(
    pmap([1, Promise.resolve(2)], (item) => item, { pool, chunk: 2 }),
    {
      code: 'TRANSFER_UNSUPPORTED',
      message:
        'the item cannot travel: it is a Promise: await it first, or make it inside the function',
      itemIndex: 1,
    },
  );
});

test('hasItemIndex narrows to an error of one item, and to no other', async (t) => {
  const pool = openPool(t, { size: 1 });
  const map = pmap(
    [1, 2],
    (item) => {
      if (item === 2) throw new RangeError('two');
      return item;
    },
    { pool },
  );
  const error: unknown = await map.catch((thrown: unknown) => thrown);
  assert.ok(hasItemIndex(error));
  const index: number = error.itemIndex;
  assert.equal(index, 1);
  for (const other of [new Error('no'), undefined, { itemIndex: 1 }, 'text']) {
    assert.equal(hasItemIndex(other), false);
  }
});
