// Calls with a key run in one worker while it lives; runOnEach runs once in each worker that is there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { announcements } from '../../../src/lib/index.js';
import { type CallOptions, perWorker, report, workerNumber } from '../../../src/public.js';
import { random, waitFor } from '../../support/index.js';
import { Gate, openPool, ways } from '../calls/ways.js';

const where = () => workerNumber();

for (const way of ways) {
  test(`${way.name}: a key keeps its worker, and keys spread evenly`, async (t) => {
    const pool = openPool(t, { size: 3 }, way);
    await pool.warm();
    const workers = new Map<number, Set<number | undefined>>();
    const calls = Array.from({ length: 300 }, async (_, call) => {
      const key = call % 30;
      const worker = await pool.with({ key }).run(where);
      workers.set(key, (workers.get(key) ?? new Set()).add(worker));
    });
    await Promise.all(calls);
    assert.ok([...workers.values()].every(({ size }) => size === 1));
    const counts = new Map<number | undefined, number>();
    for (const [worker] of workers.values()) counts.set(worker, (counts.get(worker) ?? 0) + 1);
    assert.deepEqual([...counts.values()], [10, 10, 10]);
  });

  test(`${way.name}: runOnEach runs once in each worker, in the order of their numbers`, async (t) => {
    const pool = openPool(t, { size: 3 }, way);
    assert.deepEqual(await pool.runOnEach(where), []);
    await pool.warm();
    const numbers = await pool.runOnEach((add: number) => add + Number(workerNumber()), 100);
    assert.equal(new Set(numbers).size, 3);
    assert.deepEqual(numbers, numbers.toSorted());
    await assert.rejects(
      pool.runOnEach(() => {
        throw new RangeError('in each');
      }),
      RangeError,
    );
    await pool.close();
    await assert.rejects(pool.runOnEach(where), { code: 'POOL_CLOSED' });
  });
}

test('runOnEach keeps the options of a call that hold for each worker, and refuses the others', async (t) => {
  const pool = openPool(t, { size: 2, graceMs: 10 });
  await pool.warm();
  const seen: unknown[] = [];
  const onReport = (value: unknown): void => void seen.push(value);
  const workers = await pool.with({ onReport }).runOnEach(async (value: string) => {
    await report(value);
    return workerNumber();
  }, 'said');
  assert.equal(new Set(workers).size, 2);
  assert.deepEqual(seen, ['said', 'said']);
  await assert.rejects(
    pool.with({ timeoutMs: 20 }).runOnEach(() => new Promise(() => {})),
    { code: 'TASK_TIMED_OUT' },
  );
  const buffer = new ArrayBuffer(1);
  const refused: Record<string, CallOptions> = {
    key: { key: 1 },
    retry: { retry: 1 },
    whenBusy: { whenBusy: 'reject' },
    transfer: { transfer: [buffer] },
  };
  for (const [name, options] of Object.entries(refused)) {
    await assert.rejects(
      pool.with(options).runOnEach((_given) => 1, buffer),
      { code: 'OPTION_INVALID', message: new RegExp(`^${name} .*with runOnEach`) },
    );
  }
  assert.equal(buffer.byteLength, 1);
});

test('a key goes to another worker when its own ends, and its waiting calls with it', async (t) => {
  const pool = openPool(t, { size: 2 });
  const gate = new Gate(t);
  await pool.warm();
  const keyed = pool.with({ key: 'user 7' });
  const first = await keyed.run(() => process.pid);
  const [file, mark] = [gate.file, gate.mark('busy')];
  const running = keyed.run(async () => {
    const { existsSync, writeFileSync } = await import('node:fs');
    writeFileSync(mark, '');
    while (!existsSync(file)) await new Promise((turn) => setTimeout(turn, 5));
  });
  running.catch(() => {});
  const waiting = Array.from({ length: 5 }, () => keyed.run(() => process.pid));
  await gate.reached('busy');
  assert.equal(pool.stats().waitingTasks, 5);
  assert.equal(typeof (await pool.run(() => 1)), 'number', 'the other worker is free for others');
  process.kill(first, 'SIGKILL');
  await assert.rejects(running, { code: 'WORKER_EXITED' });
  const pids = new Set(await Promise.all(waiting));
  assert.equal(pids.size, 1);
  assert.ok(!pids.has(first));
  gate.open();
});

/** Runs in a worker: marks that it runs, and waits for the file. */
async function wait(file: string, mark: string): Promise<void> {
  const { existsSync, writeFileSync } = await import('node:fs');
  writeFileSync(mark, '');
  while (!existsSync(file)) await new Promise((turn) => setTimeout(turn, 5));
}

test('a call that waited for the first worker comes before later ones of its key', async (t) => {
  const pool = openPool(t, { size: 1 });
  const gate = new Gate(t);
  const log = perWorker((): string[] => []);
  const note = (name: string) => log().push(name);
  const first = pool.run(wait, gate.file, gate.mark('first'));
  const calls = [pool.run(note, 'plain'), pool.with({ key: 'a' }).run(note, 'early')];
  await gate.reached('first');
  calls.push(pool.with({ key: 'a' }).run(note, 'late'));
  gate.open();
  await Promise.all([first, ...calls]);
  assert.deepEqual(await pool.run(() => log()), ['plain', 'early', 'late']);
});

