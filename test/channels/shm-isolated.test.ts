// Isolated ends: bodies of all sizes in pieces, the limit for them.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { random } from '../support/index.js';
import { openIsolatedPair, until, writeText } from './shm-harness.js';

interface Got {
  readonly task: number;
  readonly bytes: Buffer;
}

/** Both ends in this thread, and what the parent and the worker get. */
function openBoth(t: TestContext, ringBytes: number, maxFrameBytes = Infinity) {
  const [parent, worker] = openIsolatedPair(t, { ringBytes, maxFrameBytes });
  const got: Got[] = [];
  const closes: (Error | undefined)[] = [];
  parent.channel.handle({
    onFrame: (_kind, task, _target, body) => {
      got.push({ task, bytes: body.copy(body.limit - body.position) });
    },
    onClose: (error) => closes.push(error),
  });
  parent.channel.ref();
  return { worker, got, closes };
}

test('bodies of any size arrive whole and in order, on both sides of each piece', async (t) => {
  const chance = random(t);
  for (const ringBytes of [1024, 4096, 65_536]) {
    const { worker, got, closes } = openBoth(t, ringBytes);
    const piece = ringBytes / 4 - 24;
    const sizes = [
      0,
      1,
      7,
      8,
      piece - 1,
      piece,
      piece + 1,
      3 * piece,
      ringBytes,
      10 * ringBytes + 3,
    ];
    for (let more = 0; more < 30; more += 1) sizes.push(chance.integer(0, 5 * ringBytes));
    const bodies = sizes.map((size) => Buffer.alloc(size, chance.integer(0, 255)));
    let next = 0;
    const send = (): void => {
      for (; next < bodies.length; next += 1) {
        const body = bodies[next] ?? Buffer.alloc(0);
        const write = (writer: { raw(bytes: Buffer): void }): boolean => {
          writer.raw(body);
          return true;
        };
        if (worker.channel.trySend(3, next, 5, write, undefined) !== 'sent') return;
      }
    };
    worker.channel.handle({ onDrain: send });
    send();
    await until(() => got.length === bodies.length, 'all bodies');
    for (const [at, { task, bytes }] of got.entries()) {
      assert.equal(task, at);
      assert.ok(bytes.equals(bodies[at] ?? Buffer.alloc(0)), `body ${at} of ${sizes[at]} bytes`);
    }
    assert.deepEqual(closes, []);
  }
});

test('a large body that waits for room arrives before the close behind it', async (t) => {
  const { worker, got, closes } = openBoth(t, 1024);
  assert.equal(worker.channel.trySend(1, 1, 0, writeText, 'x'.repeat(50_000)), 'sent');
  assert.equal(worker.channel.trySend(1, 2, 0, writeText, 'later'), 'full');
  worker.channel.close();
  assert.equal(worker.channel.trySend(1, 3, 0, writeText, 'late'), 'closed');
  await until(() => closes.length > 0, 'onClose');
  assert.deepEqual(
    got.map(({ task, bytes }) => [task, bytes.length]),
    [[1, 50_000]],
  );
  assert.deepEqual(closes, [undefined]);
});

test('a body above the limit ends the channel before it has come', async (t) => {
  const { worker, got, closes } = openBoth(t, 4096, 100_000);
  worker.channel.trySend(1, 1, 0, writeText, 'x'.repeat(100_000));
  await until(() => got.length === 1, 'the largest body');
  worker.channel.trySend(1, 2, 0, writeText, 'x'.repeat(100_001));
  await until(() => closes.length > 0, 'onClose');
  assert.match(String(closes[0]), /100001 bytes is too large, 100000 are the most/);
  assert.equal(got.length, 1);
});
