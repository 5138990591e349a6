// Effects of a task on its worker, and values that it can throw or return.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wordAt } from '../../src/channels/shm/layout.js';
import { deadlineMs, openPool, processWays, ways } from '../pool/calls/ways.js';
import { isRunning, waitFor, withDeadline } from '../support/index.js';

function throwingGetter(key: PropertyKey): object {
  return Object.defineProperty({}, key, {
    get() {
      throw new RangeError('not to be read');
    },
  });
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

for (const way of ways) {
  test(`${way.name}: a result that cannot travel rejects, and its worker lives on`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const makers: (() => unknown)[] = [() => new WeakMap(), () => ({ deep: [new WeakRef({})] })];
    for (const make of makers) {
      await assert.rejects(pool.run(make), { code: 'TRANSFER_UNSUPPORTED' });
    }
    await assert.rejects(
      pool.run(async () => new WeakSet()),
      { code: 'TRANSFER_UNSUPPORTED' },
    );
    assert.equal(await pool.run(() => 1), 1);
    assert.equal(pool.stats().startedWorkers, 1);
  });

  for (const [what, make] of [
    ['whose then cannot be read', () => throwingGetter('then')],
    ['whose tag cannot be read', () => throwingGetter(Symbol.toStringTag)],
    ['that is a revoked Proxy', revokedProxy],
  ] as const) {
    test(`${way.name}: a result ${what} rejects its call, and its worker lives on`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      await assert.rejects(withDeadline(pool.run(make), deadlineMs, 'an answer'), Error);
      const later = pool.run(async () => make());
      await assert.rejects(withDeadline(later, deadlineMs, 'an answer'), Error);
      assert.equal(await pool.run(() => 1), 1);
      assert.equal(pool.stats().startedWorkers, 1);
    });
  }

  for (const [what, thrower, thrown] of [
    [
      'a text',
      () => {
        throw 'just text';
      },
      'just text',
    ],
    [
      'undefined',
      () => {
        throw undefined;
      },
      undefined,
    ],
    [
      'null',
      () => {
        throw null;
      },
      null,
    ],
    [
      'an object',
      () => {
        throw { reason: 5 };
      },
      { reason: 5 },
    ],
    [
      'a frozen object',
      () => {
        throw Object.freeze({ reason: 6 });
      },
      { reason: 6 },
    ],
    ['nothing, by a rejection', () => Promise.reject(), undefined],
  ] as const) {
    test(`${way.name}: ${what} that is thrown arrives as it is`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      const settled = await pool.run(thrower).then(
        () => 'resolved',
        (error: unknown) => ({ error }),
      );
      assert.deepEqual(settled, { error: thrown });
      assert.equal(await pool.run(() => 1), 1);
    });
  }

  test(`${way.name}: a frozen error, and one with fields that cannot travel, arrive`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    await assert.rejects(
      pool.run(() => {
        throw Object.freeze(new RangeError('frozen'));
      }),
      { name: 'RangeError', message: 'frozen' },
    );
    await assert.rejects(
      pool.run(() => {
        throw Object.assign(new TypeError('with baggage'), { baggage: new WeakMap(), kept: 7 });
      }),
      { name: 'TypeError', message: 'with baggage', kept: 7 },
    );
  });

  test(`${way.name}: a task that calls process.exit(3) rejects with WORKER_EXITED and that code`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    await assert.rejects(
      pool.run(() => process.exit(3)),
      { code: 'WORKER_EXITED', exitCode: 3, signal: null },
    );
    await assert.rejects(
      pool.run(() => process.exit(0)),
      { code: 'WORKER_EXITED', exitCode: 0 },
    );
    assert.equal(
      await withDeadline(
        pool.run(() => 1),
        deadlineMs,
        'a new worker',
      ),
      1,
    );
  });

  test(`${way.name}: a task that exhausts its heap rejects with WORKER_EXITED, and this process lives`, async (t) => {
    const pool = openPool(t, { size: 1, maxHeapMb: 24 }, way);
    const hog = pool.run(() => {
      const hoard: number[][] = [];
      for (;;) hoard.push(Array.from({ length: 10_000 }, (_, index) => index + 0.5));
    });
    await assert.rejects(withDeadline(hog, 60_000, 'the heap is full'), {
      code: 'WORKER_EXITED',
      message: /heap.*maxHeapMb/,
    });
    assert.equal(
      await withDeadline(
        pool.run(() => 1),
        deadlineMs,
        'a new worker',
      ),
      1,
    );
  });

  test(`${way.name}: an error outside of any task ends that worker alone`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const call = pool.run(async () => {
      setImmediate(() => {
        throw new Error('nobody catches this');
      });
      await new Promise(() => setInterval(() => {}, 1000));
    });
    await assert.rejects(withDeadline(call, deadlineMs, 'the worker ends'), {
      code: 'WORKER_EXITED',
    });
    assert.equal(
      await withDeadline(
        pool.run(() => 1),
        deadlineMs,
        'a new worker',
      ),
      1,
    );
  });
}

test('ten tasks that each end their worker each reject with WORKER_EXITED', async (t) => {
  const pool = openPool(t, { size: 2 });
  const calls = Array.from({ length: 10 }, () => pool.run(() => process.exit(5)));
  const ends = await withDeadline(Promise.allSettled(calls), 60_000, 'all settle');
  assert.deepEqual(
    ends.map((end) => end.status === 'rejected' && end.reason.code),
    Array(10).fill('WORKER_EXITED'),
  );
});

for (const way of processWays) {
  test(`${way.name}: an argument and a result of 200 MiB arrive`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const sizeBytes = 200 * 2 ** 20;
    const bytes = Buffer.alloc(sizeBytes, 1);
    bytes[sizeBytes - 1] = 9;
    const back = await pool.run((given: Buffer) => {
      given[0] = (given[given.length - 1] ?? 0) + 1;
      return given;
    }, bytes);
    assert.deepEqual([back.length, back[0], back[1], back[sizeBytes - 1]], [sizeBytes, 10, 1, 9]);
    assert.equal(bytes[0], 1);
  });
}

test('foreign writes into the segment of a worker replace that worker, and this process lives', async (t) => {
  const pool = openPool(t, { size: 1, channel: 'shm' });
  const replyTailBytes = wordAt.replyTail * Int32Array.BYTES_PER_ELEMENT;
  const pid = await pool.run(async () => {
    const { Worker } = await import('node:worker_threads');
    // Each side keeps its own cursors and writes them again, which would repair a single write. So a thread
    // of the worker writes nonsense without end over the cursor that the parent reads.
    new Worker(
      `const fs = require('node:fs');
       const isSegment = (line) => line.includes('memfd:manycore-') && !line.includes('arena');
       const mapping = fs.readFileSync('/proc/self/maps', 'utf8').split('\\n').find(isSegment);
       const at = parseInt(mapping, 16) + ${replyTailBytes};
       const memory = fs.openSync('/proc/self/mem', 'r+');
       for (;;) fs.writeSync(memory, Buffer.alloc(4, 0xa5), 0, 4, at);`,
      { eval: true },
    );
    return process.pid;
  });
  const codes = new Set<unknown>();
  await waitFor(async () => {
    await pool.run(() => 1).catch((error: { code?: unknown }) => codes.add(error.code));
    return pool.stats().exitedWorkers > 0;
  });
  assert.ok(
    [...codes].every((code) => code === 'WORKER_EXITED'),
    `${[...codes]}`,
  );
  assert.equal(
    await withDeadline(
      pool.run(() => 2),
      deadlineMs,
      'a new worker',
    ),
    2,
  );
  await waitFor(() => !isRunning(pid));
});
