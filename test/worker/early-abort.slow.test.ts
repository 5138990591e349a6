// An abort that comes to a worker before it can begin the call: modules of the call load, or others run.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Pool, pmap, type RunOptions } from '../../src/public.js';
import { Gate, openPool, type Way, ways } from '../pool/calls/ways.js';
import { gatedFolder, mark } from './gated-module.js';

type Begin = (pool: Pool, file: string, options: RunOptions) => Promise<unknown>;

/** Calls that would leave a trace in `file`. */
const calls: Readonly<Record<string, Begin>> = {
  'a function': (pool, file, options) => pool.with(options).run(() => mark(file)),
  'an async function': (pool, file, options) => pool.with(options).run(async () => mark(file)),
  'a function with state': (pool, file, options) => {
    let count = 0;
    count += 1;
    return pool.with(options).run(() => mark(file.repeat(count)));
  },
  'large arguments': (pool, file, options) =>
    pool
      .with(options)
      .run((bytes, name) => mark(name ?? String(bytes)), Buffer.alloc(40_000), file),
  'what is handed over': (pool, file, options) => {
    const bytes = new ArrayBuffer(40_000);
    const call = pool.with({ ...options, transfer: [bytes] });
    return call.run((given) => mark(given.byteLength > 0 ? file : ''), bytes);
  },
  'a generator': async (pool, file, options) => {
    const stream = await pool.with(options).run(function* () {
      mark(file);
      yield 1;
    });
    for await (const item of stream) assert.fail(String(item));
  },
  'a chunk': (pool, file, { signal }) => pmap([1, 2], () => mark(file), { pool, signal }),
};

async function abortsEarly(t: TestContext, way: Way, begin: Begin): Promise<void> {
  const gate = new Gate(t);
  const pool = openPool(t, { size: 1, graceMs: 60_000, env: { [gatedFolder]: gate.folder } }, way);
  const abort = new AbortController();
  const call = begin(pool, gate.mark('began'), { signal: abort.signal });
  const ended = assert.rejects(call, { code: 'ABORTED' });
  await gate.reached('loading');
  abort.abort();
  await ended;
  await nextTurn(); // channels gather what one turn sends
  gate.open();
  assert.equal(await pool.run(() => 'next'), 'next');
  assert.deepEqual(gate.marks, ['loading']);
  const { startedWorkers, exitedWorkers, runningTasks } = pool.stats();
  assert.deepEqual([startedWorkers, exitedWorkers, runningTasks], [1, 0, 0]);
}

for (const way of ways) {
  for (const [name, begin] of Object.entries(calls)) {
    test(`${way.name}: ${name} aborted while its modules load never begins`, (t) =>
      abortsEarly(t, way, begin));
  }
}
