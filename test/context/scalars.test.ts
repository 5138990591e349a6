// Captured primitive values as bytes: any list comes back as it was, any bytes give values or TRANSFER_CORRUPT.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areScalars, readScalars, writeScalars } from '../../src/context/scalars.js';
import { format, read, write } from '../../src/context/wire.js';
import { hasCode } from '../../src/errors.js';
import { type Random, random } from '../support/index.js';

const rounds = 3000;

function scalar({ integer, pick }: Random): unknown {
  const length = integer(0, 256);
  const text = (end: number): string =>
    String.fromCharCode(...Array.from({ length }, () => integer(0, end)));
  const numbers = [0, -0, Number.NaN, 1 / 0, 2 ** 31, -(2 ** 31), 2 ** 31 - 1, 2 ** 53];
  return pick<() => unknown>([
    () => undefined,
    () => null,
    () => integer(0, 2) === 0,
    () => pick(numbers),
    () => integer(-(2 ** 31), 2 ** 31),
    () => integer(0, 2 ** 40) / 7,
    () => text(128),
    () => text(256),
    () => text(0x10000),
    () => pick(['', '\ud800', '\udc00\ud800', 'größe', '😀'.repeat(100)]),
  ])();
}

function listOf(seeded: Random): unknown[] {
  return Array.from({ length: seeded.integer(0, 12) }, () => scalar(seeded));
}

function isSameList(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.length === right.length && left.every((value, at) => Object.is(value, right[at]));
}

test('any list of primitive values comes back as it was', (t) => {
  const seeded = random(t);
  for (let round = 0; round < rounds; round += 1) {
    const values = listOf(seeded);
    const bytes = writeScalars(values);
    assert.ok(bytes !== undefined && areScalars(bytes));
    // The bytes may lie anywhere in other memory.
    const place = Buffer.concat([Buffer.alloc(seeded.integer(0, 9)), bytes, Buffer.alloc(3)]);
    const start = place.length - 3 - bytes.length;
    const found = readScalars(new Uint8Array(place).subarray(start, start + bytes.length));
    assert.ok(isSameList(found, values), JSON.stringify(values));
  }
});

test('values of other kinds, and long ones, are left to the serializer', () => {
  for (const value of [1n, Symbol('s'), {}, [], () => 1, 'x'.repeat(256), new Date()]) {
    assert.equal(writeScalars([1, value]), undefined);
  }
  assert.equal(writeScalars(new Array(256).fill(1)), undefined);
  assert.equal(writeScalars(new Array(255).fill('x'.repeat(255))), undefined);
  const long = ['x'.repeat(300), 1n, 'ö'.repeat(300)];
  const { bytes } = write(format.slots, long, undefined);
  assert.equal(areScalars(bytes), false);
  assert.deepEqual(read(bytes, undefined), { format: format.slots, value: long });
  const short = ['x', 1];
  assert.deepEqual(read(write(format.slots, short, undefined).bytes, undefined), {
    format: format.slots,
    value: short,
  });
});

test('damaged bytes give values or TRANSFER_CORRUPT', (t) => {
  const seeded = random(t);
  let refused = 0;
  for (let round = 0; round < rounds; round += 1) {
    const bytes = writeScalars(listOf(seeded)) ?? Buffer.alloc(0);
    const cut = bytes.subarray(0, seeded.integer(1, bytes.length + 1));
    if (cut.length > 1) cut[seeded.integer(1, cut.length)] = seeded.integer(0, 256);
    try {
      assert.ok(Array.isArray(readScalars(cut)));
    } catch (error) {
      assert.ok(hasCode(error, 'TRANSFER_CORRUPT'), String(error));
      refused += 1;
    }
  }
  assert.ok(refused > rounds / 4, String(refused));
});
