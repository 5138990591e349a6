// The contract of a pool's workers as tests, for any kind: what a call gives and gets is the same wherever it runs. In
// a partition some of it is refused, by a code. All of one kind run on one pool, because guests start slowly.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { Pool, type PoolOptions, pmap, report, run, shared } from '../../src/public.js';
import { atomically, tvar } from '../../src/stm/public.js';

export interface WorkerSubject {
  readonly name: string;
  readonly worker: NonNullable<PoolOptions['worker']>;
  /** True: its code is not trusted. */
  readonly isPartition: boolean;
  readonly skip?: string | false;
}

interface Promised {
  readonly title: string;
  readonly check: (pool: Pool, subject: WorkerSubject) => Promise<void>;
}

class Point {
  readonly x: number;

  constructor(x: number) {
    this.x = x;
  }
}

/** A value of each kind of data. */
function allKinds(): unknown[] {
  const circle: unknown[] = [];
  circle.push(circle);
  return [
    ...[undefined, null, true, -0, Number.NaN, Infinity, 2 ** 53, -1n, 2n ** 100n],
    ...['', 'text', '\u2028\u{1f600}', '\ud800'],
    ...[new Date(5), /a(?<name>b)/giu, new URL('https://a.example/?b#c')],
    ...[new Map([['a', { deep: [1] }]]), new Set([1, 'a']), { a: { b: [] } }, [], circle],
    ...[Buffer.from('bytes'), new Uint8Array(3), new Float64Array([1.5]), new BigInt64Array([-1n])],
    ...[new ArrayBuffer(8), new DataView(new ArrayBuffer(4)), Object.create(null)],
    ...[
      new Error('plain', { cause: new TypeError('cause') }),
      new AggregateError([new Error('a')]),
    ],
  ];
}

