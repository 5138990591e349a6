// Types of calls: this file compiles only while they hold, and the promised values come.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CallOptions,
  type OnReport,
  parallel,
  report,
  run,
  task,
  WorkerExitedError,
} from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { openPool } from './ways.js';

interface Progress {
  readonly done: number;
}

async function work(): Promise<number> {
  await report({ done: 1 });
  return 2;
}

test('a listener of reports takes unknown, or declares what it takes', async (t) => {
  const pool = openPool(t, { size: 1 });
  const seen: unknown[] = [];
  const onProgress = ({ done }: Progress): number => seen.push(done);
  const listener: OnReport = (value) => seen.push(value);
  const options: CallOptions = { onReport: undefined };
  const calls: Promise<number>[] = [
    pool.with({ onReport: (value) => typeof value === 'object' && seen.push(value) }).run(work),
    run.with({ onReport: async ({ done }: Progress) => seen.push(done), pool })(work),
    run.with({ onReport: onProgress, pool })(work),
    parallel(work, { onReport: (value) => void seen.push(value), pool })(),
    parallel(work, { onReport: listener, pool })(),
    pool.with(options).run(work),
    // @ts-expect-error: an unknown value has no members.
    pool.with({ onReport: (value) => seen.push(value.done) }).run(work),
  ];
  assert.deepEqual(await Promise.all(calls), Array(7).fill(2));
  assert.deepEqual(seen, [{ done: 1 }, 1, 1, { done: 1 }, { done: 1 }, 1]);
});

test('a task by its name takes any arguments, or those of the type that it is given', async (t) => {
  const pool = openPool(t, { size: 1 });
  const join = task('node:path', 'join');
  const joined: unknown = await pool.run(join, 'a', 'b');
  const typed: string = await run.with({ pool })(
    task<(...parts: string[]) => string>('node:path', 'join'),
    'a',
    'b',
  );
  assert.deepEqual([joined, typed], ['a/b', 'a/b']);
  // @ts-expect-error: numbers are no strings.
  await assert.rejects(pool.run(task<(part: string) => string>('node:path', 'join'), 1));
});

test('the event of a worker that ended has its exit code or signal', async (t) => {
  const pool = openPool(t, { size: 1 });
  const seen: (readonly [exitCode: number | null, signal: string | null])[] = [];
  pool.on('error', (error) => {
    if (error instanceof WorkerExitedError) seen.push([error.exitCode, error.signal]);
  });
  await pool.run(() => void setImmediate(() => process.exit(3)));
  await waitFor(() => seen.length === 1);
  process.kill(await pool.run(() => process.pid), 'SIGKILL');
  await waitFor(() => seen.length === 2);
  assert.deepEqual(seen, [
    [3, null],
    [null, 'SIGKILL'],
  ]);
});
