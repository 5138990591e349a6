import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { Pool, parallel, parallelEvents, propagate, run, taskSignal } from '../../../src/public.js';
import { library, runProgram } from '../../faults/child.js';
import { waitFor } from '../../support/index.js';
import { currentTenant, tenants } from '../tasks.js';
import { Gate, openPool, ways } from './ways.js';

const isInWorker = (): boolean => taskSignal() !== undefined;

// The default pool lives as long as its process: these run in one of their own.
test('run(), parallel() and warm() use the default pool, which does not keep the process', async (t) => {
  const { stdout, stderr, status } = await runProgram(
    t,
    `import { parallel, run, taskSignal, warm } from ${JSON.stringify(library)};
     const isInWorker = () => taskSignal() !== undefined;
     await warm();
     const wrong = await run('work').catch((error) => error.code);
     console.log(JSON.stringify([
       await run(isInWorker), await run.with({ timeoutMs: 60000 })(isInWorker),
       await parallel((a, b) => a + b)(1, 2), isInWorker(), wrong,
     ]));`,
  );
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), [true, true, 3, false, 'TASK_NOT_FUNCTION']);
});

test('parallel() is the function with its arguments and a promise of its result', async (t) => {
  const pool = openPool(t, { size: 1 });
  const add = parallel((a: number, b: number) => a + b, { pool });
  assert.deepEqual(await Promise.all([add(1, 2), add(3, 4)]), [3, 7]);
  const elsewhere = parallel(isInWorker, { pool });
  assert.deepEqual([elsewhere.name, elsewhere.length], ['isInWorker', 0]);
  assert.equal(add.length, 2);
  assert.equal(await elsewhere(), true);
  assert.equal(pool.stats().completedTasks, 3);
});

for (const way of ways) {
  test(`${way.name}: run() inside a task runs there, without a pool of its own`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const pids = await pool.run(async () => [process.pid, await run(() => process.pid)]);
    assert.equal(pids[0], pids[1]);
    const items = await pool.run(async () => {
      const seen: number[] = [];
      const stream = await run(function* () {
        yield* [1, 2, 3];
      });
      for await (const item of stream) seen.push(item);
      return seen;
    });
    assert.deepEqual(items, [1, 2, 3]);
  });

  test(`${way.name}: a pool that a task makes works and is gone with it`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const answer = await pool.run(async () => {
      const inner = new Pool({ size: 1 });
      const result = await inner.run((value: number) => value * 2, 21);
      await inner.close();
      return [result, inner.stats().workers.length];
    });
    assert.deepEqual(answer, [42, 0]);
  });

  test(`${way.name}: a storage that a task captured holds in the worker what it held at the call`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const storage = new AsyncLocalStorage<{ user: string }>();
    const user = (): string | undefined => storage.getStore()?.user;
    const [ann, bob, nobody] = [
      storage.run({ user: 'ann' }, () => pool.run(user)),
      storage.run({ user: 'bob' }, () => pool.run(user)),
      pool.run(user),
    ];
    assert.deepEqual(await Promise.all([ann, bob, nobody]), ['ann', 'bob', undefined]);
  });
}

test('a storage of a module that announced it holds in the worker what it held at the call', async (t) => {
  const pool = openPool(t, { size: 1 });
  const ask = (): string | undefined => currentTenant();
  assert.equal(await tenants.run('north', () => pool.run(ask)), 'north');
  assert.equal(await pool.run(ask), undefined);
});

test('a storage that was announced and captured holds what it held, although no module gives it', async (t) => {
  const pool = openPool(t, { size: 1 });
  const storage = propagate(new AsyncLocalStorage<string>(), 'a storage of this test');
  const seen = (): unknown => [storage.getStore(), currentTenant()];
  const ask = (): Promise<unknown> => storage.run('mine', () => pool.run(seen));
  assert.deepEqual(await tenants.run('south', ask), ['mine', 'south']);
  assert.deepEqual(await ask(), ['mine', undefined]);
  assert.deepEqual(await pool.run(seen), [undefined, undefined]);
});

test('listeners of parallelEvents run in workers, each with the arguments', async (t) => {
  const pool = openPool(t, { size: 1 });
  await pool.warm();
  const emitter = new EventEmitter();
  const results: unknown[] = [];
  using _ = parallelEvents(emitter, ['job'], { pool, whenBusy: 'queue' });
  const gate = new Gate(t);
  const { folder: path } = gate;
  emitter.on('job', async (name: string) => {
    const fs = await import('node:fs');
    fs.writeFileSync(`${path}/mark-${name}`, '');
  });
  emitter.on('other', () => results.push('here'));
  assert.equal(emitter.emit('job', 'one'), true);
  assert.equal(emitter.emit('job', 'two'), true);
  assert.equal(emitter.emit('nobody'), false);
  emitter.emit('other');
  assert.deepEqual(results, ['here']);
  await waitFor(() => pool.stats().completedTasks === 2);
  assert.deepEqual(gate.marks, ['one', 'two']);
});

test('a listener that was added by once() runs once', async (t) => {
  const pool = openPool(t, { size: 1 });
  const emitter = new EventEmitter();
  using _ = parallelEvents(emitter, undefined, { pool, whenBusy: 'queue' });
  emitter.once('job', () => 1);
  assert.equal(emitter.emit('job'), true);
  assert.equal(emitter.emit('job'), false);
  await waitFor(() => pool.stats().completedTasks === 1);
});

test('what a listener throws in a worker is emitted as error', async (t) => {
  const pool = openPool(t, { size: 1 });
  const emitter = new EventEmitter();
  using _ = parallelEvents(emitter, undefined, { pool, whenBusy: 'queue' });
  emitter.on('job', () => {
    throw new RangeError('in the worker');
  });
  const failed = once(emitter, 'error');
  emitter.emit('job');
  const [error] = await failed;
  assert.ok(error instanceof RangeError);
});

test('after it is disposed parallelEvents leaves the emitter as it was', (t) => {
  const pool = openPool(t, { size: 1 });
  const emitter = new EventEmitter();
  const { emit } = emitter;
  const events = parallelEvents(emitter, undefined, { pool });
  assert.notEqual(emitter.emit, emit);
  events[Symbol.dispose]();
  events[Symbol.dispose]();
  assert.equal(emitter.emit, emit);
  assert.equal(Object.hasOwn(emitter, 'emit'), false);
  let count = 0;
  emitter.on('job', () => {
    count += 1;
  });
  emitter.emit('job');
  assert.equal(count, 1);
  assert.equal(pool.stats().startedWorkers, 0);
});
