import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, ByteWriter } from '../../src/channels/bytes.js';
import { hasCode } from '../../src/errors.js';

function writeAll(writer: ByteWriter): void {
  writer.u8(200);
  writer.i32(-5);
  writer.u32(0xffff_fff0);
  writer.f64(-0.25);
  writer.raw(Buffer.from('raw'));
}

const allBytes = 1 + 4 + 4 + 8 + 3;

test('a growing writer takes more than its buffer and keeps what is in it', () => {
  const writer = ByteWriter.growing(1);
  writeAll(writer);
  const reader = new ByteReader(writer.copyFrom(0));
  assert.equal(reader.u8(), 200);
  assert.equal(reader.i32(), -5);
  assert.equal(reader.u32(), 0xffff_fff0);
  assert.equal(reader.f64(), -0.25);
  assert.equal(reader.copy(3).toString(), 'raw');
  assert.equal(reader.position, allBytes);
});

test('a fixed writer overflows exactly when the bytes do not fit, and touches nothing behind', () => {
  for (let size = 0; size < allBytes; size += 1) {
    const bytes = Buffer.alloc(64, 0xee);
    const writer = new ByteWriter(bytes, false);
    writer.reset(8, 8 + size);
    writeAll(writer);
    assert.equal(writer.overflowed, true);
    assert.ok(writer.position <= 8 + size);
    assert.ok(bytes.subarray(8 + size).every((byte) => byte === 0xee));
    assert.ok(bytes.subarray(0, 8).every((byte) => byte === 0xee));
  }
  const fits = new ByteWriter(Buffer.alloc(allBytes), false);
  writeAll(fits);
  assert.equal(fits.overflowed, false);
});

test('after an overflow smaller writes are ignored too, until reset()', () => {
  const writer = new ByteWriter(Buffer.alloc(4), false);
  writer.f64(1);
  writer.u8(1);
  assert.equal(writer.position, 0);
  assert.equal(writer.overflowed, true);
  writer.reset(0, 4);
  writer.u8(1);
  assert.equal(writer.position, 1);
});

test('a reader refuses to pass its limit, a negative size and NaN', () => {
  const reader = new ByteReader(Buffer.alloc(16));
  reader.reset(0, 7);
  const reads = [() => reader.f64(), () => reader.copy(8), () => reader.take(-1)];
  for (const read of [...reads, () => reader.take(Number.NaN)]) {
    assert.throws(read, (error) => hasCode(error, 'CHANNEL_FRAME_CORRUPT'));
    assert.equal(reader.position, 0);
  }
});

test('copy() is not changed by what happens to the bytes later', () => {
  const bytes = Buffer.from('abc');
  const copy = new ByteReader(bytes).copy(3);
  bytes.fill(0);
  assert.equal(copy.toString(), 'abc');
});
