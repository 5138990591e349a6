import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { deadlineMs, Gate, openPool, processWays, type Way, ways } from '../pool/calls/ways.js';
import { blockUntil } from '../pool/tasks.js';
import { isRunning, killOne, waitFor, withDeadline } from '../support/index.js';

const library = new URL('../../src/public.js', import.meta.url).href;

/** Workers leave within a second after their parent; on a loaded machine that is reported later. */
const leaveMs = 20_000;

/** One worker at work until the gate opens, whose function is measured as short: calls are sent ahead. */
async function openBusyPool(t: TestContext, way: Way) {
  const pool = openPool(t, { size: 1 }, way);
  const gate = new Gate(t);
  const [open, mark] = [gate.file, gate.mark('busy')];
  const work = (value: number): number => (value < 0 ? blockUntil(open, mark, value) : value);
  for (let round = 0; round < 50; round += 1) await pool.run(work, round);
  const running = pool.run(work, -1);
  return { pool, gate, work, running };
}

for (const way of ways) {
  test(`${way.name}: a call gets no answer of one that was reclaimed before it`, async (t) => {
    const { pool, gate, work, running } = await openBusyPool(t, way);
    await gate.reached('busy');
    const abort = new AbortController();
    const given = pool.with({ signal: abort.signal }).run(work, 7);
    abort.abort();
    await assert.rejects(given, { code: 'ABORTED' });
    const next = pool.run(work, 8);
    gate.open();
    assert.deepEqual(await Promise.all([running, next]), [-1, 8]);
  });
}

for (const way of processWays) {
  test(`${way.name}: SIGKILL of a worker rejects exactly the task that it ran`, async (t) => {
    const { pool, gate, work, running } = await openBusyPool(t, way);
    const others = Array.from({ length: 20 }, (_, value) => pool.run(work, value));
    await gate.reached('busy');
    killOne(pool.stats().workers[0]?.pid, 'SIGKILL');
    await assert.rejects(running, { code: 'WORKER_EXITED', signal: 'SIGKILL', exitCode: null });
    assert.deepEqual(await withDeadline(Promise.all(others), deadlineMs, 'the others'), [
      ...Array(20).keys(),
    ]);
    assert.equal(pool.stats().failedTasks, 1);
  });

  test(`${way.name}: SIGKILL of an idle worker is noticed, and the next call works`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    await pool.run(() => 1);
    killOne(pool.stats().workers[0]?.pid, 'SIGKILL');
    await waitFor(() => pool.stats().exitedWorkers === 1);
    assert.equal(await pool.run(() => 2), 2);
  });

  test(`${way.name}: a stopped worker is killed when its task runs too long`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way);
    const pid = await pool.run(() => process.pid);
    process.kill(pid, 'SIGSTOP');
    await assert.rejects(
      pool.with({ timeoutMs: 200 }).run(() => 1),
      { code: 'TASK_TIMED_OUT' },
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

  test(`${way.name}: a stopped worker does not hold close() longer than the grace time`, async (t) => {
    const pool = openPool(t, { size: 1, graceMs: 50 }, way);
    const pid = await pool.run(() => process.pid);
    process.kill(pid, 'SIGSTOP');
    await withDeadline(pool.close(), deadlineMs, 'close');
    assert.equal(isRunning(pid), false);
  });

  for (const [what, body] of [
    ['idle', 'await pool.run(() => 1);'],
    ['in an endless loop', 'pool.run(() => { for (;;); }).catch(() => {}); await pool.warm();'],
  ] as const) {
    test(`${way.name}: a worker that is ${what} is gone soon after its parent was killed`, async (t) => {
      const parent = startParent(
        t,
        `
        import { Pool } from ${JSON.stringify(library)};
        const pool = new Pool({ size: 2, channel: '${way.channel}' });
        await pool.warm();
        ${body}
        console.log(JSON.stringify(pool.stats().workers.map(({ pid }) => pid)));
        setInterval(() => {}, 1000);`,
      );
      await expectGoneAfterKill(parent);
    });
  }
}

for (const way of ways) {
  test(`${way.name}: WORKER_EXITED has the stack of the call`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    async function callerOfTheDying(): Promise<void> {
      await pool.run(() => process.exit(3));
    }
    await assert.rejects(callerOfTheDying(), ({ stack }: Error) => {
      assert.match(stack ?? '', /at \[worker \d+.*\]\n.*callerOfTheDying.*worker\.slow\.test\./);
      return true;
    });
  });

  test(`${way.name}: a worker whose setup throws reports the thrown error`, async (t) => {
    for (const [thrown, said] of [
      [new RangeError('no database'), /did not start: its setup failed: no database; /],
      ['just text', /did not start: its setup failed: just text; /],
      [Object.create(null), /did not start: its setup failed: a value that has no text; /],
    ] as const) {
      const setup = (): never => {
        throw thrown;
      };
      const pool = openPool(t, { size: 1, setup, startRetryMs: 100 }, way);
      await assert.rejects(
        pool.run(() => 1),
        { code: 'WORKER_START_FAILED', message: said, cause: thrown },
      );
    }
  });
}

test('the workers of a pool in a worker thread are gone soon after the process was killed', async (t) => {
  const parent = startParent(
    t,
    `
    import { Worker, isMainThread, parentPort } from 'node:worker_threads';
    import { fileURLToPath } from 'node:url';
    if (isMainThread) {
      const worker = new Worker(fileURLToPath(import.meta.url));
      worker.on('message', (pids) => console.log(JSON.stringify(pids)));
    } else {
      const { Pool } = await import(${JSON.stringify(library)});
      const pool = new Pool({ size: 2 });
      await pool.warm();
      pool.run(() => { for (;;); }).catch(() => {});
      parentPort.postMessage(pool.stats().workers.map(({ pid }) => pid));
      setInterval(() => {}, 1000);
    }`,
  );
  await expectGoneAfterKill(parent);
});

