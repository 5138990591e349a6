// Wrong input of a user. Everything is refused before a worker is started.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { callDefaults, callReaders } from '../../src/pool/options.js';
import {
  Pool,
  parallel,
  parallelEvents,
  perWorker,
  propagate,
  run,
  task,
} from '../../src/public.js';
import { Gate, openPool, ways } from '../pool/calls/ways.js';
import { membersOf } from '../support/option-names.js';
import { library, runProgram } from './child.js';

const poolOptions: [name: string, value: unknown][] = [
  ['worker', 'container'],
  ['worker', 5],
  ['worker', null],
  ['worker', { kind: 'jail' }],
  ['worker', { kind: 'vm', engine: 'xen' }],
  ['worker', { kind: 'vm', core: -1 }],
  ['worker', { kind: 'vm', network: 'host' }],
  ['worker', { kind: 'vm', kernel: 'linux' }],
  ['worker', { kind: 'sandbox', files: [] }],
  ['worker', { kind: 'sandbox', read: ['relative'] }],
  ['worker', { kind: 'sandbox', read: ['/no/such/folder'] }],
  ['worker', { kind: 'sandbox', write: '/tmp' }],
  ['worker', { kind: 'sandbox', write: [5] }],
  ['worker', { kind: 'sandbox', network: 'all' }],
  ['worker', { kind: 'sandbox', env: { A: 1 } }],
  ['worker', { kind: 'sandbox', env: { 'A=B': 'text' } }],
  ['worker', { kind: 'sandbox', env: { HOME: '/root' } }],
  ['worker', { kind: 'sandbox', env: { PATH: '/bin' } }],
  ['worker', { kind: 'vm', env: { PATH: '/bin' } }],
  ['worker', { kind: 'sandbox', memoryMb: 1 }],
  ['worker', { kind: 'sandbox', maxProcesses: -1 }],
  ['worker', { kind: 'sandbox', cpuPercent: 0 }],
  ['worker', { kind: 'sandbox', fileMb: 0.5 }],
  ['worker', { kind: 'sandbox', resultMb: 5000 }],
  ['worker', { kind: 'sandbox', outputMb: '1' }],
  ['worker', { kind: 'sandbox', allow: ['no-walls'] }],
  ['worker', { kind: 'sandbox', allow: 'no-cgroup' }],
  ['size', 0],
  ['size', -1],
  ['size', 1.5],
  ['size', '2'],
  ['size', Number.NaN],
  ['size', { min: 3, max: 2 }],
  ['size', { least: 1 }],
  ['size', null],
  ['size', []],
  ['channel', 'carrier pigeon'],
  ['spin', 1],
  ['minSpareWorkers', -1],
  ['maxSpareWorkers', 0.5],
  ['idleTimeMs', -1],
  ['idleTimeMs', '10'],
  ['maxWaitingTasks', -1],
  ['maxWaitingTasks', Number.NaN],
  ['maxTasksAhead', 0],
  ['maxTasksAhead', 'many'],
  ['concurrentTasksPerWorker', 0],
  ['maxTasksPerWorker', 0],
  ['maxRssBytes', -1],
  ['maxHeapMb', 1.5],
  ['execArgv', '--expose-gc'],
  ['execArgv', [1]],
  ['env', 'PATH'],
  ['env', { PATH: 1 }],
  ['affinity', 'all'],
  ['niceIncrement', 20],
  ['setup', 'connect()'],
  ['teardown', {}],
  ['onOutput', 'log'],
  ['cluster', {}],
  ['startTimeoutMs', 0],
  ['startRetryMs', -1],
  ['graceMs', -1],
  ['neighbourGraceMs', '1 s'],
  ['workers', 2],
  ['timeoutMs', 2],
];
for (const [name, value] of poolOptions) {
  test(`a pool with ${name} ${JSON.stringify(value) ?? String(value)} is OPTION_INVALID and names it`, () => {
    assert.throws(
      () => Reflect.construct(Pool, [{ [name]: value }]),
      (error: Error & { code?: string }) =>
        error.code === 'OPTION_INVALID' && error.message.includes(name),
    );
  });
}

const callOptions: [name: string, value: unknown][] = [
  ['whenBusy', 'wait'],
  ['timeoutMs', -1],
  ['timeoutMs', '100'],
  ['timeoutMs', Number.NaN],
  ['maxQueueMs', -1],
  ['signal', {}],
  ['signal', new AbortController()],
  ['priority', 'high'],
  ['priority', Number.NaN],
  ['retry', -1],
  ['retry', 0.5],
  ['onReport', 'log'],
  ['key', {}],
  ['transfer', new ArrayBuffer(1)],
  ['transfer', [1]],
  ['durable', { id: '' }],
  ['retries', 1],
];
for (const [name, value] of callOptions) {
  test(`a call with ${name} ${JSON.stringify(value) ?? String(value)} is OPTION_INVALID and names it`, (t) => {
    const pool = openPool(t, { size: 1 });
    const check = (error: Error & { code?: string }): boolean =>
      error.code === 'OPTION_INVALID' && error.message.includes(name);
    assert.throws(() => Reflect.apply(pool.with, pool, [{ [name]: value }]), check);
    assert.throws(() => Reflect.apply(run.with, run, [{ [name]: value }]), check);
    assert.throws(() => Reflect.apply(parallel, undefined, [() => 1, { [name]: value }]), check);
  });
}

