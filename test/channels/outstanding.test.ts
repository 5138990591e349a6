// The limits for received payloads that V8 does not count.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitsFor, Outstanding } from '../../src/channels/shm/outstanding.js';

const limits = { stepBytes: 100, maxBytes: 400 };

/** Payloads of 10 bytes; a collection frees all but those that are held. */
function openReceiver(heldBytes: () => number = () => 0) {
  const state = { bytes: 0, collections: 0, counted: 0, mostBytes: 0 };
  const outstanding = new Outstanding(
    limits,
    () => state.bytes,
    () => {
      state.collections++;
      state.bytes = Math.min(state.bytes, heldBytes());
      return true;
    },
  );
  const receive = (sizeBytes = 10): void => {
    if (outstanding.mustCount(sizeBytes)) state.counted++;
    else state.bytes += sizeBytes;
    state.mostBytes = Math.max(state.mostBytes, state.bytes);
  };
  return { state, receive };
}

test('a thread that makes no garbage never has more outstanding than the first limit', () => {
  const { state, receive } = openReceiver();
  for (let index = 0; index < 1000; index++) receive();
  assert.equal(state.counted, 0);
  assert.ok(state.mostBytes <= limits.stepBytes, `${state.mostBytes} bytes`);
  assert.ok(state.collections <= 100 + 1, `${state.collections} collections`);
});

test('a thread whose own garbage frees payloads is never asked for a collection', () => {
  const { state, receive } = openReceiver();
  for (let index = 0; index < 1000; index++) {
    receive();
    if (index % 5 === 0) state.bytes = 0;
  }
  assert.equal(state.collections, 0);
});

test('the more is held, the longer is the way to the next collection', () => {
  const { state, receive } = openReceiver(() => 150);
  for (let index = 0; index < 300; index++) receive();
  assert.equal(state.counted, 0);
  assert.ok(state.mostBytes <= 300, `${state.mostBytes} bytes`);
  assert.ok(state.collections <= 3000 / 150, `${state.collections} collections`);
});

test('beyond the second limit payloads are counted, without a collection for each', () => {
  const { state, receive } = openReceiver(() => 1000);
  for (let index = 0; index < 1000; index++) receive();
  assert.ok(state.mostBytes <= limits.maxBytes);
  assert.equal(state.counted, 1000 - limits.maxBytes / 10);
  assert.ok(state.collections < 5, `${state.collections} collections`);
});

test('a payload beyond the second limit alone is counted', () => {
  const { state, receive } = openReceiver();
  receive(401);
  assert.deepEqual([state.counted, state.collections], [1, 0]);
});

test('the limits follow the size of the heap, within bounds', () => {
  const mebibyte = 1024 ** 2;
  assert.equal(limitsFor(64 * mebibyte).maxBytes, 64 * mebibyte);
  assert.equal(limitsFor(1024 * mebibyte).maxBytes, 128 * mebibyte);
  assert.equal(limitsFor(64 * 1024 * mebibyte).maxBytes, 256 * mebibyte);
  assert.equal(limitsFor(1024 * mebibyte).stepBytes, 32 * mebibyte);
});
