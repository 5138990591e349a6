import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ByteWriter } from '../../src/channels/bytes.js';
import { eventLoop } from '../../src/channels/shm/event-loop.js';
import { hasCode } from '../../src/errors.js';
import {
  openIsolatedPair,
  openPair,
  openWithChild,
  readText,
  until,
  writeText,
} from './shm-harness.js';

const openGuarded = (t: TestContext, { ringBytes }: { readonly ringBytes: number }) =>
  openIsolatedPair(t, { ringBytes, maxFrameBytes: Infinity });

test('a frame that a child process echoes comes back whole', async (t) => {
  const { channel, exited } = openWithChild(t, './shm-echo.js');
  channel.ref();
  const received: unknown[] = [];
  channel.handle({
    onFrame: (kind, task, target, body) => {
      received.push([kind, task, target, readText(body)]);
    },
  });
  assert.equal(channel.trySend(1, -2, 3, writeText, 'hello'), 'sent');
  await until(() => received.length === 1, 'the echo');
  assert.deepEqual(received, [[1, -2, 3, 'hello']]);
  let closed: unknown = 'not yet';
  channel.handle({
    onClose: (error) => {
      closed = error;
    },
  });
  channel.close();
  await exited;
  await until(() => closed !== 'not yet', 'the close');
  assert.equal(closed, undefined);
});

test('frames pass in order in both directions between two ends of one thread', async (t) => {
  const [parent, worker] = openPair(t, { ringBytes: 1024 });
  const seen: string[] = [];
  worker.channel.handle({
    onFrame: (_kind, task, _target, body) => seen.push(`${task}${readText(body)}`),
  });
  parent.channel.ref();
  let sent = 0;
  const sendAll = (): void => {
    while (sent < 1000) {
      const text = 'x'.repeat(sent % 100);
      if (parent.channel.trySend(0, sent, 0, writeText, text) !== 'sent') return;
      sent++;
    }
  };
  parent.channel.handle({ onDrain: sendAll });
  sendAll();
  await until(() => seen.length === 1000, 'a thousand frames');
  const expected = Array.from({ length: 1000 }, (_, i) => `${i}${'x'.repeat(i % 100)}`);
  assert.deepEqual(seen, expected);
});

test('a request for room that is withdrawn does not take an earlier one with it', async (t) => {
  for (const open of [openPair, openGuarded]) {
    const [parent, worker] = open(t, { ringBytes: 1024 });
    const drains: string[] = [];
    const frames: string[] = [];
    parent.channel.ref();
    parent.channel.handle({ onDrain: () => void drains.push('drain') });
    worker.channel.handle({ onFrame: () => void frames.push('frame') });
    const send = (bytes: number): string =>
      parent.channel.trySend(0, 0, 0, writeText, 'x'.repeat(bytes - 16));
    // In the end 32 bytes are free at the end of the ring, and 64 at its start.
    send(64);
    worker.channel.pump();
    for (const bytes of [256, 256, 256, 160]) assert.equal(send(bytes), 'sent');
    assert.equal(send(128), 'full');
    // The peer reads while the second attempt is written, before this side requests room.
    let attempts = 0;
    const slowly = (writer: ByteWriter, text: string): boolean => {
      attempts += 1;
      if (attempts === 2) worker.channel.pump();
      return writeText(writer, text);
    };
    assert.equal(parent.channel.trySend(0, 0, 0, slowly, 'x'.repeat(112)), 'sent');
    assert.equal(attempts, 4);
    assert.deepEqual(drains, []); // never inside of trySend
    await until(() => drains.length > 0, 'onDrain of the frame that was refused');
    await until(() => frames.length === 6, 'all frames');
    assert.equal(drains.length, 1);
  }
});

test('ref() and unref() call native code only for what lasts until the loop sleeps', async (t) => {
  const [parent, worker] = openPair(t);
  const { native } = eventLoop();
  const settle = t.mock.method(native, 'settleRefs');
  const answered: number[] = [];
  worker.channel.handle({
    onFrame: (_kind, task) => worker.channel.trySend(0, task, 0, writeText, ''),
  });
  parent.channel.handle({
    onFrame: (_kind, task) => {
      parent.channel.unref();
      answered.push(task);
      if (task < 100) ask(task + 1);
    },
  });
  const ask = (task: number): void => {
    parent.channel.ref();
    parent.channel.trySend(0, task, 0, writeText, '');
  };
  ask(1);
  await until(() => answered.length === 100, 'a hundred answers');
  assert.equal(settle.mock.callCount(), 1);
});

test('a large frame that the receiver may not map ends the channel with NATIVE_REFUSED', async (t) => {
  const [parent, worker] = openPair(t);
  let closed: Error | undefined;
  worker.channel.handle({
    onClose: (error) => {
      closed = error;
    },
  });
  assert.equal(parent.channel.trySend(0, 0, 0, writeText, 'x'.repeat(100_000)), 'sent');
  process.env['MANYCORE_REFUSE'] = 'mapping';
  t.after(() => {
    delete process.env['MANYCORE_REFUSE'];
  });
  await until(() => closed !== undefined, 'the end');
  assert.ok(hasCode(closed, 'NATIVE_REFUSED'), String(closed));
});

test('each of several peers that close at once is reported, also when listeners close channels or throw', async (t) => {
  const pairs = Array.from({ length: 6 }, () => openPair(t));
  // All of them sleep after this.
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  const closed = new Set<number>();
  const thrown: unknown[] = [];
  // A listener of `uncaughtException` would not keep it from the test runner.
  process.setUncaughtExceptionCaptureCallback((error) => thrown.push(error));
  t.after(() => process.setUncaughtExceptionCaptureCallback(null));
  for (const [index, [parent, worker]] of pairs.entries()) {
    parent.channel.ref();
    worker.channel.handle({
      onClose: () => {
        closed.add(index);
        parent.channel.destroy();
        worker.channel.destroy();
        if (index % 2 === 0) throw new Error(`${index}`);
      },
    });
  }
  for (const [parent] of pairs) parent.channel.close();
  try {
    await until(() => closed.size === pairs.length, 'all of them closed');
    assert.equal(thrown.length, 3);
  } finally {
    for (const [parent, worker] of pairs) {
      parent.channel.destroy();
      worker.channel.destroy();
      parent.peerExited();
    }
  }
});