test('the workers of a worker thread that ends leave with it', async (t) => {
  const parent = startParent(
    t,
    `
    import { Worker, isMainThread, parentPort } from 'node:worker_threads';
    import { fileURLToPath } from 'node:url';
    if (isMainThread) {
      const worker = new Worker(fileURLToPath(import.meta.url));
      worker.on('message', (pids) => {
        worker.on('exit', () => console.log(JSON.stringify(pids)));
      });
      setInterval(() => {}, 1000);
    } else {
      const { Pool } = await import(${JSON.stringify(library)});
      const pool = new Pool({ size: 2 });
      await pool.warm();
      parentPort.postMessage(pool.stats().workers.map(({ pid }) => pid));
      setImmediate(() => process.exit(0));
    }`,
  );
  const pids = await parent.pids;
  await waitFor(() => pids.every((pid) => !isRunning(pid)), leaveMs, `${pids} are gone`);
});

const sleepsForLong = 'await new Promise((resolve) => setTimeout(resolve, 1e8));';
const worksOfWorkers = [
  ['idle', undefined],
  ['in a task', sleepsForLong],
  ['in an endless loop', 'for (;;);'],
] as const;

for (const way of processWays) {
  for (const [what, work] of worksOfWorkers) {
    test(`${way.name}: workers that are ${what} leave when their worker thread is terminated`, async (t) => {
      const parent = startParent(t, terminatesWorker(new Gate(t), way, work));
      const pids = await parent.pids;
      assert.equal(pids.length, 2);
      await waitFor(() => pids.every((pid) => !isRunning(pid)), leaveMs, `${pids} are gone`);
      assert.ok(isRunning(parent.child.pid ?? 0));
    });
  }
}

for (const way of ways.filter(({ worker }) => worker === 'thread')) {
  for (const [what, work] of worksOfWorkers) {
    test(`${way.name}: workers that are ${what} end when their worker thread is terminated`, async (t) => {
      const parent = startParent(t, terminatesWorker(new Gate(t), way, work));
      assert.equal((await parent.pids).length, 2);
      const threads = (): string[] => readdirSync(`/proc/${parent.child.pid}/task`);
      const isLess = (): boolean => threads().length <= Number(readFileSync(parent.threadsBefore));
      await waitFor(isLess, leaveMs, 'the threads are as many as before');
    });
  }
}

/** A program whose worker thread has a pool with two workers, and is terminated while they do `work`. */
function terminatesWorker(gate: Gate, way: Way, work: string | undefined): string {
  const marks = [gate.mark('first'), gate.mark('second')];
  const begin = `for (const mark of marks) {
    pool.run(async (file) => { writeFileSync(file, ''); ${work} }, mark).catch(() => {});
  }
  while (!marks.every(existsSync)) await new Promise((resolve) => setImmediate(resolve));`;
  return `
    import { existsSync, readdirSync, writeFileSync } from 'node:fs';
    import { readdir } from 'node:fs/promises';
    import { Worker, isMainThread, parentPort } from 'node:worker_threads';
    import { fileURLToPath } from 'node:url';
    if (isMainThread) {
      await Promise.all(Array(8).fill('.').map((each) => readdir(each))); // libuv's own threads
      writeFileSync('THREADS', String(readdirSync('/proc/self/task').length));
      const worker = new Worker(fileURLToPath(import.meta.url));
      worker.on('message', async (pids) => {
        await worker.terminate();
        console.log(JSON.stringify(pids));
      });
      setInterval(() => {}, 1000);
    } else {
      const marks = ${JSON.stringify(marks)};
      const { Pool } = await import(${JSON.stringify(library)});
      const pool = new Pool({ size: 2, worker: '${way.worker}', channel: '${way.channel}' });
      await pool.warm();
      ${work === undefined ? '' : begin}
      setInterval(() => {}, 1000);
      parentPort.postMessage(pool.stats().workers.map(({ pid }) => pid));
    }`;
}

interface Parent {
  readonly child: ChildProcess;
  /** The value of `THREADS` in the program's text. */
  readonly threadsBefore: string;
  readonly pids: Promise<number[]>;
}

/** A program that prints the numbers of its workers. */
function startParent(t: TestContext, program: string): Parent {
  const { folder } = new Gate(t);
  const threadsBefore = `${folder}/threads`;
  writeFileSync(`${folder}/parent.mjs`, program.replace('THREADS', threadsBefore));
  const child = spawn(process.execPath, [`${folder}/parent.mjs`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const pids = new Promise<number[]>((resolve) => {
    child.stdout.setEncoding('utf8').once('data', (text: string) => {
      const parsed: unknown = JSON.parse(text);
      resolve(Array.isArray(parsed) ? parsed.map(Number) : []);
    });
  });
  return {
    child,
    threadsBefore,
    pids: withDeadline(pids, deadlineMs, 'the workers of the program'),
  };
}

async function expectGoneAfterKill({ child, pids }: Parent): Promise<void> {
  const workers = await pids;
  assert.equal(workers.length, 2);
  assert.ok(workers.every(isRunning));
  child.kill('SIGKILL');
  await waitFor(() => workers.every((pid) => !isRunning(pid)), leaveMs, `${workers} are gone`);
}
