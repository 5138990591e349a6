// Received payloads whose bytes V8 does not count: they are buffers like any other, and their block is
// released once, when the last one is gone, also from another thread.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { limitsFor } from '../../src/channels/shm/outstanding.js';
import type { Block, BlockStore } from '../../src/channels/types.js';
import { requireNative } from '../../src/native.js';
import { collect, openPair, until, untilCollected } from './shm-harness.js';

const sizeBytes = 1_000_000;
const isCountedHere = requireNative().uncountedProblem() !== '';
const needsUncounted = { skip: isCountedHere ? 'V8 counts all buffers here' : false };

/** A store that receives payloads, and the releases of their blocks. */
function openReceiver(t: TestContext) {
  const [parent, worker] = openPair(t);
  const { blocks: sender } = parent;
  const { blocks: receiver } = worker;
  assert.ok(sender && receiver);
  const released: [Block, number][] = [];
  receiver.handleUnused((block, count) => {
    released.push([block, count]);
    sender.takeBack(block, count);
  });
  return { receive: (fill: number) => receive(sender, receiver, fill), released, sender };
}

const source = Buffer.alloc(sizeBytes);

function receive(sender: BlockStore, receiver: BlockStore, fill: number): ArrayBuffer {
  const block = sender.place(source.fill(fill));
  assert.ok(block);
  sender.lend(block);
  sender.release(block);
  return receiver.borrow(block, false);
}

function isFilled(buffer: ArrayBuffer, fill: number): boolean {
  return buffer.byteLength === sizeBytes && new Uint8Array(buffer).every((byte) => byte === fill);
}

/** Collects often enough that whatever is not referred to would be released. */
async function collectAll(): Promise<void> {
  let rounds = 0;
  await untilCollected(() => ++rounds > 10, 'ten collections');
}

/** Another thread that keeps what it receives; it drops and collects it on `drop`. */
const keeper = `
  const { parentPort } = require('node:worker_threads');
  require('node:v8').setFlagsFromString('--expose-gc');
  const collect = require('node:vm').runInNewContext('gc');
  let kept;
  parentPort.on('message', (message) => {
    if (message !== 'drop') kept = message;
    else kept = undefined;
    const sum = kept === undefined ? 0 : new Uint8Array(kept).reduce((sum, byte) => sum + byte, 0);
    setTimeout(() => { collect(); collect(); parentPort.postMessage(sum); }, 1);
  });`;

function startKeeper(t: TestContext): Worker {
  const thread = new Worker(keeper, { eval: true });
  t.after(() => thread.terminate());
  return thread;
}

async function ask(
  thread: Worker,
  message: unknown,
  transfer: ArrayBuffer[] = [],
): Promise<number> {
  thread.postMessage(message, transfer);
  const [sum] = await once(thread, 'message');
  return Number(sum);
}

test('V8 does not count the bytes of a payload', needsUncounted, (t) => {
  const { receive } = openReceiver(t);
  collect();
  const before = process.memoryUsage();
  const outstandingBefore = requireNative().outstandingBytes();
  const held = Array.from({ length: 10 }, () => receive(1));
  const { external, arrayBuffers } = process.memoryUsage();
  assert.ok(external - before.external < sizeBytes, `${external - before.external} bytes`);
  assert.ok(arrayBuffers - before.arrayBuffers < sizeBytes);
  const ownBytes = requireNative().outstandingBytes() - outstandingBefore;
  assert.equal(ownBytes, held.length * sizeBytes);
});

