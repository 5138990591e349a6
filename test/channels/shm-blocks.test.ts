import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { shareBlocks } from '../../src/channels/shm/index.js';
import type { Block, BlockStore } from '../../src/channels/types.js';
import {
  openDescriptors,
  openPair,
  readText,
  until,
  untilCollected,
  writeText,
} from './shm-harness.js';

/** Both stores of a pair, with the messages between them delivered at once. */
function openStores(t: TestContext) {
  const [parent, worker] = openPair(t);
  const { blocks: mine } = parent;
  const { blocks: theirs } = worker;
  assert.ok(mine && theirs);
  const unused: [Block, number][] = [];
  theirs.handleUnused((block, count) => {
    unused.push([block, count]);
    mine.takeBack(block, count);
  });
  mine.handleUnused((block, count) => theirs.takeBack(block, count));
  return { mine, theirs, unused };
}

/** The block that the next payload of this size gets. */
function placeNext(store: BlockStore, sizeBytes: number): Block {
  const block = store.place(Buffer.alloc(sizeBytes));
  assert.ok(block);
  store.release(block);
  return block;
}

test('a payload is copied once and arrives as memory of exactly its size', (t) => {
  const { mine, theirs } = openStores(t);
  const sent = Buffer.alloc(100_001, 7);
  const block = mine.place(sent);
  assert.ok(block);
  mine.lend(block);
  mine.release(block);
  sent.fill(8);
  const received = new Uint8Array(theirs.borrow(block, false));
  assert.equal(received.byteLength, 100_001);
  assert.ok(received.every((byte) => byte === 7));
  assert.equal(theirs.sharedBlock(received.buffer), undefined);
});

test('a shared buffer is the same memory on both sides and comes back as the same object', (t) => {
  const { mine, theirs } = openStores(t);
  const buffer = mine.allocate(1 << 20);
  const bytes = new Uint8Array(buffer);
  assert.ok(bytes.every((byte) => byte === 0));
  const block = mine.place(bytes.subarray(5, 10));
  assert.ok(block);
  assert.equal(block.sizeBytes, 1 << 20);
  mine.lend(block);
  mine.release(block);
  const theirBuffer = theirs.borrow(block, true);
  assert.deepEqual(theirs.sharedBlock(theirBuffer), block);
  assert.equal(theirs.borrow(block, true), theirBuffer);
  new Uint8Array(theirBuffer)[9] = 42;
  assert.equal(bytes[9], 42);
  const back = theirs.place(new Uint8Array(theirBuffer));
  assert.deepEqual(back, block);
  theirs.release(block);
  assert.equal(mine.borrow(block, true), buffer);
});

test('memory that held a payload before is handed out zeroed', async (t) => {
  const { mine } = openStores(t);
  const block = mine.place(Buffer.alloc(70_000, 255));
  assert.ok(block);
  mine.lend(block);
  mine.release(block);
  mine.takeBack(block, 1);
  const bytes = new Uint8Array(mine.allocate(70_000));
  assert.ok(bytes.every((byte) => byte === 0));
});

test('when the last view of a borrowed block is collected, its owner is notified once', async (t) => {
  const { mine, theirs, unused } = openStores(t);
  const block = mine.place(Buffer.alloc(50_000, 1));
  assert.ok(block);
  mine.lend(block);
  mine.lend(block);
  mine.release(block);
  theirs.borrow(block, false);
  theirs.borrow(block, false);
  await untilCollected(() => unused.length > 0, 'onUnused');
  assert.deepEqual(unused, [[block, 2]]);
  assert.deepEqual(placeNext(mine, 50_000), block, 'the freed block is used again');
});

test('a block that a peer still holds is not freed when the own view is collected', async (t) => {
  const { mine, theirs, unused } = openStores(t);
  const send = (): Block => {
    const view = new Uint8Array(mine.allocate(40_000)).fill(9);
    const block = mine.place(view);
    assert.ok(block);
    mine.lend(block);
    mine.release(block);
    return block;
  };
  const block = send();
  let received: Uint8Array | undefined = new Uint8Array(theirs.borrow(block, true));
  let rounds = 0;
  await untilCollected(() => ++rounds > 20, 'twenty collections');
  assert.notDeepEqual(placeNext(mine, 40_000), block);
  assert.ok(received.every((byte) => byte === 9));
  received = undefined;
  await untilCollected(() => unused.length > 0, 'onUnused');
});

