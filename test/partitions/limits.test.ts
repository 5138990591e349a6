// Each end of a sandbox for a limit is one event, and counted by the limit; other ends are not.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import fs from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { metricsText } from '../../src/observe/metrics/public.js';
import {
  type PoolOptions,
  report,
  type SandboxOptions,
  type WorkerLimit,
} from '../../src/public.js';
import { linesOf, valuesOf } from '../observe/metrics/scrape.js';
import { ownRuntime } from '../observe/runtime.js';
import { waitFor } from '../support/index.js';
import { codeOf, forger, groups, sandboxPool, skip } from './support.js';

/** Collects the events from now on. */
function limitEvents(t: TestContext): unknown[] {
  const events: unknown[] = [];
  const onMessage = (message: unknown): void => void events.push(message);
  subscribe('manycore:worker:limit', onMessage);
  t.after(() => unsubscribe('manycore:worker:limit', onMessage));
  return events;
}

const ends: readonly {
  /** The cause, where a limit has several. */
  readonly name?: string;
  readonly limit: WorkerLimit;
  readonly run: () => unknown;
  readonly reason: RegExp;
  readonly limits?: Omit<SandboxOptions, 'kind'>;
  readonly options?: PoolOptions;
}[] = [
  {
    name: 'memory, by a heap of objects',
    limit: 'memory',
    run: () => fullHeap(),
    reason: /^memory limit of 512 MiB \(memoryMb\)$/,
    limits: { memoryMb: 512 },
  },
  {
    name: 'memory, by the heap of the pool',
    limit: 'memory',
    run: () => fullHeap(),
    reason: /^limit of 64 MiB for its heap \(maxHeapMb\)$/,
    options: { maxHeapMb: 64 },
  },
  {
    limit: 'memory',
    run: () => {
      const all: Buffer[] = [];
      for (;;) all.push(Buffer.alloc(2 ** 20, 1));
    },
    reason: /^memory limit of 128 MiB \(memoryMb\)$/,
    limits: { memoryMb: 128 },
  },
  {
    limit: 'tasks',
    run: () => tooManyProcesses(),
    reason: /^it had reached its limit of 128 processes and threads \(maxProcesses\)$/,
    limits: { maxProcesses: 1, memoryMb: 4096 },
  },
  {
    limit: 'output',
    run: () => {
      for (;;) {
        try {
          fs.writeSync(2, Buffer.alloc(2 ** 16, 97));
        } catch {} // the pipe is full
      }
    },
    reason: /^it wrote more than 1 MiB of output \(outputMb\)$/,
    limits: { outputMb: 1 },
  },
  {
    name: 'output, counted in bytes',
    limit: 'output',
    run: () => {
      write(Buffer.from('\u20ac'.repeat(2 ** 19)));
      return new Promise(() => {});
    },
    reason: /^it wrote more than 1 MiB of output \(outputMb\)$/,
    limits: { outputMb: 1 },
  },
  {
    limit: 'result',
    run: () => Buffer.alloc(3 * 2 ** 20),
    reason: /^it sent a value of more than 2 MiB \(resultMb\): /,
    limits: { resultMb: 2 },
  },
  {
    limit: 'data',
    run: () => forged(1),
    reason: /^it sent a frame of kind 1, which no partition may send$/,
  },
  {
    limit: 'protocol',
    run: () => forged(24),
    reason: /sent an item too much$/,
  },
];

function fullHeap(): never {
  const all: object[] = [];
  for (;;) all.push(new Array(1000).fill({}));
}

/** Writes it whole. */
function write(bytes: Buffer): void {
  for (let from = 0; from < bytes.length; ) {
    try {
      from += fs.writeSync(2, bytes, from);
    } catch {} // the pipe is full
  }
}

/** Sends a frame of this kind for its own call, and never ends. */
function forged(kind: number): Promise<never> {
  forger().send(kind, 0, 0, Buffer.from([1]));
  return new Promise(() => {});
}