test(
  'a thread that makes no garbage keeps less than the limit outstanding',
  needsUncounted,
  async (t) => {
    const { receive, released } = openReceiver(t);
    const { maxBytes } = limitsFor(getHeapStatistics().heap_size_limit);
    const payloadCount = Math.ceil((2 * maxBytes) / sizeBytes);
    let mostBytes = 0;
    for (let index = 0; index < payloadCount; index++) {
      receive(index);
      mostBytes = Math.max(mostBytes, requireNative().outstandingBytes());
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(mostBytes <= maxBytes, `${mostBytes} bytes`);
    assert.ok(released.length > payloadCount / 2, `${released.length} released`);
  },
);

test('a payload that structuredClone has transferred is released once, after the last use', async (t) => {
  const { receive, released } = openReceiver(t);
  const transferred = (): ArrayBuffer => {
    const buffer = receive(2);
    const moved = structuredClone(buffer, { transfer: [buffer] });
    if (!isCountedHere) assert.equal(buffer.byteLength, 0);
    return moved;
  };
  let moved: ArrayBuffer | undefined = transferred();
  await collectAll();
  assert.deepEqual(released, []);
  assert.ok(isFilled(moved, 2));
  moved = undefined;
  await untilCollected(() => released.length > 0, 'release');
  await collectAll();
  assert.equal(released.length, 1);
  assert.equal(released[0]?.[1], 1);
});

test('transfer() moves a payload, and copies it into another size', async (t) => {
  const { receive, released } = openReceiver(t);
  const transferOf: unknown = Reflect.get(ArrayBuffer.prototype, 'transfer');
  if (typeof transferOf !== 'function') return t.skip('this Node has no transfer()');
  const moved = (size: number): ArrayBuffer => Reflect.apply(transferOf, receive(3), [size]);
  let same: ArrayBuffer | undefined = moved(sizeBytes);
  const longer = moved(sizeBytes + 8);
  const none = moved(0);
  await untilCollected(() => released.length === 2, 'release of what was copied');
  assert.ok(isFilled(same, 3));
  assert.deepEqual([...new Uint8Array(longer).subarray(-9)], [3, 0, 0, 0, 0, 0, 0, 0, 0]);
  assert.equal(none.byteLength, 0);
  same = undefined;
  await untilCollected(() => released.length === 3, 'release');
});

test(
  'a payload goes to another thread, and is released when that drops it',
  needsUncounted,
  async (t) => {
    const { receive, released, sender } = openReceiver(t);
    const thread = startKeeper(t);
    const send = (): Promise<number> => {
      const buffer = receive(4);
      const answer = ask(thread, buffer, [buffer]);
      assert.equal(buffer.byteLength, 0);
      return answer;
    };
    assert.equal(await send(), 4 * sizeBytes);
    await collectAll();
    assert.deepEqual(released, []);
    const other = sender.place(Buffer.alloc(sizeBytes, 9));
    assert.ok(other);
    assert.equal(await ask(thread, 'drop'), 0);
    await until(() => released.length > 0, 'release');
    await collectAll();
    assert.equal(released.length, 1);
    assert.notDeepEqual(released[0]?.[0], other, 'its block was not given away meanwhile');
    sender.release(other);
  },
);

test('a payload in another thread is released when that thread ends', needsUncounted, async (t) => {
  const { receive, released } = openReceiver(t);
  const thread = startKeeper(t);
  const send = (): Promise<number> => {
    const buffer = receive(5);
    return ask(thread, buffer, [buffer]);
  };
  await send();
  await thread.terminate();
  await until(() => released.length > 0, 'release');
  assert.equal(released.length, 1);
});

test(
  'a payload in a message that nobody reads is released with its port',
  needsUncounted,
  async (t) => {
    const { receive, released } = openReceiver(t);
    const { port1, port2 } = new MessageChannel();
    const send = (): void => {
      const buffer = receive(6);
      port1.postMessage(buffer, [buffer]);
    };
    send();
    await collectAll();
    assert.deepEqual(released, []);
    port2.close();
    await untilCollected(() => released.length > 0, 'release');
  },
);

test('a copy of a payload is not the payload', async (t) => {
  const { receive, released } = openReceiver(t);
  const { port1, port2 } = new MessageChannel();
  const copies = (): unknown[] => {
    const buffer = receive(7);
    port1.postMessage(buffer);
    const message = receiveMessageOnPort(port2);
    assert.ok(isFilled(buffer, 7));
    return [message?.message, structuredClone(buffer), buffer.slice(0)];
  };
  const made = copies();
  await untilCollected(() => released.length > 0, 'release');
  for (const copy of made) assert.ok(copy instanceof ArrayBuffer && isFilled(copy, 7));
  port1.close();
});

test('views of a payload keep it', async (t) => {
  const { receive, released } = openReceiver(t);
  let view: Buffer | undefined = Buffer.from(receive(8), 10, 20);
  await collectAll();
  assert.deepEqual(released, []);
  assert.equal(view.toString('hex'), '08'.repeat(20));
  view = undefined;
  await untilCollected(() => released.length > 0, 'release');
});

/** The types of Node have no WebAssembly. */
const compileAndCopy: (bytes: Uint8Array) => Promise<number> = runInThisContext(`async (bytes) => {
  if (!WebAssembly.validate(bytes)) return -1;
  await WebAssembly.instantiate(bytes);
  new WebAssembly.Module(bytes);
  const memory = new WebAssembly.Memory({ initial: 16 });
  new Uint8Array(memory.buffer).set(bytes);
  return new Uint8Array(memory.buffer)[1];
}`);

test('WebAssembly compiles a payload, and its memory takes one', async (t) => {
  const { receive } = openReceiver(t);
  const bytes = new Uint8Array(receive(0));
  bytes.set([0, 97, 115, 109, 1, 0, 0, 0]);
  // A custom section, with a length of four bytes, fills the rest.
  const restBytes = sizeBytes - 8 - 1 - 4;
  const lengthBytes = [0, 7, 14, 21].map((by) => ((restBytes >> by) & 127) | (by < 21 ? 128 : 0));
  bytes.set([0, ...lengthBytes], 8);
  assert.equal(await compileAndCopy(bytes), 97);
});

test('many payloads that are dropped, transferred and kept are all released once', async (t) => {
  const { receive, released } = openReceiver(t);
  const thread = startKeeper(t);
  const payloadCount = 60;
  const kept: ArrayBuffer[] = [];
  // A function of its own, so that no variable of the test refers to a payload.
  const use = async (index: number): Promise<void> => {
    const buffer = receive(index);
    if (index % 3 === 0) kept.push(buffer);
    if (index % 3 === 1) await ask(thread, buffer, isCountedHere ? [] : [buffer]);
  };
  for (let index = 0; index < payloadCount; index++) await use(index);
  assert.ok(kept.every((buffer, at) => isFilled(buffer, at * 3)));
  kept.length = 0;
  await ask(thread, 'drop');
  await untilCollected(() => released.length === payloadCount, 'release of all');
  await collectAll();
  assert.equal(released.length, payloadCount);
  assert.equal(requireNative().outstandingBytes(), 0);
});
