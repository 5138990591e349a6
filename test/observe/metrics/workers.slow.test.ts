// Reports of workers about their heaps and collections, with and without polls.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ThreadStats } from '../../../src/agent/index.js';
import { ownStats } from '../../../src/agent/index.js';
import { metricsText } from '../../../src/observe/metrics/public.js';
import { workerReadings } from '../../../src/observe/metrics/workers.js';
import { Link } from '../../../src/worker/link.js';
import { Gate, openPool, ways } from '../../pool/calls/ways.js';
import { waitFor } from '../../support/index.js';
import { ownRuntime } from '../runtime.js';
import { type Line, linesOf, valuesOf } from './scrape.js';

const mib = 2 ** 20;
const used = 'manycore_worker_heap_used_bytes';

async function scraped(): Promise<Line[]> {
  return linesOf(await metricsText());
}

/** Waits until so many workers have reported their heaps. */
function reportedBy(workers: number): Promise<Line[]> {
  return waitFor(async () => {
    const lines = await scraped();
    return valuesOf(lines, used).length === workers && lines;
  });
}

/** A task: keeps about so much in the worker, in MiB, and returns its process. */
function keep(mibs: number): number {
  const kept = Array.from({ length: mibs }, () => Array.from({ length: 2 ** 17 }, () => 1.5));
  Reflect.set(globalThis, 'kept', kept);
  return process.pid;
}

/** A task: blocks its worker until there is a file. */
async function block(here: string, file: string): Promise<void> {
  const { existsSync, writeFileSync } = await import('node:fs');
  writeFileSync(here, '');
  const words = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(file)) Atomics.wait(words, 0, 0, 10);
}

/** A task: leaves much for the collector. */
function litter(): number {
  let length = 0;
  for (let round = 0; round < 50; round += 1) {
    length += Array.from({ length: 10_000 }, (_, at) => ({ at })).length;
  }
  return length;
}

for (const way of ways) {
  test(`${way.name}: each worker reports its heap and its collections`, async (t) => {
    ownRuntime(t);
    const pool = openPool(t, { size: 2 }, way);
    await pool.warm();
    const lines = await reportedBy(2);
    const slots = lines.filter(({ name }) => name === used).map(({ labels }) => labels);
    assert.deepEqual(slots, [{ slot: '1' }, { slot: '2' }]);
    const limits = valuesOf(lines, 'manycore_worker_heap_limit_bytes');
    const heaps = valuesOf(lines, used);
    assert.ok(heaps.every((heap, at) => heap > mib && heap < (limits[at] ?? 0)));
    assert.equal(valuesOf(lines, 'manycore_worker_heap_external_bytes').length, 2);
    await waitFor(async () => {
      await pool.run(litter);
      const kinds = valuesOf(await scraped(), 'manycore_worker_gc_pauses_total', { kind: 'minor' });
      return kinds.some((count) => count > 0);
    });
    const pauses = valuesOf(await scraped(), 'manycore_worker_gc_pause_seconds_total');
    assert.ok(pauses.some((seconds) => seconds > 0));
  });

  test(`${way.name}: a busy worker has the stats that it reported last`, async (t) => {
    ownRuntime(t);
    const pool = openPool(t, { size: 1 }, way);
    const gate = new Gate(t);
    await pool.warm();
    await reportedBy(1);
    await pool.run(keep, 64);
    await waitFor(async () => (valuesOf(await scraped(), used)[0] ?? 0) > 64 * mib);
    const questions = questionsOf(t);
    const working = pool.run(block, gate.mark('here'), gate.file);
    await gate.reached('here');
    const [last = 0] = valuesOf(await scraped(), used);
    assert.ok(last > 64 * mib);
    assert.deepEqual(valuesOf(await scraped(), used), [last]);
    assert.ok(questions.count <= 1); // the one before that may be on its way
    gate.open();
    await working;
    await pool.run(keep, 1);
    await pool.run(litter);
    // The first new value may still be the answer to the poll before.
    await waitFor(async () => {
      const [now] = valuesOf(await scraped(), used);
      return now !== last && questions.count > 1;
    });
  });
}

/** Counts the messages of a pool to its workers besides calls. */
function questionsOf(t: TestContext): { count: number } {
  const posts = t.mock.method(Link.prototype, 'post').mock;
  return {
    get count() {
      return posts.callCount();
    },
  };
}

test('no worker is polled without a reader, and each worker once for each reading', async (t) => {
  ownRuntime(t);
  const pool = openPool(t, { size: 2, worker: 'process' });
  await pool.warm();
  const questions = questionsOf(t);
  for (let count = 0; count < 100; count += 1) await pool.run(() => count);
  pool.stats();
  assert.equal(questions.count, 0);
  await ownStats();
  assert.equal(questions.count, 2);
});

