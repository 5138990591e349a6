// Workers that end in the middle of a chunk. Its items run again where the caller allowed that, else the
// error of the map names the lost items.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { pmap, shared } from '../../src/public.js';
import { deadlineMs, Gate, openPool, processWays } from '../pool/calls/ways.js';
import { random, waitFor, withDeadline } from '../support/index.js';
import { crash, isFirst, spinFor } from './mappers.js';
import { count, workerWays } from './ways.js';

const wayOfEachKind: ReadonlySet<string> = new Set(['process over shm', 'thread over memory']);

type Failure = Error & { code?: string; itemIndex?: number };

for (const way of workerWays) {
  test(`${way.name}: a worker that ends in a chunk rejects the map with WORKER_EXITED, which names the items`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    async function callerOfTheMap(): Promise<unknown> {
      const explode = (item: number): number => (item === 6 ? crash() : item);
      return await pmap(count(12), explode, { pool, chunk: 4 });
    }
    await assert.rejects(
      withDeadline(callerOfTheMap(), deadlineMs, 'the map'),
      (error: Failure) => {
        assert.equal(error.code, 'WORKER_EXITED');
        assert.match(error.message, /items 4 to 7 of explode/);
        assert.match(error.stack ?? '', /items 4 to 7\]\n(?:.*\n)*.*callerOfTheMap/);
        return true;
      },
    );
    assert.deepEqual(await pmap([1, 2], (item) => item, { pool }), [1, 2]);
  });

  test(`${way.name}: with retry the lost chunk runs again, and no other`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    const pool = openPool(t, { size: 2 }, way.way);
    const work = (item: number): number => {
      writeFileSync(`${folder}/mark-${item}-${process.hrtime.bigint()}`, '');
      if (item === 6 && isFirst(`${folder}/first`)) crash();
      return item * 10;
    };
    const map = pmap(count(20), work, { pool, chunk: 4, retry: 1 });
    assert.deepEqual(
      await withDeadline(map, deadlineMs, 'the map'),
      count(20).map((item) => item * 10),
    );
    const runs = (item: number): number =>
      gate.marks.filter((mark) => mark.startsWith(`${item}-`)).length;
    assert.deepEqual(
      count(20).map(runs),
      count(20).map((item) => ([4, 5, 6].includes(item) ? 2 : 1)),
    );
  });

  test(`${way.name}: settled, exactly the items of the lost chunk are rejected`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const map = pmap(count(20), (item) => (item === 6 ? crash() : item), {
      pool,
      chunk: 4,
      settled: true,
    });
    const outcomes = await withDeadline(map, deadlineMs, 'the map');
    assert.deepEqual(
      outcomes.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.code)),
      count(20).map((item) => (item >= 4 && item < 8 ? 'WORKER_EXITED' : item)),
    );
    const lost = outcomes[5];
    assert.ok(lost?.status === 'rejected');
    assert.match(lost.reason.message, /items 4 to 7/);
    assert.equal(map.stats().doneItems, 20);
  });

  test(`${way.name}: settled and alone in its chunk, an item that was lost is named by itemIndex`, async (t) => {
    const pool = openPool(t, { size: 2 }, way.way);
    const map = pmap(count(6), (item) => (item % 3 === 1 ? crash() : item), {
      pool,
      chunk: 1,
      settled: true,
    });
    const outcomes = await withDeadline(map, deadlineMs, 'the map');
    assert.deepEqual(
      outcomes.map((each) =>
        each.status === 'fulfilled' ? each.value : `lost ${each.reason.itemIndex}`,
      ),
      [0, 'lost 1', 2, 3, 'lost 4', 5],
    );
  });

  for (const [what, make] of [
    ['a typed array', () => new Float64Array(count(40))],
    [
      'a typed array in shared memory',
      () => new Float64Array(shared(320).buffer, 0, 40).map((_, at) => at),
    ],
  ] as const) {
    test(`${way.name}: with retry ${what} is mapped right though a worker ends`, async (t) => {
      const { folder } = new Gate(t);
      const pool = openPool(t, { size: 2 }, way.way);
      const work = (item: number): number => {
        if (item === 13 && isFirst(`${folder}/first`)) crash();
        return item + 100;
      };
      const map = pmap(make(), work, { pool, chunk: 10, retry: 1 });
      const results = await withDeadline(map, deadlineMs, 'the map');
      assert.deepEqual(
        [...results],
        count(40).map((item) => item + 100),
      );
    });
  }

  test(`${way.name}: with retry and in place no item is mapped twice over`, async (t) => {
    const { folder } = new Gate(t);
    const pool = openPool(t, { size: 2 }, way.way);
    const items = new Float64Array(shared(320).buffer, 0, 40);
    const work = (item: number, index: number): number => {
      if (index === 13 && isFirst(`${folder}/first`)) crash();
      return item + 100;
    };
    const map = pmap(items, work, { pool, chunk: 10, retry: 1, into: items });
    await withDeadline(map, deadlineMs, 'the map');
    assert.deepEqual([...items], new Array(40).fill(100));
  });
}

