// Large payloads do not make V8 collect the whole heap of the thread that receives them
// (docs/design/large-results.md). Counts of collections, in processes of their own.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { requireNative } from '../../../src/native.js';
import { programFolder, runNode } from '../programs.js';

const needsUncounted = {
  skip: requireNative().uncountedProblem() === '' ? false : 'V8 counts all buffers here',
};

/** Runs the text of a module, and returns the value of its last line. */
async function outputOf(t: TestContext, text: string): Promise<Record<string, number>> {
  const folder = programFolder(t, { 'main.mjs': prelude + text });
  const { lines, stderr, exitCode } = await runNode(folder, ['main.mjs']);
  assert.equal(exitCode, 0, stderr);
  return JSON.parse(lines.at(-1) ?? '');
}

const prelude = `
  import { constants, PerformanceObserver } from 'node:perf_hooks';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { Pool } from 'manycore';
  const payloadBytes = 8_000_000;
  const heap = Array.from({ length: 100_000 }, (_, index) => ({ index }));
  const counts = { full: 0 };
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) {
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) counts.full++;
    }
  }).observe({ entryTypes: ['gc'] });
  const make = (fill) => new Uint8Array(8_000_000).fill(fill);
`;

for (const worker of ['process', 'thread']) {
  test(
    `300 results of 8 MB from a ${worker} lead to no more than 5 full collections`,
    needsUncounted,
    async (t) => {
      const { full, right } = await outputOf(
        t,
        `const pool = new Pool({ size: 1, worker: '${worker}' });
      await pool.run(make, 1);
      counts.full = 0;
      let right = 0;
      for (let index = 0; index < 300; index++) {
        const result = await pool.run(make, index);
        if (result.length === payloadBytes && result[7] === index % 256) right++;
      }
      await sleep(50);
      await pool.close();
      console.log(JSON.stringify({ full: counts.full, right, heap: heap.length }));`,
      );
      assert.equal(right, 300);
      assert.ok(full !== undefined && full <= 5, `${full} full collections`);
    },
  );
}

test(
  '100 arguments of 8 MB lead to no more than 3 full collections in the worker',
  needsUncounted,
  async (t) => {
    const { full, right } = await outputOf(
      t,
      `const pool = new Pool({ size: 1, worker: 'process' });
    await pool.run(async () => {
      const { constants, PerformanceObserver } = await import('node:perf_hooks');
      globalThis.fullCount = 0;
      globalThis.kept = Array.from({ length: 100_000 }, (_, index) => ({ index }));
      new PerformanceObserver((list) => {
        for (const { detail } of list.getEntries()) {
          if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) globalThis.fullCount++;
        }
      }).observe({ entryTypes: ['gc'] });
    });
    const bytes = make(3);
    let right = 0;
    for (let index = 0; index < 100; index++) {
      bytes[9] = index;
      if ((await pool.run((given) => given[9] + given.length, bytes)) === payloadBytes + index) right++;
    }
    const full = await pool.run(() => globalThis.fullCount);
    await pool.close();
    console.log(JSON.stringify({ full, right }));`,
    );
    assert.equal(right, 100);
    assert.ok(full !== undefined && full <= 3, `${full} full collections`);
  },
);

test(
  'items of 8 MB of a stream lead to no more than 3 full collections',
  needsUncounted,
  async (t) => {
    const { full, right } = await outputOf(
      t,
      `const pool = new Pool({ size: 1, worker: 'process' });
    counts.full = 0;
    let right = 0;
    const items = await pool.run(function* (count) {
      for (let index = 0; index < count; index++) yield new Uint8Array(8_000_000).fill(index);
    }, 100);
    for await (const item of items) if (item[5] === right) right++;
    await sleep(50);
    await pool.close();
    console.log(JSON.stringify({ full: counts.full, right }));`,
    );
    assert.equal(right, 100);
    assert.ok(full !== undefined && full <= 3, `${full} full collections`);
  },
);

test(
  '100 bodies of 8 MB, to a loop and back, lead to few full collections',
  needsUncounted,
  async (t) => {
    const { loopFull, full, right } = await outputOf(
      t,
      `const { Loops } = await import('manycore');
    const loops = new Loops({ processes: 1, loops: 1 });
    await loops.deploy(async ({ bus }) => {
      const { constants, PerformanceObserver } = await import('node:perf_hooks');
      const heap = Array.from({ length: 100_000 }, (_, index) => ({ index }));
      let full = 0;
      new PerformanceObserver((list) => {
        for (const { detail } of list.getEntries()) {
          if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) full++;
        }
      }).observe({ entryTypes: ['gc'] });
      bus.consumer('to', (message) => message.reply(message.body[7] + message.body.length));
      bus.consumer('back', (message) => message.reply(new Uint8Array(8_000_000).fill(message.body)));
      bus.consumer('full', (message) => message.reply(full + heap.length - 100_000));
    });
    const bytes = make(1);
    let right = 0;
    for (let index = 0; index < 100; index++) {
      bytes[7] = index;
      if ((await loops.bus.request('to', bytes)).body === payloadBytes + index) right++;
    }
    // Before the replies, which are buffers of the loop's own.
    const loopFull = (await loops.bus.request('full', 0)).body;
    counts.full = 0;
    for (let index = 0; index < 100; index++) {
      if ((await loops.bus.request('back', index)).body.at(-1) === index) right++;
    }
    await sleep(50);
    await loops.close();
    console.log(JSON.stringify({ full: counts.full, loopFull, right }));`,
    );
    assert.equal(right, 200);
    assert.ok(full !== undefined && full <= 3, `${full} full collections in the program`);
    assert.ok(loopFull !== undefined && loopFull <= 4, `${loopFull} full collections in the loop`);
  },
);

test('an argument does not outlive its worker thread in another thread', async (t) => {
  const { received } = await outputOf(
    t,
    `const pool = new Pool({ size: 1, worker: 'thread' });
    const bytes = make(5);
    const received = await pool.run((given) => {
      const { port1, port2 } = new MessageChannel();
      try {
        port1.postMessage(given.buffer, [given.buffer]);
      } catch (error) {
        if (error.name !== 'DataCloneError') throw error;
      }
      port2.close();
      return given.length; // neither Node 20, which copies, nor later ones, which throw, have moved it
    }, bytes);
    await pool.close();
    console.log(JSON.stringify({ received }));`,
  );
  assert.equal(received, 8_000_000);
});

test('results that are kept stay what they are, and none is lost', async (t) => {
  const { right } = await outputOf(
    t,
    `const pool = new Pool({ size: 1, worker: 'process' });
    const kept = [];
    for (let index = 0; index < 60; index++) kept.push(await pool.run(make, index));
    const right = kept.filter((each, index) => each[0] === index && each.at(-1) === index).length;
    await pool.close();
    console.log(JSON.stringify({ right }));`,
  );
  assert.equal(right, 60);
});

test('where V8 counts all buffers, results arrive as well', async (t) => {
  const { right } = await outputOf(
    t,
    `process.env.MANYCORE_REFUSE = 'uncounted';
    const pool = new Pool({ size: 1, worker: 'process' });
    let right = 0;
    for (let index = 0; index < 30; index++) {
      const result = await pool.run(make, index);
      if (result.at(-1) === index) right++;
    }
    await pool.close();
    console.log(JSON.stringify({ right }));`,
  );
  assert.equal(right, 30);
});
