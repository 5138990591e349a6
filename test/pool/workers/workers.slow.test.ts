import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, threadId, workerData } from 'node:worker_threads';
import { perWorker } from '../../../src/public.js';
import { waitFor, withDeadline } from '../../support/index.js';
import { deadlineMs, Gate, openPool, processWays, ways } from '../calls/ways.js';
import { blockUntil } from '../tasks.js';

/** Starts in a row on a loaded machine. */
const giveUpMs = 60_000;

for (const way of ways) {
  test(`${way.name}: a set-up that throws is WORKER_START_FAILED with its cause, and no storm`, async (t) => {
    const log = new Gate(t).mark('starts');
    writeFileSync(log, '');
    const setup = (): void => {
      appendFileSync(log, '.');
      throw new RangeError('no database');
    };
    const pool = openPool(t, { size: 2, setup, startRetryMs: 1_000 }, way);
    const calls = [pool.run(() => 1), pool.run(() => 2), pool.run(() => 3)];
    for (const call of calls) {
      await assert.rejects(
        withDeadline(call, giveUpMs, 'the pool gives up'),
        (error: Error & { code?: string }) =>
          error.code === 'WORKER_START_FAILED' &&
          error.cause instanceof RangeError &&
          /no database/.test(error.message),
      );
    }
    const starts = readFileSync(log).byteLength;
    assert.ok(starts >= 1 && starts <= 16, `${starts} starts`);
    assert.equal(pool.stats().waitingTasks, 0);
  });

  test(`${way.name}: a set-up runs once in each worker before its first task`, async (t) => {
    const setup = (): void => {
      const { setUps = 0 } = globalThis as { setUps?: number };
      Object.assign(globalThis, { setUps: setUps + 1 });
    };
    const pool = openPool(t, { size: 1, setup }, way);
    const count = (): unknown => Reflect.get(globalThis, 'setUps');
    assert.deepEqual([await pool.run(count), await pool.run(count)], [1, 1]);
  });

  test(`${way.name}: a set-up sees what it captured as it was when the pool was made`, async (t) => {
    let level = 5;
    level += 1;
    const words = new Map([['level', 'six']]);
    const setup = (): void => void Object.assign(globalThis, { found: [level, words] });
    const pool = openPool(t, { size: 1, setup }, way);
    level += 1;
    words.clear();
    const found = await pool.run((): unknown => Reflect.get(globalThis, 'found'));
    assert.deepEqual(found, [6, new Map([['level', 'six']])]);
  });

  test(`${way.name}: a task that is run again gets its arguments as they were at the call`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const mark = new Gate(t).mark('first run');
    const overwrite = (bytes: Buffer): unknown => {
      const found = [bytes[0], bytes.at(-1)];
      bytes.fill(1);
      if (existsSync(mark)) return found;
      writeFileSync(mark, '');
      return process.exit(1);
    };
    const again = pool.with({ retry: 1 }).run(overwrite, Buffer.alloc(1 << 20, 9));
    assert.deepEqual(await again, [9, 9]);
    assert.equal(pool.stats().exitedWorkers, 1);
  });

  test(`${way.name}: a value per worker is made once in each`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const connection = perWorker(() => ({ uses: 0 }));
    const work = (): number => {
      connection().uses += 1;
      return connection().uses;
    };
    assert.deepEqual([await pool.run(work), await pool.run(work), await pool.run(work)], [1, 2, 3]);
    assert.equal(connection().uses, 0);
  });

  test(`${way.name}: a worker is replaced after so many tasks, and no task is lost`, async (t) => {
    const pool = openPool(t, { size: 1, maxTasksPerWorker: 5, maxTasksAhead: 1 }, way);
    const calls = Array.from({ length: 20 }, (_, index) =>
      pool.run((value: number) => value, index),
    );
    assert.deepEqual(await Promise.all(calls), [...Array(20).keys()]);
    await waitFor(() => pool.stats().exitedWorkers === 4);
    assert.equal(pool.stats().startedWorkers, 4);
  });

  test(`${way.name}: a pool has as many workers as work, between its limits, and lets idle ones go`, async (t) => {
    const pool = openPool(t, { size: { min: 1, max: 3 }, idleTimeMs: 20 }, way);
    const gate = new Gate(t);
    const { file } = gate;
    const marks = ['a', 'b', 'c', 'd', 'e'].map((name) => gate.mark(name));
    const calls = marks.map((mark) =>
      pool.run((given: string) => blockUntil(file, given, 1), mark),
    );
    await waitFor(() => gate.marks.length === 3);
    assert.equal(pool.stats().workers.length, 3);
    gate.open();
    await Promise.all(calls);
    await waitFor(() => pool.stats().workers.length === 1);
    assert.equal(await pool.run(() => 'still works'), 'still works');
  });
}

for (const way of processWays) {
  test(`${way.name}: a worker that is too large is replaced`, async (t) => {
    const pool = openPool(t, { size: 1, maxRssBytes: 1 }, way);
    const pids = new Set<number>();
    await waitFor(async () => {
      pids.add(await pool.run(() => process.pid));
      return pids.size > 1;
    });
    assert.equal(pool.stats().failedTasks, 0);
  });

  test(`${way.name}: what a worker prints is not lost at its end`, async (t) => {
    const folder = new Gate(t).folder;
    const program = `
      import { Pool } from ${JSON.stringify(new URL('../../../src/public.js', import.meta.url).href)};
      const pool = new Pool({ size: 1, channel: '${way.channel}' });
      await pool.run(() => { for (let line = 0; line < 5000; line += 1) console.log('line', line); });
      await pool.close();`;
    writeFileSync(`${folder}/program.mjs`, program);
    const { stdout, status } = await runNode([`${folder}/program.mjs`]);
    assert.equal(status, 0);
    const lines = stdout.trim().split('\n');
    assert.deepEqual([lines.length, lines.at(-1)], [5000, 'line 4999']);
  });
}

