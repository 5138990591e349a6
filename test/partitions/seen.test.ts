// Sandboxes as seen from outside: by stats, views and metrics.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { ProgramSampler, type WorkerView } from '../../src/observe/index.js';
import { metricsText } from '../../src/observe/metrics/public.js';
import { linesOf, valuesOf } from '../observe/metrics/scrape.js';
import { ownRuntime } from '../observe/runtime.js';
import { waitFor } from '../support/index.js';
import { hasReceived, sandboxPool, skip } from './support.js';

test('a sandbox has its own kind, and its pool the limits', { skip }, async (t) => {
  const pool = sandboxPool(t, { memoryMb: 300, cpuPercent: 50 });
  await pool.warm();
  const { workers, partition } = pool.stats();
  assert.equal(workers[0]?.kind, 'sandbox');
  assert.deepEqual(partition, {
    engine: undefined,
    memoryMb: 300,
    cpuPercent: 50,
    maxProcesses: 0,
    fileMb: 64,
    resultMb: 64,
    outputMb: 16,
  });
});

test('what runs in a sandbox is seen from outside, with its memory and CPU', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const pool = sandboxPool(t, { maxProcesses: 1 });
  await pool.run(() => {
    process.title = 'bwrap';
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  });
  using sampler = new ProgramSampler();
  let worker: WorkerView | undefined;
  await waitFor(async () => {
    const views = await sampler.sample();
    worker = views.find(({ pid }) => pid === process.pid)?.pools[0]?.workers[0];
    const { inside = [], cpuShare } = worker ?? {};
    // A Node that has just begun is smaller.
    const hasGrown = inside.every((each) => (each.rssBytes ?? 0) > 10 * 2 ** 20);
    return inside.length === 2 && cpuShare !== undefined && hasGrown;
  });
  const { kind, pid, inside = [], rssBytes = 0 } = worker ?? {};
  assert.deepEqual([kind, pid], ['sandbox', pool.stats().workers[0]?.pid]);
  assert.deepEqual(
    inside.map(({ depth }) => depth),
    [0, 1],
  );
  assert.ok(rssBytes >= inside.reduce((sum, each) => sum + (each.rssBytes ?? 0), 0));
  const lines = linesOf(await metricsText());
  const [resident = 0] = valuesOf(lines, 'manycore_process_resident_bytes', { role: 'worker' });
  assert.ok(resident > 20 * 2 ** 20, `${resident} bytes`);
  const [cpu = 0] = valuesOf(lines, 'manycore_process_cpu_seconds_total', {
    role: 'worker',
    mode: 'user',
  });
  assert.ok(cpu > 0.01, `${cpu} s`);
});

test('a sandbox receives the definitions that its calls need, and no names of files', {
  skip,
}, async (t) => {
  const [first, second] = [sandboxPool(t), sandboxPool(t)];
  const given = await first.run(() => 'the text of the first');
  assert.equal(given.length, 21);
  // In parts, since arguments are received, too.
  assert.equal(await first.run(hasReceived, 'the text of', ' the first'), true);
  assert.equal(await second.run(hasReceived, 'the text of', ' the first'), false);
  assert.equal(await second.run(hasReceived, 'partitions/sup', 'port'), true);
  assert.equal(await second.run(hasReceived, 'seen', '.test'), false);
});