test('messages of a peer about blocks that it does not hold change nothing', (t) => {
  const { mine } = openStores(t);
  const block = mine.place(Buffer.alloc(50_000, 3));
  assert.ok(block);
  mine.takeBack(block, 1);
  mine.takeBack({ ...block, offset: 12345 }, 1);
  mine.takeBack({ ...block, owner: 99 }, Number.NaN);
  assert.notDeepEqual(placeNext(mine, 50_000), block);
  mine.release(block);
  mine.release(block);
  assert.deepEqual(placeNext(mine, 50_000), block);
});

test('an impossible place is refused with SEGMENT_CORRUPT', (t) => {
  const { theirs } = openStores(t);
  const forged: Block[] = [
    { owner: 0, offset: 1, sizeBytes: 10 },
    { owner: 0, offset: -65536, sizeBytes: 10 },
    { owner: 0, offset: 0, sizeBytes: Number.NaN },
    { owner: 0, offset: 2 ** 35, sizeBytes: 10 },
    { owner: 2 ** 18, offset: 0, sizeBytes: 10 },
    { owner: 0, offset: 65536, sizeBytes: 2 ** 30 },
  ];
  for (const block of forged) {
    assert.throws(() => theirs.borrow(block, false), { code: 'SEGMENT_CORRUPT' });
  }
});

test('200 MiB pass as a block', (t) => {
  const { mine, theirs } = openStores(t);
  const sent = Buffer.alloc(200 << 20, 5);
  sent[sent.length - 1] = 6;
  const block = mine.place(sent);
  assert.ok(block);
  mine.lend(block);
  mine.release(block);
  const received = Buffer.from(theirs.borrow(block, false));
  assert.equal(received.compare(sent), 0);
});

test('frames larger than the ring pass between small ones, in order', async (t) => {
  const [parent, worker] = openPair(t, { ringBytes: 4096 });
  const seen: number[] = [];
  const last: string[] = [];
  worker.channel.handle({
    onFrame: (_kind, task, _target, body) => {
      seen.push(task);
      last.push(readText(body));
    },
  });
  const sizes = [3, 2000, 5, 1 << 20, 0, 1008, 1009, 3 << 20, 7];
  parent.channel.ref();
  for (const [task, size] of sizes.entries()) {
    const text = String.fromCharCode(97 + task).repeat(size);
    assert.equal(parent.channel.trySend(0, task, 0, writeText, text), 'sent');
  }
  await until(() => seen.length === sizes.length, 'all frames');
  assert.deepEqual(seen, [...sizes.keys()]);
  for (const [task, size] of sizes.entries()) {
    assert.equal(last[task], String.fromCharCode(97 + task).repeat(size));
  }
});

test('a large frame is freed when its reader ends before reading it, also after the channel was given up', async (t) => {
  const [parent] = openPair(t, { ringBytes: 4096 });
  parent.channel.trySend(0, 0, 0, writeText, 'x'.repeat(100_000));
  parent.channel.destroy();
  parent.peerExited();
  await untilCollected(() => openDescriptors('manycore-arena').length === 1, 'the worker’s alone');
});

test('a store of no channel lends nothing', () => {
  const share = shareBlocks();
  const block = placeNext(share.blocks, 50_000);
  assert.throws(() => share.blocks.lend(block), { code: 'OPTION_INVALID' });
  share.leave();
});

test('a block that comes back to where it came from first keeps nothing', async (t) => {
  const { mine, theirs } = openStores(t);
  const placed = (): Block => {
    const block = mine.place(new Uint8Array(mine.allocate(40_000)));
    assert.ok(block);
    mine.lend(block);
    mine.release(block);
    const back = theirs.place(new Uint8Array(theirs.borrow(block, true)));
    assert.deepEqual(back, block);
    theirs.lend(block);
    theirs.release(block);
    mine.borrow(block, true);
    return block;
  };
  const block = placed();
  await untilCollected(() => placeNext(mine, 40_000).offset === block.offset, 'it is free');
});