test('a worker counts its collections from the first poll on', async (t) => {
  ownRuntime(t);
  const pool = openPool(t, { size: 1, worker: 'process' });
  const counts = (lines: Line[]): number[] =>
    valuesOf(lines, 'manycore_worker_gc_pauses_total', { kind: 'minor' });
  await pool.run(() => {
    const all = { count: 0 };
    const observer = new PerformanceObserver((list) => {
      all.count += list.getEntries().length;
    });
    observer.observe({ entryTypes: ['gc'] });
    Reflect.set(globalThis, 'allPauses', all);
  });
  for (let count = 0; count < 5; count += 1) await pool.run(litter);
  const [counted = Number.NaN] = counts(await reportedBy(1)); // pauses since the first poll, if any
  const all = await pool.run(() => Reflect.get(globalThis, 'allPauses').count);
  assert.ok(counted < all, `${counted} of ${all}`);
  for (let count = 0; count < 5; count += 1) await pool.run(litter);
  await waitFor(async () => (counts(await scraped())[0] ?? 0) > 0);
});

test('a killed worker is no longer reported', async (t) => {
  ownRuntime(t);
  const pool = openPool(t, { size: 1, worker: 'process' });
  const pid = await pool.run(keep, 64);
  await waitFor(async () => valuesOf(await scraped(), used).some((heap) => heap > 64 * mib));
  process.kill(pid, 'SIGKILL');
  await waitFor(() => pool.stats().lostWorkers === 1);
  assert.ok(valuesOf(await scraped(), used).every((heap) => heap < 64 * mib));
  await pool.run(() => true);
  await reportedBy(1);
});

const none = { count: 0, totalMs: 0, maxMs: 0 };

function memory(atMs: number, count: number) {
  const heap = { usedBytes: count, totalBytes: 9, limitBytes: 9, externalBytes: 9 };
  return { atMs, heap, gc: { minor: { ...none, count } } };
}

interface GivenWorker {
  readonly id: number;
  readonly kind: string;
  readonly pid?: number;
  readonly memory?: unknown;
}

function threadWith(thread: number, workers: readonly GivenWorker[]): ThreadStats {
  const sources = [{ kind: 'pool', id: 1, stats: { workers } }];
  return Object({ pid: 5, thread, sources });
}

/** Slots, and how many pauses each has. */
function pausesIn(threads: readonly ThreadStats[]): (number | undefined)[][] {
  return workerReadings(threads).map(({ slot, memory: reported }) => [
    slot,
    reported?.gc.minor.count,
  ]);
}

test('workers of a thread that is silent keep their slots, and lose them when it has ended', () => {
  const worker = (id: number) => ({ id, kind: 'process', pid: 70 + id, memory: memory(10, id) });
  const first = threadWith(1, [worker(1)]);
  const second = threadWith(2, [worker(2)]);
  assert.deepEqual(pausesIn([first, second]), [
    [1, 1],
    [2, 2],
  ]);
  const silent = [{ pid: 5, thread: 1 }];
  const slots = (): number[] => workerReadings([second], silent).map(({ slot }) => slot);
  assert.deepEqual(slots(), [1, 2]);
  const grown = threadWith(2, [worker(2), worker(3)]);
  assert.deepEqual(
    workerReadings([grown], silent).map(({ slot, pid }) => [slot, pid]),
    [
      [1, 71],
      [2, 72],
      [3, 73],
    ],
  );
  assert.deepEqual(pausesIn([second]), [[2, 2]]);
  assert.deepEqual(pausesIn([]), []);
});

test('for a shared worker its latest report counts', () => {
  const shared = { id: 1, kind: 'process', pid: 70 };
  const newer = threadWith(1, [{ ...shared, memory: memory(20, 8) }]);
  const older = threadWith(2, [{ ...shared, memory: memory(10, 5) }]);
  assert.deepEqual(pausesIn([newer, older]), [[1, 8]]);
  assert.deepEqual(pausesIn([older, newer]), [[1, 8]]);
  assert.deepEqual(pausesIn([older]), [[1, 8]]);
  assert.deepEqual(pausesIn([]), []);
  assert.deepEqual(pausesIn([older]), [[1, 5]]);
  assert.deepEqual(pausesIn([]), []);
});

test('workers that are threads or on other machines have slots, too', () => {
  const workers = [
    { id: 1, kind: 'thread', pid: 5, memory: memory(1, 1) },
    { id: 2, kind: 'process', memory: memory(1, 2) },
    { id: 3, kind: 'process', pid: 71, memory: 'nothing' },
  ];
  const other = threadWith(1, [{ id: 1, kind: 'thread', pid: 5, memory: memory(1, 4) }]);
  assert.deepEqual(pausesIn([threadWith(0, workers), other]), [
    [1, 1],
    [2, 2],
    [3, undefined],
    [4, 4],
  ]);
  assert.deepEqual(pausesIn([other]), [[4, 4]]);
});
