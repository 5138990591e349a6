// The codec under chance: any plain value survives the round trip, and no bytes do harm.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ByteReader, ByteWriter, Codec } from '../../../src/channels/index.js';
import { CodedError, hasCode } from '../../../src/errors.js';
import { isFew, type Random, random } from '../../support/index.js';
import { HeapBlocks, plainCodec, roundTrip, written } from './given.js';

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.string({ minLength: 10, maxLength: 120 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 80 }).map((units) => {
    return String.fromCharCode(...units);
  }),
);

const leaf = fc.oneof(
  fc.constantFrom(undefined, null, true, false, -0),
  fc.integer(),
  fc.double(),
  fc.bigInt(),
  text,
  // No pooled memory: reordered, many of its buffers may be parts of each other.
  fc.uint8Array().map((bytes) => Buffer.alloc(bytes.length, bytes)),
  fc.uint8Array({ maxLength: 300 }),
  fc.float64Array(),
  fc.bigUint64Array(),
);

const plain = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.array(tie('value')),
    fc.dictionary(text, tie('value')),
    fc.dictionary(fc.constantFrom('id', 'name', '__proto__', '7', 'tags'), tie('value')),
  ),
})).value;

test('any plain value arrives as it was sent', (t) => {
  const { seed } = random(t);
  fc.assert(
    fc.property(plain, (value) => {
      assert.deepStrictEqual(roundTrip(value), value);
    }),
    { seed, numRuns: isFew ? 200 : 700 },
  );
});

test('any plain value packs to the bytes that tryWrite writes', (t) => {
  const { seed } = random(t);
  fc.assert(
    fc.property(plain, (value) => {
      assert.ok(written(value).equals(plainCodec.pack(value).bytes));
    }),
    { seed, numRuns: isFew ? 100 : 300 },
  );
});

const samples: readonly unknown[] = [
  { id: 1, name: 'sample', tags: ['a', 'b'], point: { x: 1.5, y: -0 }, flag: true },
  [1n, 2n ** 90n, 'é'.repeat(30), '漢'.repeat(30), 'x'.repeat(50), undefined, null],
  [new Float64Array(4), Buffer.from('bytes'), new ArrayBuffer(9), new DataView(new ArrayBuffer(3))],
  Object.assign(Object.create(null), { a: [{ b: [{ c: 1 }] }], ['long'.repeat(80)]: 2, 漢: 3 }),
  Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`key ${index}`, index])),
];

const mutations = isFew ? 10_000 : 30_000;

/** Bytes with a few places changed, cut or doubled. */
function mutated(bytes: Buffer, chance: Random): Buffer {
  const changed = Buffer.from(bytes);
  for (let count = chance.integer(1, 5); count > 0; count -= 1) {
    const place = chance.integer(0, changed.byteLength);
    const kind = chance.integer(0, 4);
    if (kind === 0) changed[place] = chance.integer(0, 256);
    else if (kind === 1) changed[place] = chance.integer(0, 18);
    else if (kind === 2) changed.subarray(place, place + 4).fill(0xff);
    else changed[place] = (changed[place] ?? 0) ^ (1 << chance.integer(0, 8));
  }
  return chance.integer(0, 4) === 0
    ? changed.subarray(0, chance.integer(0, bytes.byteLength))
    : changed;
}

function readForeign(codec: Codec, bytes: Buffer): void {
  const reader = new ByteReader(bytes);
  try {
    codec.read(reader);
    assert.ok(reader.position <= bytes.byteLength);
  } catch (error) {
    assert.ok(error instanceof CodedError, `${bytes.toString('hex')}: ${String(error)}`);
  }
}

/** A slow codec and a block store that refuse foreign bytes with a coded error. */
function strictCodec(): Codec {
  const blocks = new HeapBlocks();
  blocks.allocate(4096);
  blocks.borrow = () => {
    throw new CodedError('SEGMENT_CORRUPT', 'no such block');
  };
  return new Codec({
    blocks,
    slow: {
      encode: () => assert.fail(),
      decode: () => {
        throw new CodedError('TRANSFER_CORRUPT', 'no such value');
      },
    },
  });
}

test('changed bytes are read as something else or as a coded error, never a crash', (t) => {
  const chance = random(t);
  const codec = strictCodec();
  for (let round = 0; round < mutations; round += 1) {
    readForeign(codec, mutated(written(chance.pick(samples)), chance));
  }
});

test('random bytes are read as something or as a coded error, never a crash', (t) => {
  const chance = random(t);
  const codec = strictCodec();
  for (let round = 0; round < mutations; round += 1) {
    const bytes = chance.bytes(chance.integer(0, 60));
    // Tags alone, so that most rounds get past the first byte.
    if (round % 2 === 0) for (const [index, byte] of bytes.entries()) bytes[index] = byte % 20;
    readForeign(codec, bytes);
  }
});

test('every beginning of a value is corrupt', () => {
  for (const sample of samples) {
    const whole = written(sample);
    for (let size = 0; size < whole.byteLength; size += 1) {
      assert.throws(
        () => plainCodec.read(new ByteReader(whole.subarray(0, size))),
        (error) => hasCode(error, 'CHANNEL_FRAME_CORRUPT'),
        `${size} bytes of ${whole.byteLength}`,
      );
    }
  }
});

test('forged nesting is corrupt, not a stack overflow', () => {
  const deepArrays = Buffer.alloc(5_000_000);
  for (let offset = 0; offset < deepArrays.byteLength; offset += 5) {
    deepArrays[offset] = 11;
    deepArrays.writeUInt32LE(1, offset + 1);
  }
  const writer = ByteWriter.growing();
  for (let level = 0; level < 100_000; level += 1) {
    writer.u8(level % 2 === 0 ? 12 : 13);
    writer.u32(6);
    writer.u32(1);
    writer.u8(1);
    writer.u8(97);
  }
  for (const forged of [deepArrays, writer.copyFrom(0)]) {
    assert.throws(
      () => plainCodec.read(new ByteReader(forged)),
      (error) => hasCode(error, 'CHANNEL_FRAME_CORRUPT'),
    );
  }
});

test('forged counts and sizes are corrupt before memory is taken for them', () => {
  for (const tag of [7, 9, 10, 11, 12, 13, 16]) {
    const forged = Buffer.alloc(40, 0xff);
    forged[0] = tag;
    assert.throws(
      () => plainCodec.read(new ByteReader(forged)),
      (error) => hasCode(error, 'CHANNEL_FRAME_CORRUPT'),
      `tag ${tag}`,
    );
  }
});

test('a peer that sends ever new shapes gets them read, in memory that does not grow', () => {
  for (let round = 0; round < 20_000; round += 1) {
    const value = { [`key${round}`]: round, other: 1 };
    assert.deepEqual(roundTrip(value), value);
  }
});