test('spare workers are ready beside those at work, and leave when there is no work', async (t) => {
  const pool = openPool(t, { size: { min: 0, max: 4 }, minSpareWorkers: 2, idleTimeMs: 20 });
  const gate = new Gate(t);
  const [file, mark] = [gate.file, gate.mark('work')];
  const work = pool.run(() => blockUntil(file, mark, 1));
  await waitFor(() => pool.stats().workers.filter(({ state }) => state === 'ready').length === 3);
  gate.open();
  await work;
  await waitFor(() => pool.stats().workers.length === 2);
});

test('a worker that is used now and then is not idle, and stays', async (t) => {
  const idleTimeMs = 1000;
  const pool = openPool(t, { size: { min: 0, max: 1 }, idleTimeMs });
  const end = performance.now() + 2.5 * idleTimeMs;
  let pauses = 0; // of the machine, long enough for the worker to leave
  while (performance.now() < end) {
    await pool.run(() => 1);
    const idleSinceMs = performance.now();
    await sleep(50);
    if (performance.now() - idleSinceMs > 0.8 * idleTimeMs) pauses += 1;
  }
  const { startedWorkers } = pool.stats();
  assert.ok(startedWorkers <= 1 + pauses, `${startedWorkers} workers, ${pauses} pauses`);
  await waitFor(() => pool.stats().workers.length === 0);
});

test('a worker that was started for nothing leaves after its idle time', async (t) => {
  const pool = openPool(t, { size: { min: 0, max: 2 }, idleTimeMs: 20 });
  await pool.warm();
  await waitFor(() => pool.stats().workers.length === 0);
});

test('workers get the flags and the environment in the options of the pool', async (t) => {
  const options = { size: 1, execArgv: ['--stack-trace-limit=3'], env: { GREETING: 'hei' } };
  const pool = openPool(t, options);
  const seen = await pool.run(() => [process.execArgv.at(-1), process.env['GREETING']]);
  assert.deepEqual(seen, ['--stack-trace-limit=3', 'hei']);
});

test('a worker that does not become ready in time is WORKER_START_FAILED', async (t) => {
  const setup = (): Promise<void> => new Promise(() => setInterval(() => {}, 1000));
  const pool = openPool(t, { size: 1, setup, startTimeoutMs: 300, startRetryMs: 300 });
  await assert.rejects(
    withDeadline(
      pool.run(() => 1),
      giveUpMs,
      'the pool gives up',
    ),
    {
      code: 'WORKER_START_FAILED',
    },
  );
});

test('a worker that ends with code 0 while it starts is WORKER_START_FAILED, and no storm', async (t) => {
  const pool = openPool(t, { size: 1, setup: () => process.exit(0) });
  await assert.rejects(
    withDeadline(
      pool.run(() => 1),
      giveUpMs,
      'the pool gives up',
    ),
    {
      code: 'WORKER_START_FAILED',
    },
  );
  assert.ok(pool.stats().startedWorkers <= 6, `${pool.stats().startedWorkers} starts`);
});

test('a pool whose workers did not start tries again at the next call', async (t) => {
  const mark = new Gate(t).mark('mended');
  const setup = (): void => void readFileSync(mark);
  const pool = openPool(t, { size: 1, setup, startRetryMs: 100 });
  await assert.rejects(
    withDeadline(
      pool.run(() => 1),
      giveUpMs,
      'the pool gives up',
    ),
    {
      code: 'WORKER_START_FAILED',
    },
  );
  writeFileSync(mark, '');
  assert.equal(
    await withDeadline(
      pool.run(() => 2),
      giveUpMs,
      'an answer',
    ),
    2,
  );
});

test('warm() starts all workers, and rejects when none starts', async (t) => {
  const pool = openPool(t, { size: 2 });
  await pool.warm();
  assert.deepEqual(
    pool.stats().workers.map(({ state }) => state),
    ['ready', 'ready'],
  );
  const broken = openPool(t, {
    size: 1,
    setup: () => Promise.reject(new Error('never')),
    startRetryMs: 100,
  });
  await assert.rejects(withDeadline(broken.warm(), giveUpMs, 'warm ends'), {
    code: 'WORKER_START_FAILED',
  });
});

async function runNode(args: string[]): Promise<{ stdout: string; status: number | null }> {
  const { spawn } = await import('node:child_process');
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  const status = await withDeadline(
    new Promise<number | null>((resolve) => child.on('close', resolve)),
    deadlineMs,
    'the program ends',
  );
  return { stdout, status };
}

for (const worker of ['process', 'thread'] as const) {
  test(`${worker}: node:worker_threads has nothing of manycore for tasks`, async (t) => {
    const pool = openPool(t, { size: 1, worker });
    const isThread = worker === 'thread';
    const seen = await pool.run(async () => {
      const imported = await import('node:worker_threads');
      parentPort?.on('message', () => {}); // would keep an idle thread from leaving
      parentPort?.postMessage('for nobody');
      return {
        data: [workerData, imported.workerData, imported.default.workerData],
        isMainThread,
        hasPort: parentPort !== null,
        hasNumber: threadId > 0,
      };
    });
    assert.deepEqual(seen, {
      data: [null, null, null],
      isMainThread: !isThread,
      hasPort: isThread,
      hasNumber: isThread,
    });
    await withDeadline(pool.close(), deadlineMs, 'the pool closes');
  });
}
