import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { hasCode } from '../../src/errors.js';
import { abortError, beforeDeadline, defer, startTimer } from '../../src/lib/index.js';

const never = { deadlineMs: Number.POSITIVE_INFINITY, onDeadline: () => new Error('too late') };

test('a wait settles as the work does, with its value or its error', async () => {
  assert.equal(await beforeDeadline(Promise.resolve(7), never), 7);
  const failure = new Error('work failed');
  await assert.rejects(beforeDeadline(Promise.reject(failure), never), failure);
});

test('a wait rejects with the error of its owner when its deadline passes', async () => {
  const work = defer<number>();
  const late = new Error('too late');
  await assert.rejects(
    beforeDeadline(work.promise, { deadlineMs: 1, onDeadline: () => late }),
    late,
  );
  work.reject(new Error('nobody listens any more'));
});

test('an abort, before or during the wait, rejects with ABORTED and the reason as its cause', async () => {
  const reason = new Error('the user left');
  for (const abortFirst of [true, false]) {
    const stopper = new AbortController();
    if (abortFirst) stopper.abort(reason);
    const wait = beforeDeadline(defer().promise, { ...never, signal: stopper.signal });
    if (!abortFirst) stopper.abort(reason);
    await assert.rejects(wait, (error: Error) => {
      assert.ok(hasCode(error, 'ABORTED'));
      assert.equal(error.cause, reason);
      assert.match(error.message, /the user left/);
      return true;
    });
  }
});

test('a wait that is over leaves no listener on its signal', async () => {
  const { signal } = new AbortController();
  await beforeDeadline(Promise.resolve(), { ...never, signal });
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
});

test('a deadline beyond the range of timers waits instead of firing at once', async () => {
  const work = defer<string>();
  const wait = beforeDeadline(work.promise, { ...never, deadlineMs: 2 ** 40 });
  setImmediate(() => setImmediate(() => work.resolve('done')));
  assert.equal(await wait, 'done');
});

test('a timer beyond the range of Node never fires, a shorter one does', async () => {
  for (const ms of [2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY]) {
    assert.equal(
      startTimer(ms, () => assert.fail('fired')),
      undefined,
    );
  }
  const fired = defer<string>();
  startTimer(1, () => fired.resolve('fired'));
  assert.equal(await fired.promise, 'fired');
  const longest = startTimer(2 ** 31 - 1, () => assert.fail('fired'));
  assert.equal(longest?.hasRef(), true);
  clearTimeout(longest);
});

test('a signal that is aborted with no error still gives a message', () => {
  assert.match(abortError(AbortSignal.abort('stop')).message, /aborted: stop/);
});

test('a signal that is aborted with what has no text still gives a message', () => {
  assert.match(abortError(AbortSignal.abort(Object.create(null))).message, /aborted: a value/);
});

test('what came while the loop was blocked is in time', async (t) => {
  const words = new Int32Array(new SharedArrayBuffer(8));
  const text = `const { parentPort, workerData } = require('node:worker_threads');
    Atomics.wait(workerData, 0, 0);
    parentPort.postMessage('in time');
    Atomics.store(workerData, 1, 1);
    Atomics.notify(workerData, 1);`;
  const worker = new Worker(text, { eval: true, workerData: words });
  t.after(() => worker.terminate());
  await once(worker, 'online');
  await new Promise((resolve) => setImmediate(resolve)); // timers come before messages from here
  const posted = new Promise((resolve) => worker.once('message', resolve));
  const wait = beforeDeadline(posted, { ...never, deadlineMs: 5 });
  Atomics.store(words, 0, 1);
  Atomics.notify(words, 0);
  Atomics.wait(words, 1, 0, 30_000);
  Atomics.wait(words, 1, 1, 20); // the deadline is over
  assert.equal(await wait, 'in time');
});
