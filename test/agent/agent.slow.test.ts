// The agent of a thread: its lifetime, what it leaves behind, and what it rejects.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import type { ThreadStats } from '../../src/agent/index.js';
import { parseQuestion, parseSlice, parseStats } from '../../src/agent/protocol.js';
import { threadSampler } from '../../src/agent/sampler.js';
import { addSource, ownStats, sourceStats } from '../../src/agent/sources.js';
import { ownRuntime } from '../observe/runtime.js';
import { waitFor } from '../support/index.js';

/** Calls a worker, and has nothing else to do after a message. */
function startBrief(t: TestContext): ChildProcess {
  const child = fork(new URL('./apps/brief.js', import.meta.url));
  t.after(() => child.kill('SIGKILL'));
  return child;
}

/** Waits for the socket of a program that was begun. */
async function socketOf(t: TestContext): Promise<{ child: ChildProcess; path: string }> {
  const runtime = ownRuntime(t);
  const child = startBrief(t);
  const path = join(runtime, `agent-${child.pid}.0.sock`);
  await waitFor(() => answers(path));
  return { child, path };
}

/** Connects once; the file exists before anything listens. */
async function answers(path: string): Promise<true> {
  const connection = createConnection(path);
  await once(connection, 'connect');
  connection.destroy();
  return true;
}

test('a program that ends by itself leaves no socket, and is not held up by it', async (t) => {
  const runtime = ownRuntime(t);
  const child = startBrief(t);
  await waitFor(() => readdirSync(runtime).length > 0);
  child.send('end');
  const [exitCode] = await once(child, 'exit');
  assert.equal(exitCode, 0);
  assert.deepEqual(readdirSync(runtime), []);
});

test('a connection does not keep the program alive either', async (t) => {
  const runtime = ownRuntime(t);
  const child = startBrief(t);
  const path = join(runtime, await waitFor(() => readdirSync(runtime)[0]));
  await waitFor(() => answers(path));
  const connection = createConnection(path);
  t.after(() => connection.destroy());
  connection.on('error', () => {});
  connection.write('tasks\n');
  connection.resume();
  child.send('end');
  const [exitCode] = await once(child, 'exit');
  assert.equal(exitCode, 0);
});

test('an unknown request ends the connection, and the program goes on', async (t) => {
  const { child, path } = await socketOf(t);
  for (const text of ['restart\n', 'x'.repeat(1000), '\n', 'STATS\n']) {
    const connection = createConnection(path);
    connection.on('error', () => {});
    connection.write(text);
    await once(connection, 'close');
  }
  const connection = createConnection(path);
  t.after(() => connection.destroy());
  connection.write('stats\nstats\n');
  let received = '';
  connection.on('data', (bytes) => {
    received += String(bytes);
  });
  await waitFor(() => received.split('\n').length === 3);
  assert.equal(parseStats(received.split('\n')[1] ?? '')?.pid, child.pid);
});

test('the registry does not keep a source alive', async () => {
  const before = sourceStats().length;
  addSource('pool', { value: 1 }, ({ value }) => ({ value }));
  assert.equal(sourceStats().length, before + 1);
  setFlagsFromString('--expose-gc');
  await waitFor(() => {
    runInNewContext('gc()');
    return sourceStats().length === before;
  });
});

test('the refresh of a source is waited for, but not for ever', async (t) => {
  const owner = { value: 1 };
  const never = new Promise(() => {});
  const busStats = async (): Promise<unknown> =>
    (await ownStats()).sources.find(({ kind }) => kind === 'bus')?.stats;
  const refresh = async (of: typeof owner): Promise<void> => {
    await null;
    of.value += 1;
  };
  const read = ({ value }: typeof owner): object => ({ value });
  const remove = addSource('bus', owner, read, { refresh });
  assert.deepEqual(await busStats(), { value: 2 });
  remove();
  t.after(addSource('bus', owner, read, { refresh: () => never }));
  assert.deepEqual(await busStats(), { value: 2 });
});

/** Number of timers that keep this thread alive. */
function heldTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}

test('a refresh keeps a local reader alive, and not a program that answers a connection', async (t) => {
  const runtime = ownRuntime(t);
  const added: number[] = [];
  const refresh = async (): Promise<void> => {
    const before = heldTimers();
    await null; // until the wait has begun
    added.push(heldTimers() - before);
  };
  const owner = {}; // held, because sources go with their owners
  t.after(addSource('bus', owner, () => ({}), { refresh })); // with it the socket opens
  const name = await waitFor(() => readdirSync(runtime)[0]);
  const connection = createConnection(join(runtime, name));
  t.after(() => connection.destroy());
  connection.on('error', () => {});
  connection.write('stats\n');
  await once(connection, 'data');
  await ownStats();
  assert.deepEqual(added, [0, 1]);
  assert.ok(owner); // alive until here
});

