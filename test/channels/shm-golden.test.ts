// Rust and JavaScript write and read the same bytes. The golden bytes change only together with the
// version in the segment's header.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ByteReader } from '../../src/channels/bytes.js';
import {
  replyRing,
  requestRing,
  type SegmentMemory,
  wordAt,
} from '../../src/channels/shm/layout.js';
import { RingReader } from '../../src/channels/shm/ring-reader.js';
import { RingWriter } from '../../src/channels/shm/ring-writer.js';
import { type NativeSegment, requireNative } from '../../src/native.js';
import { random } from '../support/index.js';
import { writeText } from './shm-harness.js';

interface Opened {
  readonly segment: NativeSegment;
  readonly memory: SegmentMemory;
}

function openSegment(ringBytes: number): Opened {
  const binding = requireNative();
  const fds = new binding.NativeDescriptors();
  const segment = binding.NativeSegment.open(fds.release(fds.createSegment(ringBytes, 16, 3, 2)));
  const buffer = segment.buffer();
  return { segment, memory: { bytes: Buffer.from(buffer), words: new Int32Array(buffer) } };
}

interface Frame {
  readonly kind: number;
  readonly task: number;
  readonly target: number;
  readonly text: string;
}

interface Ends {
  /** False when there was no room. */
  push(frame: Frame): boolean;
  pop(): Frame | undefined;
}

function jsWriter({ segment, memory }: Opened): Ends['push'] {
  const writer = new RingWriter(memory, requestRing(segment.requestAt, segment.ringBytes));
  return ({ kind, task, target, text }) =>
    writer.write(kind, task, target, writeText, text, 0) === 'sent';
}

function rustWriter({ segment }: Opened): Ends['push'] {
  return ({ kind, task, target, text }) =>
    segment.tryPush(true, kind, task, target, Buffer.from(text));
}

function jsReader({ segment, memory }: Opened): Ends['pop'] {
  const reader = new RingReader(memory, requestRing(segment.requestAt, segment.ringBytes));
  return () => {
    let found: Frame | undefined;
    const take = (kind: number, task: number, target: number, body: ByteReader): void => {
      found = { kind, task, target, text: body.copy(body.limit - body.position).toString() };
    };
    assert.notEqual(reader.drain(take, take, 1), 'corrupt');
    return found;
  };
}

function rustReader({ segment }: Opened): Ends['pop'] {
  return () => {
    const found = segment.tryPop(false);
    if (found === null) return undefined;
    const { kind, task, target, body } = found;
    return { kind, task, target, text: body.toString() };
  };
}

const writers = { JavaScript: jsWriter, Rust: rustWriter };
const readers = { JavaScript: jsReader, Rust: rustReader };

const golden =
  '13000000' +
  '01000000' +
  '02010000' +
  'ffffffff' +
  '6162630000000000' + // "abc", padded
  '10000000' +
  'ffffff7f' +
  '00000080' +
  '00000000'; // empty body

for (const [writerName, makeWriter] of Object.entries(writers)) {
  test(`${writerName} writes the golden bytes`, () => {
    const opened = openSegment(1024);
    const push = makeWriter(opened);
    assert.ok(push({ kind: 1, task: 258, target: -1, text: 'abc' }));
    assert.ok(push({ kind: 0x7fff_ffff, task: -0x8000_0000, target: 0, text: '' }));
    const { requestAt } = opened.segment;
    const written = opened.memory.bytes.subarray(requestAt, requestAt + golden.length / 2);
    assert.equal(written.toString('hex'), golden);
    assert.equal(opened.memory.words[wordAt.requestTail], golden.length / 2);
  });

  for (const [readerName, makeReader] of Object.entries(readers)) {
    test(`${readerName} reads the frames of ${writerName}, around the end of ring and cursor`, (t) => {
      const chance = random(t);
      const opened = openSegment(1024);
      // Cursors that wrap soon, as after 4 GiB.
      for (const at of [wordAt.requestTail, wordAt.requestHead]) opened.memory.words[at] = -4096;
      const push = makeWriter(opened);
      const pop = makeReader(opened);
      const waiting: Frame[] = [];
      for (let round = 0; round < 3000; round++) {
        const text = 'x'.repeat(chance.integer(0, 240));
        const frame = { kind: round, task: -round | 0, target: chance.integer(-9, 9), text };
        if (push(frame)) waiting.push(frame);
        else assert.ok(waiting.length > 2, 'only a ring that is nearly full refuses');
        if (chance.integer(0, 1) === 0 && waiting.length > 0) {
          assert.deepEqual(pop(), waiting.shift());
        }
      }
      for (const frame of waiting) assert.deepEqual(pop(), frame);
      assert.equal(pop(), undefined);
    });
  }
}

test('the words lie at the offsets of Rust', () => {
  const offsets = requireNative().layoutOffsets();
  assert.deepEqual(
    Object.values(wordAt).map((index) => index * 4),
    offsets,
  );
  const { segment } = openSegment(2048);
  assert.deepEqual(
    [segment.ringBytes, segment.slotCount, segment.replyAt - segment.requestAt],
    [2048, 16, 2048],
  );
  assert.deepEqual([segment.owner, segment.parentOwner], [3, 2]);
  assert.notDeepEqual(requestRing(0, 1024), replyRing(0, 1024));
});

test('the error for a segment of another version has the version', () => {
  const binding = requireNative();
  const fds = new binding.NativeDescriptors();
  const fd = fds.createSegment(1024, 0, 1, 0);
  const memory = binding.NativeSegment.open(fds.release(fds.duplicate(fd))).buffer();
  new Int32Array(memory)[1] = 99;
  assert.throws(() => binding.NativeSegment.open(fds.release(fd)), {
    code: 'SEGMENT_VERSION',
    message: /99/,
  });
});
