import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, ByteWriter, Codec } from '../../../src/channels/index.js';
import { CodedError, hasCode } from '../../../src/errors.js';
import { HeapBlocks, refusingCodec, roundTrip, written } from './given.js';

function given(): { blocks: HeapBlocks; codec: Codec; packer: Codec } {
  const blocks = new HeapBlocks();
  return {
    blocks,
    codec: new Codec({ blocks, slow: refusingCodec }),
    packer: new Codec({ blocks, slow: refusingCodec }),
  };
}

test('bytes from the threshold on go by reference, in a copy that is lent to the peer', () => {
  const { blocks, codec } = given();
  const sent = new Uint8Array(1000).fill(5);
  const arrived = roundTrip({ sent }, codec);
  assert.deepStrictEqual(arrived, { sent });
  assert.equal(blocks.memory.size, 1);
  assert.ok(written(sent, codec).byteLength < 100);
  assert.equal(blocks.holds, 0);
  assert.equal(blocks.lent, 2);
  sent[0] = 9;
  assert.deepStrictEqual(arrived, { sent: new Uint8Array(1000).fill(5) });
});

test('fewer bytes go inline', () => {
  const { blocks, codec } = given();
  roundTrip(new Uint8Array(999), codec);
  assert.equal(blocks.memory.size, 0);
});

test('every kind of view arrives by reference as the same kind', () => {
  const { codec } = given();
  const values = [
    Buffer.alloc(2000, 1),
    new Float64Array(300).fill(1.5),
    new DataView(new ArrayBuffer(3000), 8, 2000),
    new ArrayBuffer(5000),
    new BigInt64Array(200).fill(-5n),
  ];
  for (const value of values) assert.deepStrictEqual(roundTrip(value, codec), value);
});

test('a view of shared memory is the same memory on the other side, whatever its size', () => {
  const { blocks, codec } = given();
  const memory = blocks.allocate(4096);
  const sent = new Uint16Array(memory, 10, 3);
  const arrived = roundTrip(sent, codec);
  assert.ok(arrived instanceof Uint16Array);
  assert.equal(arrived.byteOffset, 10);
  assert.equal(arrived.length, 3);
  arrived[0] = 77;
  assert.equal(sent[0], 77);
  assert.equal(roundTrip(memory, codec), memory);
});

test('without room for a block the bytes go inline', () => {
  const { blocks, codec } = given();
  blocks.isFull = true;
  const sent = new Uint8Array(5000).fill(1);
  assert.deepStrictEqual(roundTrip(sent, codec), sent);
  assert.equal(blocks.lent, 0);
});

test('blocks of a value that is refused after all are given up', () => {
  const { blocks, codec } = given();
  const value = [new Uint8Array(2000), () => 1];
  assert.equal(codec.tryWrite(ByteWriter.growing(), value), false);
  assert.deepEqual([blocks.holds, blocks.lent], [0, 0]);
});

test('blocks of a value that does not fit, or is special further on, are given up', () => {
  const { blocks, codec } = given();
  const bytes = new Uint8Array(2000);
  const writer = new ByteWriter(Buffer.alloc(80), false);
  assert.equal(codec.tryWrite(writer, [bytes, 'x'.repeat(100)]), true);
  assert.equal(writer.overflowed, true);
  assert.equal(codec.tryWrite(ByteWriter.growing(), { bytes, a: new Map() }), false);
  assert.deepEqual([blocks.holds, blocks.lent], [0, 0]);
});

test('unsend() reclaims the blocks lent for the last value, once', () => {
  const { blocks, codec } = given();
  written(new Uint8Array(2000), codec);
  written([new Uint8Array(2000), new Float32Array(2000)], codec);
  assert.equal(blocks.lent, 3);
  codec.unsend();
  assert.equal(blocks.lent, 1);
  codec.unsend();
  assert.equal(blocks.lent, 1);
});

test('a packed value holds its blocks until release(), and lends nothing', () => {
  const { blocks, packer } = given();
  const packed = packer.pack([new Uint8Array(2000).fill(3), Buffer.alloc(3000)]);
  assert.equal(packed.blocks.length, 2);
  assert.deepEqual([blocks.holds, blocks.lent], [2, 0]);
  const next = packer.pack([new Uint8Array(2000)]);
  assert.equal(blocks.holds, 3);
  packer.release(packed);
  packer.release(next);
  assert.equal(blocks.holds, 0);
});

test('a block that cannot be lent is not sent by reference', () => {
  const { blocks, packer } = given();
  blocks.lend = () => {
    throw new CodedError('OPTION_INVALID', 'to nobody');
  };
  assert.throws(
    () => packer.tryWrite(ByteWriter.growing(), new Uint8Array(2000)),
    (error) => hasCode(error, 'OPTION_INVALID'),
  );
  assert.equal(blocks.holds, 0);
});

test('a reference that does not fit its block, or its kind, is corrupt', () => {
  const { blocks, codec } = given();
  blocks.allocate(4096);
  // [tag][kind][shared][owner][block offset][block size][view offset][view size]
  const forge = (kind: number, viewOffset: number, viewBytes: number): ByteReader => {
    const writer = ByteWriter.growing();
    for (const byte of [15, kind, 1]) writer.u8(byte);
    writer.i32(0);
    for (const number of [0, 4096, viewOffset, viewBytes]) writer.f64(number);
    return new ByteReader(writer.copyFrom(0));
  };
  assert.ok(codec.read(forge(8, 4, 4092)) instanceof Int32Array);
  for (const forged of [
    forge(8, 2, 4),
    forge(8, 0, 6),
    forge(8, 4, 4096),
    forge(1, -1, 4),
    forge(1, 0, 1e300),
    forge(1, 0.5, 1),
    forge(1, Number.NaN, 1),
    forge(99, 0, 4),
  ]) {
    assert.throws(
      () => codec.read(forged),
      (error) => hasCode(error, 'CHANNEL_FRAME_CORRUPT'),
    );
  }
});