for (const [type, table] of [
  ['PoolOptions', poolOptions],
  ['CallOptions', callOptions],
] as const) {
  test(`each of ${type} has a wrong value above`, () => {
    const tried = new Set(table.map(([name]) => name));
    const members = membersOf('src/pool/options.ts', type);
    assert.ok(members.length > 5);
    assert.deepEqual(
      members.filter((name) => !tried.has(name)),
      [],
    );
  });
}

test('an option that is wrong beside others is named, in any order', (t) => {
  const pool = openPool(t, { size: 1 });
  const pairs = [
    [{ key: 'a', whenBusy: 'inline' }, 'whenBusy'],
    [{ transfer: [new ArrayBuffer(1)], retry: 1 }, 'retry'],
    [{ transfer: [new ArrayBuffer(1)], whenBusy: 'inline' }, 'whenBusy'],
    [{ key: 'a', durable: true }, 'key'],
    [{ durable: true, priority: 1 }, 'priority'],
    [{ durable: true, maxQueueMs: 1 }, 'maxQueueMs'],
    [{ onReport: () => {}, durable: true }, 'onReport'],
  ] as const;
  for (const [options, name] of pairs) {
    const message = new RegExp(`^${name} is `);
    for (const given of [options, Object.fromEntries(Object.entries(options).reverse())]) {
      assert.throws(() => pool.with(given), { code: 'OPTION_INVALID', message });
    }
  }
});

test('the default of an option of a call depends on no other option', () => {
  const valid = {
    whenBusy: 'queue',
    timeoutMs: 5,
    maxQueueMs: 5,
    signal: AbortSignal.timeout(60_000),
    onReport: () => {},
    priority: 1,
    retry: 1,
    key: 'a',
    transfer: [new ArrayBuffer(1)],
    durable: true,
  };
  assert.deepEqual(Object.keys(valid).sort(), Object.keys(callReaders).sort());
  for (const [name, reader] of Object.entries(callReaders)) {
    const others = { ...valid, [name]: undefined };
    const read: unknown = Reflect.apply(reader, undefined, [name, undefined, others]);
    assert.deepEqual(read, Reflect.get(callDefaults, name), name);
  }
});