/** Polls once over its own connection. */
async function askOnce(path: string): Promise<ThreadStats | undefined> {
  const connection = createConnection(path);
  connection.write('stats\n');
  let received = '';
  for await (const bytes of connection) {
    received += String(bytes);
    if (received.endsWith('\n')) break; // which ends the connection
  }
  return parseStats(received);
}

test('sampling goes on until the connection that asked is closed', async (t) => {
  const { path } = await socketOf(t);
  const connection = createConnection(path);
  t.after(() => connection.destroy());
  let received = '';
  connection.on('data', (bytes) => {
    received += String(bytes);
  });
  await waitFor(() => {
    connection.write('stats\n');
    return received.split('\n').some((line) => parseStats(line)?.loop.lag !== undefined);
  });
  for (let count = 0; count < 3; count += 1) {
    assert.ok((await askOnce(path))?.loop.lag !== undefined);
  }
  connection.destroy();
  await waitFor(async () => {
    const stats = await askOnce(path);
    return stats !== undefined && stats.loop.lag === undefined;
  });
});

test('sampling for a reader within the program outlasts connections', async () => {
  const sampler = threadSampler(sourceStats);
  sampler.stop();
  await waitFor(async () => (await ownStats()).loop.lag !== undefined);
  const other = {};
  sampler.sample({ reader: other });
  sampler.release(other);
  assert.ok((await ownStats()).loop.lag !== undefined);
});

test('the longest delay of a loop is reported for a minute, not only for a second', async () => {
  const lagOf = async () => (await ownStats()).loop.lag;
  const before = await waitFor(lagOf);
  // The loop is blocked right after a window was reported, before the first sample of the next one.
  while ((await lagOf()) === before) await setImmediate();
  const end = performance.now() + 300;
  while (performance.now() < end);
  await waitFor(async () => {
    const lag = await lagOf();
    return lag !== undefined && lag.worstMs > 200 && lag.maxMs < lag.worstMs;
  });
});

test('any text over a socket parses as stats, a slice, a question, or nothing', () => {
  const texts = fc.oneof(fc.string(), fc.json(), fc.constantFrom('', '{}', 'null', '{"pid":1}'));
  fc.assert(
    fc.property(texts, (text) => {
      const stats = parseStats(text);
      assert.ok(stats === undefined || Array.isArray(stats.sources));
      const slice = parseSlice(text);
      assert.ok(slice === undefined || Array.isArray(slice.tasks));
    }),
  );
});

test('valid parts of a slice are read, malformed ones are dropped', () => {
  const span = { task: 1, worker: 2, name: 'x', startMs: 1, endMs: 2, isFailed: false };
  const worker = { worker: 2, tasks: 1, failed: 0, busyMs: 1 };
  const slice = {
    fromMs: 0,
    toMs: 9,
    workers: [worker],
    tasks: [span],
    running: [span],
    ran: [[1, 2]],
  };
  const wrong = [null, 5, [], {}, [1], [1, 'x'], { ...span, endMs: null }];
  const parts = ['workers', 'tasks', 'running', 'ran', 'waited'] as const;
  const texts = fc.tuple(fc.constantFrom(...parts), fc.array(fc.constantFrom(...wrong)));
  fc.assert(
    fc.property(texts, ([part, items]) => {
      const whole: unknown[] = Object(slice)[part] ?? [];
      const parsed = parseSlice(JSON.stringify({ ...slice, [part]: [...items, ...whole] }));
      assert.deepEqual(parsed, { waited: [], ...slice });
    }),
  );
  const anything = fc.tuple(fc.constantFrom(...parts, 'fromMs', 'toMs'), fc.json());
  fc.assert(
    fc.property(anything, ([part, text]) => {
      const parsed = parseSlice(JSON.stringify({ ...slice, [part]: JSON.parse(text) }));
      for (const { startMs, endMs } of [...(parsed?.tasks ?? []), ...(parsed?.running ?? [])]) {
        assert.ok(Number.isFinite(endMs - startMs));
      }
      for (const [upperMs, count] of parsed?.ran ?? []) assert.ok(Number.isFinite(upperMs + count));
      assert.ok([undefined, 'stats', 'probedStats', 'tasks'].includes(parseQuestion(text)));
    }),
  );
});