/** Starts processes until one is refused, which nothing catches. */
function tooManyProcesses(): Promise<never> {
  const all: ChildProcess[] = [];
  const again = (): void => {
    all.push(spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']));
    setImmediate(again);
  };
  again();
  return new Promise(() => {});
}

const quiet: PoolOptions = { onOutput: () => {}, graceMs: 50 };

for (const { limit, name = limit, run, reason, limits, options } of ends) {
  test(`an end for the limit ${name} is one event, and counted`, { skip }, async (t) => {
    ownRuntime(t);
    const events = limitEvents(t);
    const pool = sandboxPool(t, limits, { ...quiet, ...options });
    await pool.warm();
    const [before] = pool.stats().workers;
    await assert.rejects(pool.run(run), (error) => codeOf(error) === 'WORKER_EXITED');
    const [event] = events;
    assert.ok(typeof event === 'object' && event !== null && 'reason' in event);
    const { reason: text, ...rest } = event;
    assert.match(String(text), reason);
    assert.deepEqual(rest, { worker: before?.id, kind: before?.kind, pid: before?.pid, limit });
    const none = { memory: 0, tasks: 0, output: 0, result: 0, data: 0, protocol: 0 };
    assert.deepEqual(pool.stats().overLimit, { ...none, [limit]: 1 });
    const lines = linesOf(await metricsText());
    const counted = valuesOf(lines, 'manycore_workers_over_limit_total', { limit });
    assert.deepEqual(counted.at(-1), 1);
    assert.equal(await pool.run(() => 1), 1);
    await pool.destroy();
    assert.equal(events.length, 1);
  });
}

test('bytes that are no text count once', { skip }, async (t) => {
  let chars = 0;
  const onOutput = (text: string): void => {
    chars += text.length;
  };
  const pool = sandboxPool(t, { outputMb: 1 }, { onOutput });
  await pool.run(() => write(Buffer.alloc(2 ** 19, 0xff)));
  await waitFor(() => chars === 2 ** 19);
  assert.equal(await pool.run(() => 1), 1);
  assert.equal(pool.stats().exitedWorkers, 0);
});

test('code that a partition sends as its result counts as data', { skip }, async (t) => {
  const events = limitEvents(t);
  const pool = sandboxPool(t, {}, quiet);
  await assert.rejects(
    pool.run(() => {
      const text = Buffer.from('eval');
      const { Serializer } = process.getBuiltinModule('node:v8');
      const writer = new Serializer();
      writer.writeHeader();
      writer.writeUint32(1);
      const root = [undefined];
      writer.writeValue([root, [[0, `${text}`]], [root, 0, 0], [], [], [], [], []]);
      const bytes = writer.releaseBuffer();
      const head = Buffer.from([16, 0, 0, 0, 0]);
      head.writeUInt32LE(bytes.length, 1);
      forger().send(21, 0, 0, Buffer.concat([head, bytes]));
      return new Promise(() => {});
    }),
    (error) => codeOf(error) === 'PARTITION_CODE',
  );
  await pool.destroy(); // it ends after the answer of its call
  assert.equal(pool.stats().overLimit?.data, 1);
  assert.equal(events.length, 1);
});

const others: readonly {
  readonly name: string;
  readonly run: () => unknown;
  /** True: the call is given up when it reports. */
  readonly isGivenUp?: boolean;
  readonly limits?: Omit<SandboxOptions, 'kind'>;
}[] = [
  { name: 'a plain exit', run: () => process.exit(3) },
  { name: 'an uncaught error', run: () => setImmediate(() => JSON.parse('{')) && silence() },
  {
    name: 'an abort',
    run: () => process.abort(),
  },
  {
    name: 'an exit with the words of V8',
    run: () => {
      console.error('FATAL ERROR: JavaScript heap out of memory');
      process.exit(3);
    },
  },
  { name: 'the end of its call', run: () => reportAndBlock(), isGivenUp: true },
  {
    name: 'the end of its call after processes were refused',
    run: () => tooManyCaught(),
    isGivenUp: true,
    limits: { maxProcesses: 1, memoryMb: 4096 },
  },
];

function silence(): Promise<never> {
  return new Promise(() => {});
}

async function tooManyCaught(): Promise<never> {
  const all: ChildProcess[] = [];
  let isRefused = false;
  while (!isRefused) {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    all.push(child);
    isRefused = await new Promise((resolve) => {
      child.once('error', () => resolve(true)).once('spawn', () => resolve(false));
    });
  }
  return reportAndBlock();
}

async function reportAndBlock(): Promise<never> {
  void report('about to block');
  await new Promise((resolve) => setImmediate(resolve)); // the report is sent
  for (;;);
}

for (const { name, run, isGivenUp, limits } of others) {
  test(`${name} is the end for no limit`, { skip }, async (t) => {
    const events = limitEvents(t);
    const pool = sandboxPool(t, limits, quiet);
    const given = new AbortController();
    const options = { signal: given.signal, onReport: () => given.abort() };
    await assert.rejects((isGivenUp === true ? pool.with(options) : pool).run(run));
    await pool.destroy();
    assert.deepEqual(events, []);
    assert.ok(Object.values(pool.stats().overLimit ?? { none: 1 }).every((count) => count === 0));
  });
}

test('code that computes is halted when it has used its processor time', { skip }, async (t) => {
  const pool = sandboxPool(t, { cpuPercent: 20 }, quiet);
  await pool.warm();
  const given = new AbortController();
  const work = pool.with({ signal: given.signal }).run(() => {
    for (;;);
  });
  await waitFor(() => throttledPeriods() > 0);
  given.abort();
  await assert.rejects(work);
});

test('code that computes on one core is not halted where it may use more', { skip }, async (t) => {
  const pool = sandboxPool(t, { cpuPercent: 10_000 }, quiet);
  await pool.run(() => {
    const end = performance.now() + 300;
    while (performance.now() < end);
  });
  assert.equal(
    groups().some((folder) => fs.existsSync(join(folder, 'cpu.stat'))),
    true,
  );
  assert.equal(throttledPeriods(), 0);
});

/** Periods in which the kernel has halted a partition of this program. */
function throttledPeriods(): number {
  const counts = groups().map((folder) => {
    const path = join(folder, 'cpu.stat');
    const text = fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : '';
    return Number(/^nr_throttled (\d+)$/m.exec(text)?.[1] ?? 0);
  });
  return Math.max(0, ...counts);
}