test('a call of a pool takes no other pool', (t) => {
  const pool = openPool(t, { size: 1 });
  assert.throws(() => Reflect.apply(pool.with, pool, [{ pool }]), {
    code: 'OPTION_INVALID',
    message: /^there is no "pool" in the call options: .*; a pool runs its own calls: run\.with\(/,
  });
});

for (const value of [null, 5, 'fast', []]) {
  test(`options that are ${JSON.stringify(value)} are OPTION_INVALID`, (t) => {
    const pool = openPool(t, { size: 1 });
    assert.throws(() => Reflect.apply(pool.with, pool, [value]), { code: 'OPTION_INVALID' });
    if (value !== null) {
      assert.throws(() => Reflect.construct(Pool, [value]), { code: 'OPTION_INVALID' });
    }
  });
}

for (const value of [undefined, null, 5, 'work', {}, [], Promise.resolve(), Symbol('work')]) {
  test(`running ${typeof value === 'symbol' ? 'a symbol' : String(value) || '[]'} is TASK_NOT_FUNCTION`, async (t) => {
    const pool = openPool(t, { size: 1 });
    await assert.rejects(Reflect.apply(pool.run, pool, [value]), { code: 'TASK_NOT_FUNCTION' });
    assert.equal(pool.stats().startedWorkers, 0);
  });
}

test('a value that is no AsyncLocalStorage, factory, emitter or URL is OPTION_INVALID', () => {
  for (const [fn, args] of [
    [propagate, [{}]],
    [perWorker, ['factory']],
    [parallelEvents, [{}]],
    [task, ['./relative.js', 'name']],
    [task, [import.meta.url, '']],
  ] as const) {
    assert.throws(() => Reflect.apply(fn, undefined, [...args]), { code: 'OPTION_INVALID' });
  }
});

const messages: [what: string, options: unknown, message: RegExp][] = [
  [
    'less ahead than runs at a time',
    { maxTasksAhead: 2, concurrentTasksPerWorker: 3 },
    /^maxTasksAhead is 2: it must be at least concurrentTasksPerWorker, which is 3$/,
  ],
  [
    'a size that is a text',
    { size: '2' },
    /^size is "2": it must be a number or an object with min and max$/,
  ],
  [
    'a size that is an array',
    { size: [1, 2] },
    /^size is an array: it must be a number or an object/,
  ],
  ['a text', 'fast', /^the pool options must be an object, not "fast"$/],
  ['a number', 5, /^the pool options must be an object, not 5$/],
];
for (const [what, options, message] of messages) {
  test(`pool options with ${what} are refused with a way out`, () => {
    assert.throws(() => Reflect.construct(Pool, [options]), { code: 'OPTION_INVALID', message });
  });
}

for (const pool of [null, 5, 'pool', {}, { call: () => 1 }, Pool]) {
  test(`a call to the pool ${typeof pool === 'function' ? 'Pool' : JSON.stringify(pool)} is OPTION_INVALID`, () => {
    const check = { code: 'OPTION_INVALID', message: /^pool is .*: it must be a Pool/ };
    assert.throws(() => Reflect.apply(run.with, run, [{ pool }]), check);
    assert.throws(() => Reflect.apply(parallel, undefined, [() => 1, { pool }]), check);
    const emitter = new EventEmitter();
    assert.throws(
      () => Reflect.apply(parallelEvents, undefined, [emitter, ['job'], { pool }]),
      check,
    );
  });
}

test('parallel() of a value that is no function throws TASK_NOT_FUNCTION at once', () => {
  for (const value of [undefined, null, 'work', {}]) {
    assert.throws(() => Reflect.apply(parallel, undefined, [value]), { code: 'TASK_NOT_FUNCTION' });
  }
});

for (const way of ways) {
  test(`${way.name}: an unknown flag of Node is WORKER_START_FAILED and names execArgv`, async (t) => {
    const pool = openPool(t, { size: 1, execArgv: ['--no-such-flag'] }, way);
    await assert.rejects(
      pool.run(() => 1),
      { code: 'WORKER_START_FAILED', message: /execArgv.*--no-such-flag/ },
    );
  });
}

test('a function that cannot travel is refused before anything is sent', async (t) => {
  const pool = openPool(t, { size: 1 });
  const socket = new WeakRef({});
  await assert.rejects(
    pool.run(() => socket.deref()),
    (error: Error & { code?: string }) =>
      error.code === 'TRANSFER_UNSUPPORTED' && /socket/.test(error.message),
  );
  await assert.rejects(
    pool.run((given: unknown) => given, new WeakMap()),
    {
      code: 'TRANSFER_UNSUPPORTED',
    },
  );
  const { runningTasks, waitingTasks, ran } = pool.stats();
  assert.deepEqual([runningTasks, waitingTasks, ran.count], [0, 0, 0]);
  assert.equal(await pool.run(() => 'lives on'), 'lives on');
});

test('a channel that does not reach the worker is CHANNEL_UNAVAILABLE', () => {
  assert.throws(() => new Pool({ worker: 'thread', channel: 'socket' }), {
    code: 'CHANNEL_UNAVAILABLE',
  });
  assert.throws(() => new Pool({ worker: 'process', channel: 'memory' }), {
    code: 'CHANNEL_UNAVAILABLE',
  });
});

for (const [what, ms] of [
  ['beyond the range of timers', '2 ** 31'],
  ['Infinity', 'Infinity'],
] as const) {
  test(`durations that are ${what} never pass, and cause no warning of Node`, async (t) => {
    const text = `
      import { existsSync, writeFileSync } from 'node:fs';
      import { setTimeout as sleep } from 'node:timers/promises';
      import { Pool, taskSignal } from ${JSON.stringify(library)};
      const warnings = [];
      process.on('warning', (warning) => warnings.push(warning.name));
      const [ms, mark] = [${ms}, ${JSON.stringify(new Gate(t).mark('running'))}];
      const pool = new Pool({ size: { min: 0, max: 1 }, startTimeoutMs: ms, idleTimeMs: ms, graceMs: ms });
      const done = await pool.with({ timeoutMs: ms }).run(() => sleep(50, 'done'));
      const abort = new AbortController();
      const call = pool.with({ signal: abort.signal }).run(async () => {
        const aborted = new Promise((resolve) => taskSignal().addEventListener('abort', resolve));
        writeFileSync(mark, '');
        await aborted;
        await sleep(50);
      });
      call.catch(() => {});
      while (!existsSync(mark)) await sleep(1);
      abort.abort();
      const code = await call.catch((error) => error.code);
      await pool.run(() => 1);
      await sleep(50);
      const { startedWorkers, exitedWorkers } = pool.stats();
      await pool.close();
      console.log(JSON.stringify([done, code, startedWorkers, exitedWorkers, warnings]));`;
    const { stdout, stderr } = await runProgram(t, text);
    assert.notEqual(stdout, '', stderr);
    assert.deepEqual(JSON.parse(stdout), ['done', 'ABORTED', 1, 0, []], stderr);
  });
}
