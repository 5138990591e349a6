// Calls that seem right and mean nothing: each is refused at once. The message shows the given value and the
// call that was meant.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import {
  CodedError,
  type Pool,
  parallelEvents,
  pmap,
  run,
  shared,
  task,
} from '../../src/public.js';
import { openPool } from '../pool/calls/ways.js';

/** Called with arguments that types would not allow. */
function call(fn: (...args: never[]) => unknown, ...args: unknown[]): unknown {
  return Reflect.apply(fn, undefined, args);
}

const emitter = new EventEmitter();
const controller = new AbortController();

const mistakes: readonly [title: string, make: (pool: Pool) => unknown, says: RegExp][] = [
  [
    'run.with(options, fn)',
    () => call(run.with, { timeoutMs: 5 }, () => 1),
    /^run\.with\(\) takes options alone: run\.with\(options\)\(fn, …\)$/,
  ],
  [
    'pool.with(options, fn)',
    (pool) => call(pool.with.bind(pool), { timeoutMs: 5 }, () => 1),
    /^pool\.with\(\) takes options alone: pool\.with\(options\)\.run\(fn, …\)$/,
  ],
  [
    'an object for the names of events',
    () => call(parallelEvents, emitter, { frame: 1 }),
    /^names is an object: it must be the name of an event or an array of them/,
  ],
  [
    'a list of names with something else in it',
    () => call(parallelEvents, emitter, ['frame', undefined]),
    /^names is an array: it must be the name of an event/,
  ],
  ['a size as text', () => call(shared, '10'), /^shared\(\) got "10": give a size in bytes/],
  [
    'a controller for its signal',
    () => call(run.with, { signal: controller }),
    /^signal is an object: it must be an AbortSignal: pass controller\.signal$/,
  ],
  [
    'the same in a map',
    (pool) => call(pmap, [1], () => 1, { pool, signal: controller }),
    /: pass controller\.signal$/,
  ],
  [
    'a text that was thrown',
    (pool) =>
      pmap(
        [1],
        () => {
          throw '10';
        },
        { pool },
      ),
    /^the mapper threw "10" for item 0$/,
  ],
  [
    'a module that is not there',
    () => task('file:///nowhere/gone.mjs', 'f')(),
    /^file:\/\/\/nowhere\/gone\.mjs cannot be imported here: there is no such file$/,
  ],
];

test('a mistake is refused with the given value and the call that was meant', async (t) => {
  const pool = openPool(t, { size: 1 });
  for (const [title, make, says] of mistakes) {
    const error = await (async () => make(pool))().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof CodedError, `${title}: ${String(error)}`);
    assert.match(error.message, says, title);
  }
});

test('the error of a full queue of one has the singular', async (t) => {
  const pool = openPool(t, { size: 1, maxWaitingTasks: 1, maxTasksAhead: 1 });
  const calls = Array.from({ length: 4 }, () => pool.run(() => 1));
  const outcomes = await Promise.allSettled(calls);
  const messages = outcomes.flatMap((each) =>
    each.status === 'rejected' ? [String(each.reason)] : [],
  );
  assert.match(messages[0] ?? '', /: the queue is full: 1 task waits; await some/);
});

test('parallelEvents takes the name of one event', async (t) => {
  const pool = openPool(t, { size: 1 });
  const own = new EventEmitter();
  using _ = parallelEvents(own, 'job', { pool, whenBusy: 'queue' });
  let others = 0;
  own.on('other', () => {
    others += 1;
  });
  own.on('job', () => 1);
  own.emit('other');
  own.emit('job');
  await pool.close();
  assert.equal(others, 1);
  assert.equal(pool.stats().completedTasks, 1);
});
