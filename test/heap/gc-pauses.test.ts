// Collections counted by V8's own callbacks, compared with those of Node's observer.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { ObservedPauses } from '../../src/heap/gc-pauses.js';
import { type GcByKind, GcPauses } from '../../src/heap/index.js';
import { nativeBinding } from '../../src/native.js';

const skip = nativeBinding() === undefined && 'there is no native binary';
const heapUrl = JSON.stringify(new URL('../../src/heap/index.js', import.meta.url).href);

setFlagsFromString('--expose-gc');
const collect: (options?: { type: 'minor' }) => void = runInNewContext('gc');

function counts(stats: GcByKind): number[] {
  return Object.values(stats).map(({ count }) => count);
}

async function makeGarbage(): Promise<void> {
  const kept: object[] = [];
  for (let round = 0; round < 40; round += 1) {
    for (let at = 0; at < 20_000; at += 1) kept[at % 5000] = { round, at };
    await setImmediate();
  }
}

/** Counts some collections in both ways; throws where they differ. */
async function compare(): Promise<void> {
  const [inV8, observed] = [new GcPauses(), new ObservedPauses()];
  observed.start();
  inV8.start();
  await makeGarbage();
  for (let at = 0; at < 3; at += 1) collect();
  collect({ type: 'minor' });
  inV8.stop();
  await setImmediate(); // Node reports the last ones now
  await setImmediate();
  observed.stop();
  const [mine, theirs] = [inV8.stats(), observed.stats()];
  assert.deepEqual(counts(mine), counts(theirs));
  assert.ok(mine.minor.count > 3 && mine.major.count >= 3, JSON.stringify(mine));
  for (const kind of ['minor', 'major'] as const) {
    const [own, observed] = [mine[kind], theirs[kind]];
    // Tolerance: the time between the two readings of the clock at each end.
    assert.ok(
      Math.abs(own.totalMs - observed.totalMs) < 1 + observed.totalMs / 4,
      JSON.stringify([own, observed]),
    );
    assert.ok(own.maxMs > 0 && own.maxMs <= own.totalMs);
  }
}

test('V8 and an observer count the same collections, and pauses that are as long', {
  skip,
}, async () => {
  // Repeats it where the machine made a pause between two readings of the clock, or V8 collected once more.
  for (let left = 4; left > 0; left -= 1) {
    const isSame = await compare().then(
      () => true,
      () => false,
    );
    if (isSame) return;
  }
  await compare();
});

test('counts stay while counting is stopped, and continue afterwards', async () => {
  const pauses = new GcPauses();
  pauses.start();
  pauses.start();
  collect();
  await setImmediate();
  await setImmediate();
  pauses.stop();
  const { count } = pauses.stats().major;
  assert.ok(count >= 1);
  collect();
  await setImmediate();
  assert.equal(pauses.stats().major.count, count);
  pauses.start();
  collect();
  await setImmediate();
  await setImmediate();
  assert.ok(pauses.stats().major.count > count);
  pauses.stop();
  pauses.stop();
});

test('threads count their own, and end while they count', async () => {
  const program = `
    const { parentPort } = require('node:worker_threads');
    import(${heapUrl}).then(({ GcPauses }) => {
      globalThis.pauses = new GcPauses();
      pauses.start();
      let kept = [];
      for (let at = 0; at < 2e6; at += 1) kept[at % 5000] = { at };
      setTimeout(() => parentPort.postMessage(pauses.stats().minor.count), 5);
    });`;
  const own = new GcPauses();
  own.start();
  for (let round = 0; round < 3; round += 1) {
    const workers = [0, 1].map(() => new Worker(program, { eval: true }));
    const received = workers.map(
      (worker) =>
        new Promise<number>((resolve, reject) => {
          worker.once('message', resolve).once('error', reject);
        }),
    );
    for (const count of await Promise.all(received)) assert.ok(count > 0);
    if (round === 1) for (const worker of workers) await worker.terminate();
  }
  collect();
  await setImmediate();
  await setImmediate();
  assert.ok(own.stats().major.count > 0);
  own.stop();
});

test('a process ends well while it counts, also after the counter was dropped', () => {
  const program = `
    const { GcPauses } = await import(${heapUrl});
    new GcPauses().start();
    const other = new GcPauses();
    other.start();
    for (let at = 0; at < 5; at += 1) { gc(); await new Promise((next) => setImmediate(next)); }
    console.log(other.stats().major.count >= 5);`;
  const line = ['--expose-gc', '--input-type=module', '-e', program];
  const { status, stdout, stderr } = spawnSync(process.execPath, line, { encoding: 'utf8' });
  assert.deepEqual([status, stdout, stderr], [0, 'true\n', '']);
});

test('without the binary an observer counts', () => {
  const program = `
    const { GcPauses } = await import(${heapUrl});
    const pauses = new GcPauses();
    pauses.start();
    gc();
    for (let at = 0; at < 3; at += 1) await new Promise((next) => setImmediate(next));
    console.log(pauses.stats().major.count);
    pauses.stop();`;
  const line = ['--expose-gc', '--input-type=module', '-e', program];
  const env = { ...process.env, MANYCORE_NATIVE: 'off' };
  const { status, stdout } = spawnSync(process.execPath, line, { encoding: 'utf8', env });
  assert.deepEqual([status, stdout], [0, '1\n']);
});
