// Parts of a call's trace that no worker records: failures outside of a worker, and tries.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Pool, type PoolOptions, pmap } from '../../../src/public.js';
import { openPool } from '../../pool/calls/ways.js';
import { folder } from '../../serve/served.js';
import { inSpan, type SpanFacts, takeSpans } from './tracing.js';

const execArgv = ['--import', new URL('./tracing.js', import.meta.url).href];

function tracedPool(t: TestContext, options: PoolOptions = {}): Pool {
  return openPool(t, { size: 1, worker: 'process', execArgv, ...options });
}

/** The spans that `work` leaves here, but for that in which it was called. */
async function spansIn(work: () => Promise<unknown>): Promise<readonly SpanFacts[]> {
  takeSpans();
  await inSpan('request', work);
  return takeSpans().filter(({ name }) => name !== 'request');
}

const facts = (spans: readonly SpanFacts[]): unknown[] =>
  spans.map(({ name, attributes, exceptions }) => [name, attributes['error.type'], exceptions]);

const forever = (): never => {
  while (true);
};

test('a call that times out is an error in the trace of its caller', async (t) => {
  const pool = tracedPool(t, { graceMs: 10 });
  const spans = await spansIn(() =>
    assert.rejects(pool.with({ timeoutMs: 50 }).run(forever), { code: 'TASK_TIMED_OUT' }),
  );
  assert.deepEqual(facts(spans), [['call forever', 'TASK_TIMED_OUT', 1]]);
});

test('an aborted call is an error in the trace of its caller, before a worker has it and after', async (t) => {
  const pool = tracedPool(t, { graceMs: 10 });
  await pool.warm();
  const spans = await spansIn(async () => {
    const { signal } = new AbortController();
    const ended = AbortSignal.abort();
    await assert.rejects(pool.with({ signal: ended }).run(forever), { code: 'ABORTED' });
    const aborted = AbortSignal.any([signal, AbortSignal.timeout(50)]);
    await assert.rejects(pool.with({ signal: aborted }).run(forever), { code: 'ABORTED' });
  });
  assert.deepEqual(facts(spans), [
    ['call forever', 'ABORTED', 1],
    ['call forever', 'ABORTED', 1],
  ]);
});

test('a call is an error in the trace of its caller when the queue is full or its worker is killed', async (t) => {
  const pool = tracedPool(t, { maxWaitingTasks: 1, maxTasksAhead: 1 });
  const spans = await spansIn(async () => {
    const all = Array.from({ length: 5 }, () =>
      pool.run(function leave() {
        process.kill(process.pid, 'SIGKILL');
      }),
    );
    await Promise.allSettled(all);
  });
  assert.equal(spans.length, 5);
  const types = new Set(spans.map(({ attributes }) => attributes['error.type']));
  assert.deepEqual(types, new Set(['POOL_QUEUE_FULL', 'WORKER_EXITED']));
});

test('a call that is tried again is one span, and its completed try is the child', async (t) => {
  const pool = tracedPool(t);
  const mark = join(folder(t), 'tried');
  const spans = await spansIn(() =>
    pool.with({ retry: 1 }).run(function again() {
      if (existsSync(mark)) return;
      writeFileSync(mark, '');
      process.kill(process.pid, 'SIGKILL');
    }),
  );
  assert.deepEqual(facts(spans), [['call again', undefined, 0]]);
  const [ran] = await pool.run(() => takeSpans()); // the first try had no time to record
  assert.deepEqual([ran?.name, ran?.parentId], ['task again', spans[0]?.spanId]);
});

test('a map that fails is an error in the trace of its caller', async (t) => {
  const pool = tracedPool(t);
  const spans = await spansIn(() =>
    assert.rejects(
      pmap(
        [1, 2],
        function leave() {
          process.kill(process.pid, 'SIGKILL');
        },
        { pool },
      ),
      { code: 'WORKER_EXITED' },
    ),
  );
  assert.deepEqual(facts(spans), [['map leave', 'WORKER_EXITED', 1]]);
});