test('what waits for a worker that is recycled runs in another at once', async (t) => {
  const pool = openPool(t, { size: 1 });
  const gate = new Gate(t);
  await pool.warm();
  const keyed = pool.with({ key: 'a' });
  const running = keyed.run(wait, gate.file, gate.mark('busy'));
  const next = keyed.run(where);
  const each = pool.runOnEach(where);
  await gate.reached('busy');
  const recycled = pool.recycle();
  await assert.rejects(each, { code: 'WORKER_EXITED' });
  pool.resize(2);
  assert.equal(typeof (await next), 'number');
  gate.open();
  await Promise.all([running, recycled]);
});

test('calls run in the order of their calls, by key and without one', async (t) => {
  const pool = openPool(t, { size: 1 });
  const chance = random(t);
  const log = perWorker((): [string, number][] => []);
  const calls = Array.from({ length: 200 }, (_, call) => {
    const key = chance.pick(['', 'a', 'b']);
    const caller = pool.with(key === '' ? {} : { key });
    return caller.run((...entry: [string, number]) => log().push(entry), key, call);
  });
  await Promise.all(calls);
  const ran = await pool.run(() => log());
  assert.equal(ran.length, 200);
  for (const key of ['', 'a', 'b']) {
    const numbers = ran.filter(([of]) => of === key).map(([, call]) => call);
    assert.deepEqual(
      numbers,
      numbers.toSorted((a, b) => a - b),
      `key "${key}"`,
    );
  }
});

test('by chance: every call settles once while workers come and go and calls are aborted', async (t) => {
  const pool = openPool(t, { size: { min: 1, max: 3 }, graceMs: 10, maxWaitingTasks: 60 });
  const chance = random(t);
  const outcomes: string[] = [];
  const calls: Promise<void>[] = [];
  const workersOf = new Map<string, number[]>();
  const onStart = (message: unknown): void => {
    const [name, worker] = ['name', 'worker'].map((each) => Reflect.get(Object(message), each));
    const workers = workersOf.get(String(name)) ?? [];
    workersOf.set(String(name), workers);
    if (workers.at(-1) !== worker) workers.push(Number(worker));
  };
  announcements.taskStart.subscribe(onStart);
  t.after(() => announcements.taskStart.unsubscribe(onStart));
  for (let step = 0; step < 300; step += 1) {
    const kind = chance.integer(0, 60);
    if (kind === 0) {
      const { workers } = pool.stats();
      const pid = workers.length === 0 ? undefined : chance.pick(workers).pid;
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    } else if (kind === 1) pool.resize(chance.integer(1, 4));
    else if (kind === 2) calls.push(settled(pool.runOnEach(where)));
    else if (kind === 3) void pool.recycle();
    else {
      const abort = new AbortController();
      const key = chance.pick(['', 'a', 'b', 3, 4]);
      const retry = chance.integer(0, 3);
      const priority = chance.integer(0, 2);
      const caller = pool.with({
        ...(key !== '' && { key }),
        retry,
        priority,
        signal: abort.signal,
      });
      const name = `key ${key}`;
      const rest = {
        [name]: (ms: number): Promise<unknown> => new Promise((end) => setTimeout(end, ms)),
      };
      calls.push(settled(caller.run(rest[name] ?? assert.fail(), 1)));
      if (kind < 8) abort.abort();
    }
    if (chance.integer(0, 4) === 0) await new Promise((turn) => setTimeout(turn, 1));
  }
  await Promise.all(calls);
  assert.equal(outcomes.length, calls.length);
  const allowed = new Set(['ok', 'WORKER_EXITED', 'ABORTED', 'POOL_QUEUE_FULL']);
  assert.deepEqual(
    [...new Set(outcomes)].filter((each) => !allowed.has(each)),
    [],
  );
  await waitFor(() => pool.stats().runningTasks === 0);
  assert.equal(pool.stats().waitingTasks, 0);
  for (const key of ['a', 'b', '3', '4']) {
    const workers = workersOf.get(`key ${key}`) ?? [];
    assert.equal(
      new Set(workers).size,
      workers.length,
      `key ${key} came back to a worker: ${workers}`,
    );
  }

  async function settled(call: Promise<unknown>): Promise<void> {
    try {
      await call;
      outcomes.push('ok');
    } catch (error) {
      outcomes.push(String(Reflect.get(Object(error), 'code')));
    }
  }
});

test('options that a key excludes, and keys that are none', async (t) => {
  const pool = openPool(t, { size: 1 });
  for (const options of [
    { key: {} },
    { key: Symbol('a') },
    { key: 'a', whenBusy: 'inline' },
    { key: 'a', whenBusy: 'reject' },
    { key: 'a', durable: true },
  ]) {
    assert.throws(() => Reflect.apply(pool.with, pool, [options]), { code: 'OPTION_INVALID' });
  }
});