const contract: readonly Promised[] = [
  {
    title: 'a call has its arguments and what it has captured',
    async check(pool) {
      const factor = 7;
      const byName = new Map([['a', { deep: [1n, new Date(5)] }]]);
      assert.equal(await pool.run((x: number) => x * factor, 6), 42);
      assert.equal(await pool.run(async () => byName.get('a')?.deep[0]), 1n);
    },
  },
  {
    title: 'values of all kinds of data go there and come back',
    async check(pool) {
      const values = allKinds();
      const back = await pool.run((given: unknown[]) => given, values);
      assert.equal(back.length, values.length);
      for (const [at, value] of values.entries())
        assert.deepStrictEqual(back[at], value, `value ${at}`);
    },
  },
  {
    title: 'an object that is twice in a value is one there, and one in the result',
    async check(pool) {
      const one = { a: 1 };
      const [first, second, isOne] = await pool.run(
        (a: object, [b]: object[]) => [a, b, a === b] as const,
        one,
        [one],
      );
      assert.deepEqual([first === second, isOne], [true, true]);
    },
  },
  {
    title: 'an error has its class, message, cause, code and a stack with its file',
    async check(pool) {
      const failed = pool.run(() => {
        throw Object.assign(new RangeError('as thrown', { cause: new TypeError('why') }), {
          code: 'OWN',
        });
      });
      await assert.rejects(failed, (error) => {
        assert.ok(error instanceof RangeError && error.cause instanceof TypeError);
        assert.deepEqual([error.message, Reflect.get(error, 'code')], ['as thrown', 'OWN']);
        assert.match(error.stack ?? '', /conformance\/worker/);
        return true;
      });
      const thrown: unknown = await pool
        .run(async () => Promise.reject(5))
        .catch((error: unknown) => error);
      assert.equal(thrown, 5);
    },
  },
  {
    title: 'a result with code comes back, or is refused by its code',
    async check(pool, { isPartition }) {
      const uses: readonly (() => unknown)[] = [() => () => 1, () => new Point(1), () => Point];
      for (const use of uses) {
        const result = pool.run(use);
        if (isPartition) await assert.rejects(result, (error) => hasCode(error, 'PARTITION_CODE'));
        else assert.ok(await result);
      }
      assert.equal(await pool.run((point: Point) => point.x, new Point(3)), 3);
    },
  },
  {
    title: 'a stream comes in order, ends with its error, and stops when it is left',
    async check(pool) {
      const items: number[] = [];
      const stream = await pool.run(function* () {
        for (let at = 0; at < 300; at += 1) yield at;
        throw new RangeError('end');
      });
      await assert.rejects(
        async () => {
          for await (const item of stream) items.push(item);
        },
        (error) => error instanceof RangeError,
      );
      assert.deepEqual(items, [...Array(300).keys()]);
      const endless = await pool.run(function* () {
        for (let at = 0; ; at += 1) yield at;
      });
      for await (const item of endless) if (item === 5) break;
      assert.equal(await pool.run(() => 1), 1);
    },
  },
  {
    title: 'a call past its time is ended, whether it waits or computes',
    async check(pool) {
      const calls = pool.with({ timeoutMs: 100 });
      const isLate = (error: unknown): boolean => hasCode(error, 'TASK_TIMED_OUT');
      await assert.rejects(
        calls.run(() => new Promise(() => {})),
        isLate,
      );
      await assert.rejects(
        calls.run(() => {
          for (;;);
        }),
        isLate,
      );
      assert.equal(await pool.run(() => 1), 1);
    },
  },
  {
    title: 'an aborted call is rejected, with the reason as its cause',
    async check(pool) {
      const given = new AbortController();
      const onReport = (): void => given.abort(new RangeError('not wanted'));
      const waiting = pool.with({ signal: given.signal, onReport }).run(async () => {
        await report('runs');
        await new Promise(() => {});
      });
      await assert.rejects(waiting, ({ name, cause }) => {
        assert.deepEqual([name, cause instanceof RangeError], ['AbortError', true]);
        return true;
      });
      const early = pool.with({ signal: AbortSignal.abort() }).run(() => 1);
      await assert.rejects(early, (error) => error instanceof Error && error.name === 'AbortError');
    },
  },
  {
    title: 'a call whose worker ends is run again, so often',
    async check(pool) {
      let runs = 0;
      const onReport = (): void => {
        runs += 1;
      };
      const ended = pool.with({ retry: 2, onReport }).run(async () => {
        await report('runs');
        process.exit(3);
      });
      await assert.rejects(ended, (error) => hasCode(error, 'WORKER_EXITED'));
      assert.equal(runs, 3);
      assert.equal(await pool.run(() => 1), 1);
    },
  },
  {
    title: 'reports come in order, before the result, and the call can wait for each',
    async check(pool) {
      const seen: unknown[] = [];
      const onReport = async (value: unknown): Promise<void> => {
        await new Promise((resolve) => setImmediate(resolve));
        seen.push(value);
      };
      const result = await pool.with({ onReport }).run(async () => {
        for (let at = 0; at < 100; at += 1) await report({ at });
        return 'done';
      });
      assert.equal(result, 'done');
      assert.deepEqual(
        seen,
        Array.from({ length: 100 }, (_, at) => ({ at })),
      );
    },
  },
  {
    title: 'the call of a higher priority is first',
    async check(pool) {
      const order: string[] = [];
      let release = (): void => {};
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      const first = pool.with({ onReport: () => gate }).run(async () => report('waits'));
      const calls = [-1, 0, 1].map((priority) =>
        pool
          .with({ priority })
          .run(() => 1)
          .then(() => order.push(`${priority}`)),
      );
      release();
      await Promise.all([first, ...calls]);
      assert.deepEqual(order, ['1', '0', '-1']);
    },
  },
  {
    title: 'a map has all results in order, and the error of an item',
    async check(pool) {
      const factor = 3;
      const input = Array.from({ length: 500 }, (_, at) => at);
      const mapped = await pmap(input, (x) => x * factor, { pool });
      assert.deepEqual(
        mapped,
        input.map((x) => x * 3),
      );
      const failing = pmap(
        input,
        (x) => {
          if (x === 400) throw new RangeError('400');
        },
        { pool },
      );
      await assert.rejects(failing, (error) => error instanceof RangeError);
      assert.equal(await pool.run(() => 1), 1); // the items that were given up have ended
    },
  },
  {
    title: '16 MiB go there and back',
    async check(pool) {
      const bytes = Buffer.alloc(2 ** 24, 'abcdefg');
      const back = await pool.run((given: Buffer) => given, bytes);
      assert.ok(bytes.equals(back));
      const text = 'é'.repeat(2 ** 20);
      assert.equal(await pool.run((given: string) => given, text), text);
    },
  },
  {
    title: 'a hundred calls at a time are answered, each by its own result',
    async check(pool) {
      const before = pool.stats().completedTasks;
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, at) => pool.run(async (x: number) => x + 1, at)),
      );
      assert.deepEqual(
        results,
        Array.from({ length: 100 }, (_, at) => at + 1),
      );
      assert.equal(pool.stats().completedTasks - before, 100);
    },
  },
  {
    title: 'the memory of the program is shared, or it is not there',
    async check(pool, { isPartition }) {
      const bytes = shared(8);
      await pool.run((given: Buffer) => given.fill(5), bytes);
      assert.equal(bytes[0], isPartition ? 0 : 5);
      const variable = tvar(1);
      const set = pool.run(() => atomically(() => variable.set(2)));
      if (isPartition) await assert.rejects(set, (error) => hasCode(error, 'STM_OTHER_MEMORY'));
      else await set;
      assert.equal(variable.peek(), isPartition ? 1 : 2);
    },
  },
  {
    title: 'nothing of a partition runs in the program; a call inside of a worker runs there',
    async check(pool, { isPartition }) {
      const inline = async (): Promise<unknown> => pool.with({ whenBusy: 'inline' }).run(() => 1);
      if (isPartition) await assert.rejects(inline, (error) => hasCode(error, 'OPTION_INVALID'));
      else assert.equal(await inline(), 1);
      assert.equal(await pool.run(() => run(() => 2)), 2); // inside of its worker
    },
  },
  {
    title: 'statistics name the worker and count calls',
    async check(pool, { isPartition }) {
      const { workers, completedTasks, failedTasks, exitedWorkers } = pool.stats();
      assert.equal(workers.length, 1);
      assert.equal(pool.stats().partition !== undefined, isPartition);
      assert.ok(completedTasks > 100 && failedTasks > 0 && exitedWorkers > 0);
    },
  },
];

/** Runs every test on workers of this kind. */
export function testWorker(subject: WorkerSubject): void {
  const { name, worker, skip = false } = subject;
  test(`${name}: the contract of workers`, { skip }, async (t) => {
    const pool = new Pool({ size: 1, worker, maxTasksAhead: 1, graceMs: 50, onOutput: () => {} });
    t.after(() => pool.destroy());
    for (const { title, check } of contract) {
      await t.test(`${name}: ${title}`, { timeout: 60_000 }, () => check(pool, subject));
    }
  });
}
