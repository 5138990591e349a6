// Behaviour of the framed channels that the conformance suite cannot provoke from outside: the carrier here
// is the test itself.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Carrier, type CarrierListener, FramedChannel } from '../../src/channels/framed.js';
import { FrameBatch } from '../../src/channels/frames.js';
import type { ByteWriter } from '../../src/channels/index.js';
import { hasCode } from '../../src/errors.js';

function writeText(writer: ByteWriter, text: string): boolean {
  writer.raw(Buffer.from(text));
  return true;
}

class TestCarrier implements Carrier {
  queuedBytes = 0;
  readonly written: Buffer[] = [];
  readonly giveBacks: (() => void)[] = [];
  ends = 0;
  destroys = 0;

  write(bytes: Buffer, giveBack: (bytes: Buffer) => void): void {
    this.written.push(bytes);
    this.giveBacks.push(() => giveBack(bytes));
  }

  ref(): void {}
  unref(): void {}

  end(): void {
    this.ends += 1;
  }

  destroy(): void {
    this.destroys += 1;
  }
}

interface Given {
  readonly channel: FramedChannel;
  readonly carrier: TestCarrier;
  readonly arrive: CarrierListener;
  readonly calls: string[];
}

function given(): Given {
  const carrier = new TestCarrier();
  const listeners: CarrierListener[] = [];
  const channel = new FramedChannel('socket', (listener) => {
    listeners.push(listener);
    return carrier;
  });
  const calls: string[] = [];
  channel.handle({
    onFrame: (kind) => calls.push(`frame ${kind}`),
    onClose: (error) => {
      calls.push(error !== undefined && 'code' in error ? String(error.code) : 'orderly');
    },
    onDrain: () => calls.push('drain'),
  });
  const arrive = listeners[0];
  assert.ok(arrive);
  return { channel, carrier, arrive, calls };
}

/** Frames of these kinds; 0 stands for a goodbye. */
function stream(...kinds: number[]): Buffer {
  const batch = new FrameBatch(Buffer.alloc(0));
  for (const kind of kinds) {
    if (kind === 0) batch.addGoodbye();
    else batch.add(kind, 0, 0, writeText, 'body');
  }
  return batch.take(Buffer.alloc(0));
}

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('frames behind a goodbye are not delivered, nor is a second goodbye', () => {
  const { arrive, calls } = given();
  arrive.onBytes(stream(1, 0, 2, 0));
  arrive.onBytes(stream(3));
  assert.deepEqual(calls, ['frame 1', 'orderly']);
});

test('destroy() in a listener silences the rest of the piece, the end and the failure', () => {
  const { arrive, calls, channel, carrier } = given();
  channel.handle({
    onFrame: () => {
      calls.push('frame');
      channel.destroy();
    },
  });
  arrive.onBytes(stream(1, 2, 0));
  arrive.onBytes(Buffer.alloc(16, 0xfd));
  arrive.onRoom();
  arrive.onEnd(new Error('late'));
  assert.deepEqual(calls, ['frame']);
  assert.equal(carrier.destroys, 1);
});

test('the end without a goodbye is reported once, with its cause', () => {
  const { arrive, channel } = given();
  const errors: (Error | undefined)[] = [];
  channel.handle({ onClose: (error) => errors.push(error) });
  const cause = new Error('broken pipe');
  arrive.onEnd(cause);
  arrive.onEnd(undefined);
  assert.equal(errors.length, 1);
  assert.ok(hasCode(errors[0], 'CHANNEL_CLOSED'));
  assert.equal(errors[0]?.cause, cause);
});

test('the carrier is released when both sides have sent a goodbye, in either order', () => {
  const first = given();
  first.channel.close();
  assert.equal(first.carrier.ends, 0);
  first.arrive.onBytes(stream(0));
  assert.equal(first.carrier.ends, 1);
  const second = given();
  second.arrive.onBytes(stream(0));
  assert.equal(second.carrier.ends, 0);
  second.channel.close();
  assert.equal(second.carrier.ends, 1);
  assert.deepEqual(second.carrier.written.length, 1);
});

test('frames of one turn go out in one write, a full batch at once', async () => {
  const { channel, carrier } = given();
  for (let kind = 1; kind <= 3; kind += 1) channel.trySend(kind, 0, 0, writeText, 'body');
  assert.equal(carrier.written.length, 0);
  await nextTick();
  assert.ok(carrier.written[0]?.equals(stream(1, 2, 3)));
  channel.trySend(4, 0, 0, writeText, 'x'.repeat(70_000));
  assert.equal(carrier.written.length, 2);
  await nextTick();
  assert.equal(carrier.written.length, 2);
});

test('a buffer is written to again only after the carrier gave it back', async () => {
  const { channel, carrier } = given();
  channel.trySend(1, 0, 0, writeText, 'first');
  await nextTick();
  channel.trySend(2, 0, 0, writeText, 'second');
  await nextTick();
  assert.ok(carrier.written[0]?.includes('first'));
  assert.notEqual(carrier.written[0]?.buffer, carrier.written[1]?.buffer);
  carrier.giveBacks[0]?.();
  for (const text of ['third', 'fourth']) {
    channel.trySend(3, 0, 0, writeText, text);
    await nextTick();
  }
  assert.equal(carrier.written[3]?.buffer, carrier.written[0]?.buffer, 'it is used again');
  assert.ok(carrier.written[1]?.includes('second'));
  assert.ok(carrier.written[2]?.includes('third'));
});

test('onDrain comes once, when enough has gone, and not after close()', async () => {
  const { channel, carrier, arrive, calls } = given();
  carrier.queuedBytes = 8 * 1024 * 1024;
  assert.equal(channel.trySend(1, 0, 0, writeText, 'x'), 'full');
  assert.equal(channel.trySend(1, 0, 0, writeText, 'x'), 'full');
  await nextTick();
  carrier.queuedBytes = 3 * 1024 * 1024;
  arrive.onRoom();
  assert.deepEqual(calls, []);
  carrier.queuedBytes = 0;
  arrive.onRoom();
  arrive.onRoom();
  assert.deepEqual(calls, ['drain']);
  carrier.queuedBytes = 8 * 1024 * 1024;
  assert.equal(channel.trySend(1, 0, 0, writeText, 'x'), 'full');
  channel.close();
  carrier.queuedBytes = 0;
  arrive.onRoom();
  await nextTick();
  assert.deepEqual(calls, ['drain']);
});
