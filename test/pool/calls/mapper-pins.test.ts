// Pinned functions of a pool: equal ones that no call can change are one, and stay when their map is over.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FunctionSnapshot } from '../../../src/context/index.js';
import { MapperPins } from '../../../src/pool/calls/mapper-pins.js';

const maxIdle = 32;

function makePins() {
  const dropped: number[] = [];
  let pinned = 0;
  const pins = new MapperPins({
    pin(snapshot) {
      if (snapshot.state === undefined) return snapshot;
      pinned += 1;
      return { ...snapshot, id: -pinned, state: undefined };
    },
    drop: ({ id }) => dropped.push(id),
  });
  return { pins, dropped };
}

function snapshotOf(text: string, more: Partial<FunctionSnapshot> = {}): FunctionSnapshot {
  const state = Buffer.from(text);
  return { id: 1, definitions: [1], state, buffers: [], isSteady: true, ...more };
}

test('equal functions are pinned once, one after the other and at a time', () => {
  const { pins, dropped } = makePins();
  const first = pins.pin(snapshotOf('a'));
  const second = pins.pin(snapshotOf('a'));
  assert.equal(second.snapshot, first.snapshot);
  first.release();
  second.release();
  assert.equal(pins.pin(snapshotOf('a')).snapshot, first.snapshot);
  assert.deepEqual(dropped, []);
});

test('other code, another state and what a call can change are pinned anew', () => {
  const { pins, dropped } = makePins();
  const made = [
    snapshotOf('a'),
    snapshotOf('b'),
    snapshotOf('a', { id: 2 }),
    snapshotOf('a', { isSteady: false }),
    snapshotOf('a', { isSteady: false }),
    snapshotOf('a', { buffers: [[1, 2]] }),
    snapshotOf('x'.repeat(2000)),
  ].map((each) => pins.pin(each));
  assert.equal(new Set(made.map(({ snapshot }) => snapshot.id)).size, made.length);
  for (const pin of made) pin.release();
  assert.deepEqual(
    dropped,
    made.slice(3).map(({ snapshot }) => snapshot.id),
  );
});

test('a function that is in the workers for good is never dropped', () => {
  const { pins, dropped } = makePins();
  const { isSteady: _, ...kept } = snapshotOf('', { state: undefined });
  pins.pin(kept).release();
  pins.close();
  assert.deepEqual(dropped, []);
});

test('of many idle ones the least recently used goes first, none that has a map', () => {
  const { pins, dropped } = makePins();
  const busy = pins.pin(snapshotOf('busy'));
  for (let turn = 0; turn < maxIdle; turn += 1) pins.pin(snapshotOf(`${turn}`)).release();
  assert.equal(dropped.length, 0);
  pins.pin(snapshotOf('0')).release();
  const { snapshot } = pins.pin(snapshotOf('1'));
  for (let turn = 0; turn < 3 * maxIdle; turn += 1) pins.pin(snapshotOf(`new ${turn}`)).release();
  assert.equal(dropped.length, 3 * maxIdle - 1);
  assert.ok(!dropped.includes(busy.snapshot.id) && !dropped.includes(snapshot.id));
});

test('a closed pool drops all, those with a map when that is over', () => {
  const { pins, dropped } = makePins();
  const [busy, idle] = [pins.pin(snapshotOf('busy')), pins.pin(snapshotOf('idle'))];
  idle.release();
  pins.close();
  assert.deepEqual(dropped, [idle.snapshot.id]);
  busy.release();
  assert.deepEqual(dropped, [idle.snapshot.id, busy.snapshot.id]);
  const late = pins.pin(snapshotOf('late'));
  late.release();
  assert.equal(dropped.length, 3);
});
