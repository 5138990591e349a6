import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pool, pmap, run } from '../../src/index.js';
import { didYouMean } from '../../src/internal/did-you-mean.js';
import { random } from '../support/index.js';

/** Throws with the message of the option that is none. */
const takers: Record<string, (options: object) => unknown> = {
  'new Pool()': (options) => new Pool(options),
  'run.with()': (options) => run.with(options),
  'pmap.stream()': (options) => pmap.stream([1], (x) => x, options),
};

for (const [taker, wrong, meant] of [
  ['new Pool()', 'maxThreads', 'size: { max }'],
  ['new Pool()', 'minThreads', 'size: { min }'],
  ['new Pool()', 'maxWorkers', 'size: { max }'],
  ['new Pool()', 'filename', 'no file: give run() the function itself'],
  ['new Pool()', 'maxQueue', 'maxWaitingTasks'],
  ['new Pool()', 'idleTimeout', 'idleTimeMs'],
  ['new Pool()', 'workerType', 'host: "process" or "thread"'],
  ['new Pool()', 'SIZE', 'size'],
  ['new Pool()', 'concurentTasksPerHost', 'concurrentTasksPerHost'],
  ['run.with()', 'timeout', 'timeoutMs'],
  ['run.with()', 'retries', 'retry'],
  ['run.with()', 'timeoutMS', 'timeoutMs'],
  ['pmap.stream()', 'concurrency', 'size of a pool, which you give as the option pool'],
  ['pmap.stream()', 'stopOnError', 'settled: true'],
  ['pmap.stream()', 'chunks', 'chunk'],
] as const) {
  test(`${taker} with ${wrong} names ${meant}`, () => {
    assert.throws(
      () => takers[taker]?.({ [wrong]: 1 }),
      (error) => {
        assert.ok(error instanceof Error);
        assert.ok(error.message.endsWith(`; did you mean ${meant}?`), error.message);
        return true;
      },
    );
  });
}

test('what resembles no option gets no hint', () => {
  for (const name of ['', 'x', 'constructor', '__proto__', 'toString', 'somethingElse']) {
    assert.equal(didYouMean(name, ['size', 'host', 'maxWaitingTasks']), undefined, name);
  }
});

test('one wrong letter in a name of six and more is found', (t) => {
  const { integer, pick } = random(t);
  const names = [
    'timeoutMs',
    'maxWaitingTasks',
    'idleTimeMs',
    'execArgv',
    'affinity',
    'startTimeoutMs',
  ];
  for (let run = 0; run < 200; run += 1) {
    const name = pick(names);
    const at = integer(0, name.length);
    const wrong = pick([
      `${name.slice(0, at)}${name.slice(at + 1)}`,
      `${name.slice(0, at)}q${name.slice(at)}`,
      `${name.slice(0, at)}q${name.slice(at + 1)}`,
    ]);
    assert.equal(didYouMean(wrong, names), name, wrong);
  }
});
