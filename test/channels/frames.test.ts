import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ByteWriter } from '../../src/channels/bytes.js';
import { FrameBatch, FrameParser } from '../../src/channels/frames.js';
import { hasCode } from '../../src/errors.js';
import { random } from '../support/index.js';

interface Seen {
  readonly frames: string[];
  goodbyes: number;
  readonly parser: FrameParser;
}

function given(): Seen {
  const seen: Seen = {
    frames: [],
    goodbyes: 0,
    parser: new FrameParser({
      onFrame: (kind, task, target, body) => {
        const text = body.copy(body.limit - body.position).toString('latin1');
        seen.frames.push(`${kind} ${task} ${target} ${text}`);
      },
      onGoodbye: () => {
        seen.goodbyes += 1;
      },
    }),
  };
  return seen;
}

function writeText(writer: ByteWriter, text: string): boolean {
  writer.raw(Buffer.from(text, 'latin1'));
  return true;
}

function writeHalf(writer: ByteWriter, sizeBytes: number): boolean {
  writer.raw(Buffer.alloc(sizeBytes));
  return false;
}

function claimTooMuch(writer: ByteWriter): boolean {
  writer.position += 0x8000_0000;
  return true;
}

function fail(): boolean {
  throw new Error('in the body');
}

function write(batch: FrameBatch, kind: number, text: string): void {
  batch.add(kind, -kind, 7, writeText, text);
}

const texts = ['', 'one', 'x'.repeat(40), '', '\0\xff'];

function stream(): Buffer {
  const batch = new FrameBatch(Buffer.alloc(16));
  for (const [index, text] of texts.entries()) write(batch, index, text);
  batch.addGoodbye();
  return batch.take(Buffer.alloc(0));
}

const expected = texts.map((text, index) => `${index} ${index === 0 ? 0 : -index} 7 ${text}`);

test('a stream cut in two at any byte gives the same frames', () => {
  const whole = stream();
  for (let cut = 0; cut <= whole.byteLength; cut += 1) {
    const seen = given();
    seen.parser.push(whole.subarray(0, cut));
    seen.parser.push(whole.subarray(cut));
    assert.deepEqual(seen.frames, expected, `cut at ${cut}`);
    assert.equal(seen.goodbyes, 1);
  }
});

test('a stream that comes byte by byte gives the same frames', () => {
  const seen = given();
  for (const byte of stream()) seen.parser.push(Buffer.from([byte]));
  assert.deepEqual(seen.frames, expected);
  assert.equal(seen.goodbyes, 1);
});

test('a stream cut at random places gives the same frames', (t) => {
  const chance = random(t);
  const whole = Buffer.concat(Array.from({ length: 50 }, () => stream()));
  const seen = given();
  for (let position = 0; position < whole.byteLength; ) {
    const size = chance.integer(0, 90);
    seen.parser.push(whole.subarray(position, position + size));
    position += size;
  }
  assert.equal(seen.frames.length, 50 * expected.length);
  assert.deepEqual(seen.frames.slice(-expected.length), expected);
});

test('a piece may be overwritten after push(): kept bytes are a copy', () => {
  const whole = stream();
  const seen = given();
  const piece = Buffer.from(whole.subarray(0, 50));
  seen.parser.push(piece);
  piece.fill(0);
  seen.parser.push(whole.subarray(50));
  assert.deepEqual(seen.frames, expected);
});

test('a forged size is corrupt wherever the header is cut', () => {
  const forged = Buffer.alloc(32);
  forged.writeUInt32LE(0xffff_fffd, 0);
  for (let cut = 0; cut <= 16; cut += 1) {
    const seen = given();
    assert.throws(
      () => {
        seen.parser.push(forged.subarray(0, cut));
        seen.parser.push(forged.subarray(cut));
      },
      (error) => hasCode(error, 'CHANNEL_FRAME_CORRUPT'),
    );
    assert.deepEqual(seen.frames, []);
  }
});

test('a batch keeps nothing of a body that was refused, threw or is too large', () => {
  const batch = new FrameBatch(Buffer.alloc(16));
  write(batch, 1, 'first');
  const size = batch.sizeBytes;
  assert.equal(batch.add(2, 0, 0, writeHalf, 500), false);
  assert.throws(() => batch.add(3, 0, 0, fail, 0), /in the body/);
  assert.equal(batch.add(4, 0, 0, claimTooMuch, 0), false);
  assert.equal(batch.sizeBytes, size);
  write(batch, 5, 'second');
  const seen = given();
  seen.parser.push(batch.take(Buffer.alloc(0)));
  assert.deepEqual(seen.frames, ['1 -1 7 first', '5 -5 7 second']);
});

test('a body above the limit of the parser is refused before memory is allocated for it', () => {
  const batch = new FrameBatch(Buffer.alloc(64));
  write(batch, 1, '12345678');
  const bytes = batch.take(Buffer.alloc(0));
  const sizes: number[] = [];
  const sink = {
    onFrame: (_kind: number, _task: number, _target: number, body: { limit: number }) => {
      sizes.push(body.limit);
    },
    onGoodbye: () => assert.fail('it is none'),
  };
  new FrameParser(sink, 8).push(bytes);
  assert.equal(sizes.length, 1);
  for (const piece of [bytes, bytes.subarray(0, 16)]) {
    const parser = new FrameParser(sink, 7);
    assert.throws(
      () => {
        for (const byte of piece) parser.push(Buffer.from([byte]));
      },
      { code: 'CHANNEL_FRAME_CORRUPT' },
    );
  }
  assert.equal(sizes.length, 1);
});

test('stop() ends a push in the middle of a piece, and later ones', () => {
  const whole = stream();
  const frames: number[] = [];
  const parser: FrameParser = new FrameParser({
    onFrame: (kind) => {
      frames.push(kind);
      if (kind === 1) parser.stop();
    },
    onGoodbye: () => assert.fail('after stop()'),
  });
  parser.push(whole);
  parser.push(whole);
  assert.deepEqual(frames, [0, 1]);
});
