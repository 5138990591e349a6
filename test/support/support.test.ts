import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import {
  childrenOf,
  freePort,
  isRunning,
  killOne,
  random,
  seeded,
  waitFor,
  withDeadline,
} from './index.js';

test('waitFor returns the first value, and survives throws before it', async () => {
  const answers = [false, undefined, null, () => assert.fail('not yet'), 0];
  const next = () => {
    const answer = answers.shift();
    return typeof answer === 'function' ? answer() : answer;
  };
  assert.equal(await waitFor(next), 0);
});

test('waitFor fails at its deadline and names the condition and the last throw', async () => {
  const cause = new Error('no answer');
  await assert.rejects(
    waitFor(() => Promise.reject(cause), 5, 'the server answers'),
    (error: Error) =>
      /5 ms still not: the server answers/.test(error.message) && error.cause === cause,
  );
});

test('waitFor fails when its condition never answers', async () => {
  const silent = new Promise<boolean>(() => {});
  await assert.rejects(
    waitFor(() => silent, 5, 'the server answers', 5),
    /5 ms still not: the server answers/,
  );
});

test('withDeadline passes a result and an error on, and fails when neither comes', async () => {
  assert.equal(await withDeadline(Promise.resolve(1), 1000, 'one'), 1);
  await assert.rejects(withDeadline(Promise.reject(new TypeError('no')), 1000, 'one'), TypeError);
  await assert.rejects(
    withDeadline(new Promise(() => {}), 5, 'the end'),
    /5 ms still not: the end/,
  );
});

test('equal seeds give equal numbers, and numbers stay in their range', (t) => {
  const { seed } = random(t);
  const [first, second] = [seeded(seed), seeded(seed)];
  for (let round = 0; round < 1000; round++) {
    const value = first.integer(-3, 4);
    assert.equal(value, second.integer(-3, 4));
    assert.ok(value >= -3 && value < 4, `${value} of seed ${seed}`);
  }
  assert.notDeepEqual(seeded(1).bytes(16), seeded(2).bytes(16));
});

test('a child is found while it runs, and not as a zombie or after it left', async () => {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: 'pipe' });
  await once(child, 'spawn');
  const { pid } = child;
  assert.ok(pid !== undefined && isRunning(pid));
  assert.ok(childrenOf(process.pid).some((each) => each.pid === pid));
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await waitFor(() => !isRunning(pid), undefined, 'the child is gone');
  await closed;
});

test('a number that means a group of processes is not killed', () => {
  for (const pid of [undefined, 0, -1, 1, Number.NaN]) {
    assert.throws(() => killOne(pid, 'SIGKILL'), assert.AssertionError);
  }
});

test('a free port can be bound, and is none that a connection may get', async () => {
  const port = await freePort();
  assert.ok(port >= 10_000 && port < 32_768, `${port}`);
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
});