// Workers take their time to start: what follows from a loss is tested for one way of each kind.
for (const way of workerWays.filter(({ name }) => wayOfEachKind.has(name))) {
  test(`${way.name}: a worker that ends with one item names it, in the message and by itemIndex`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const map = pmap(count(5), (item) => (item === 3 ? crash() : item), { pool, chunk: 1 });
    await assert.rejects(withDeadline(map, deadlineMs, 'the map'), (error: Failure) => {
      assert.equal(error.code, 'WORKER_EXITED');
      assert.match(error.message, /item 3 of/);
      assert.equal(error.itemIndex, 3);
      return true;
    });
  });

  test(`${way.name}: a mapper that calls process.exit() is a worker that ended`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const map = pmap(count(5), (item) => (item === 3 ? process.exit(0) : item), { pool, chunk: 5 });
    await assert.rejects(withDeadline(map, deadlineMs, 'the map'), {
      code: 'WORKER_EXITED',
      exitCode: 0,
    });
  });

  test(`${way.name}: an async mapper that ends its worker rejects the map`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const later = async (item: number): Promise<number> => {
      await new Promise((turn) => setImmediate(turn));
      return item === 3 ? crash() : item;
    };
    const map = pmap(count(5), later, { pool, chunk: 2 });
    await assert.rejects(withDeadline(map, deadlineMs, 'the map'), {
      code: 'WORKER_EXITED',
      message: /items 2 to 3 of later/,
    });
  });

  test(`${way.name}: a chunk whose workers all end runs as often as retry says, and once more`, async (t) => {
    const gate = new Gate(t);
    const { folder } = gate;
    const pool = openPool(t, { size: 1 }, way.way);
    const work = (item: number): number => {
      if (item !== 1) return item;
      writeFileSync(`${folder}/mark-${process.hrtime.bigint()}`, '');
      return crash();
    };
    const map = pmap(count(3), work, { pool, chunk: 1, retry: 2 });
    await assert.rejects(withDeadline(map, deadlineMs, 'the map'), { code: 'WORKER_EXITED' });
    assert.equal(gate.marks.length, 3);
  });

  test(`${way.name}: an onProgress that throws when items were lost rejects the map`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const map = pmap(count(4), (item) => (item === 0 ? crash() : item), {
      pool,
      chunk: 2,
      settled: true,
      onProgress() {
        throw new RangeError('told');
      },
    });
    await assert.rejects(withDeadline(map, deadlineMs, 'the map'), /told/);
  });

  test(`${way.name}: a stream gives what came before the loss, and then its error`, async (t) => {
    const pool = openPool(t, { size: 1 }, way.way);
    const stream = pmap.stream(count(8), (item) => (item === 4 ? crash() : item), {
      pool,
      chunk: 2,
    });
    const seen: number[] = [];
    const read = async (): Promise<void> => {
      for await (const result of stream) seen.push(result);
    };
    await assert.rejects(withDeadline(read(), deadlineMs, 'the stream'), {
      code: 'WORKER_EXITED',
      message: /items 4 to 5/,
    });
    assert.deepEqual(seen, [0, 1, 2, 3]);
  });

  test(`${way.name}: reductions, filters and pairs come through a lost worker with retry`, async (t) => {
    const { folder } = new Gate(t);
    const pool = openPool(t, { size: 2 }, way.way);
    const options = { pool, chunk: 3, retry: 1 };
    const dieOnce = (item: number, name: string): void => {
      if (item === 4 && isFirst(`${folder}/${name}`)) crash();
    };
    const text = await pmap.reduce(
      count(10),
      (item) => {
        dieOnce(item, 'in map');
        return `${item}`;
      },
      (left, right) => {
        if (right.includes('7')) dieOnce(4, 'in combine');
        return left + right;
      },
      '>',
      options,
    );
    assert.equal(text, '>0123456789');
    const kept = await pmap.filter(
      count(10),
      (item) => {
        dieOnce(item, 'in filter');
        return item % 2 === 0;
      },
      options,
    );
    assert.deepEqual(kept, [0, 2, 4, 6, 8]);
    const sums = await pmap.pairs(
      count(5),
      (a, b) => {
        dieOnce(b, 'in pairs');
        return a + b;
      },
      options,
    );
    assert.deepEqual(sums, [1, 2, 3, 4, 3, 4, 5, 5, 6, 7]);
  });
}

for (const way of processWays) {
  test(`${way.name}: SIGKILL is reported as the signal that ended the worker`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const kill = (item: number): number => {
      if (item === 1) process.kill(process.pid, 'SIGKILL');
      return item;
    };
    await assert.rejects(pmap(count(2), kill, { pool, chunk: 2 }), {
      code: 'WORKER_EXITED',
      signal: 'SIGKILL',
      exitCode: null,
    });
  });

  test(`${way.name}: with retry a map comes through while its workers are killed at random`, async (t) => {
    const dice = random(t);
    const pool = openPool(t, { size: 2 }, way);
    const map = pmap(count(1000), (item) => spinFor(0.2, item), { pool, chunk: 10, retry: 100 });
    for (let kill = 1; kill <= 3; kill += 1) {
      await waitFor(() => map.stats().doneItems >= kill * 200, deadlineMs, `${kill * 200} items`);
      const ready = pool.stats().workers.filter(({ state, pid }) => state === 'ready' && pid);
      const { pid } = ready.length > 0 ? dice.pick(ready) : { pid: undefined };
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    }
    assert.deepEqual(await withDeadline(map, deadlineMs, 'the map'), count(1000));
    await waitFor(() => pool.stats().exitedWorkers > 0);
  });
}
