// The reading end of a ring: hands out frames in place and frees their bytes afterwards. The
// protocol is that of crates/core/src/ring/spsc.rs. Every number in the ring is input: a size is read
// once, checked, and then only the copy counts. The frames of a peer that is not trusted are copied before anything is
// read in them: it could change them meanwhile. Its spilled ones are not, because their listener copies them (pieces.ts).

import { nowMs } from '../../lib/index.js';
import { ByteReader } from '../bytes.js';
import type { FrameListener } from '../types.js';
import {
  frameHeaderBytes,
  type RingPlace,
  roomState,
  type SegmentMemory,
  spillFlag,
} from './layout.js';

/** Frames between two checks of the clock. */
const framesPerClock = 8;
const maxDrainMs = 1;

/** `more`: stopped at a limit; `corrupt`: a number cannot be right, nothing more can be read. */
export type DrainOutcome = 'empty' | 'more' | 'corrupt';

export class RingReader {
  readonly #words: Int32Array;
  readonly #reader: ByteReader;
  readonly #bytes: Buffer;
  /** Over the copy, if frames are copied. */
  readonly #copyReader: ByteReader | undefined;
  /** Memory for the copy of a frame, if frames are copied. */
  readonly #copy: Buffer | undefined;
  readonly #bytesAt: number;
  readonly #capacity: number;
  readonly #mask: number;
  readonly #tailAt: number;
  readonly #headAt: number;
  readonly #roomAt: number;
  /** int32 that wraps; the segment's word is only a copy for the peer. */
  #head: number;
  #publishedHead: number;
  /** Bytes of all frames up to `#publishedHead`, padded to eight. */
  readBytes = 0;
  /** Number of all frames so far. */
  readFrames = 0;
  /** Set by `stop`. */
  #isStopped = false;
  /** Value of the number that could not be right. */
  corruptValue = 0;

  constructor(memory: SegmentMemory, place: RingPlace, isCopied = false) {
    this.#words = memory.words;
    this.#bytes = memory.bytes;
    this.#copy = isCopied ? Buffer.allocUnsafeSlow(place.capacity / 4) : undefined;
    this.#reader = new ByteReader(memory.bytes);
    this.#copyReader = this.#copy && new ByteReader(this.#copy);
    this.#bytesAt = place.bytesAt;
    this.#capacity = place.capacity;
    this.#mask = place.capacity - 1;
    this.#tailAt = place.tailAt;
    this.#headAt = place.headAt;
    this.#roomAt = place.roomAt;
    this.#head = Atomics.load(memory.words, place.headAt);
    this.#publishedHead = this.#head;
  }

  /** Ends a drain in progress after the current frame; nothing is read any more. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Calls `onFrame` for frames in order, `onSpill` for those whose body lies elsewhere, at most `maxFrames`.
   * When a listener throws, its frame is done with and the error goes up.
   */
  drain(onFrame: FrameListener, onSpill: FrameListener, maxFrames: number): DrainOutcome {
    try {
      return this.#drain(onFrame, onSpill, maxFrames);
    } finally {
      this.#publishHead();
    }
  }

  #drain(onFrame: FrameListener, onSpill: FrameListener, maxFrames: number): DrainOutcome {
    const words = this.#words;
    const startMs = nowMs();
    for (let count = 0; count < maxFrames; count++) {
      if (this.#isStopped) return 'empty';
      const tail = Atomics.load(words, this.#tailAt);
      let used = (tail - this.#head) | 0;
      if (used === 0) return 'empty';
      if (used < 0 || used > this.#capacity || (used & 7) !== 0) return this.#corrupt(tail);
      let at = this.#head & this.#mask;
      let first = (this.#bytesAt + at) >> 2;
      let size = words[first] ?? 0;
      if (size < 0) {
        // A gap up to the end of the ring; a frame follows it.
        if (-size !== this.#capacity - at || -size >= used) return this.#corrupt(size);
        this.#head = (this.#head - size) | 0;
        this.readBytes += size;
        used += size;
        at = 0;
        first = this.#bytesAt >> 2;
        size = words[first] ?? 0;
      }
      const sizeBytes = size & ~spillFlag;
      const padded = (sizeBytes + 7) & ~7;
      const limit = Math.min(used, this.#capacity - at);
      if (size < 0 || sizeBytes < frameHeaderBytes || padded > limit) return this.#corrupt(size);
      const start = this.#bytesAt + at;
      this.#head = (this.#head + padded) | 0;
      this.readFrames += 1;
      const isSpilled = size !== sizeBytes;
      let reader = this.#reader;
      if (this.#copy !== undefined && sizeBytes > this.#copy.byteLength) return this.#corrupt(size);
      if (this.#copy === undefined || this.#copyReader === undefined || isSpilled) {
        reader.reset(start + frameHeaderBytes, start + sizeBytes);
      } else {
        this.#bytes.copy(this.#copy, 0, start + frameHeaderBytes, start + sizeBytes);
        reader = this.#copyReader;
        reader.reset(0, sizeBytes - frameHeaderBytes);
      }
      const listener = isSpilled ? onSpill : onFrame;
      const kind = words[first + 1] ?? 0;
      const task = words[first + 2] ?? 0;
      const target = words[first + 3] ?? 0;
      listener(kind, task, target, reader);
      if (((this.#head - this.#publishedHead) | 0) > this.#capacity >> 2) this.#publishHead();
      const isClockDue = count % framesPerClock === framesPerClock - 1;
      if (isClockDue && nowMs() - startMs > maxDrainMs) return 'more';
    }
    return 'more';
  }

  #corrupt(value: number): 'corrupt' {
    this.corruptValue = value;
    this.#isStopped = true;
    return 'corrupt';
  }

  /** Frees what was read. Also repairs the word, should the peer have written it. */
  #publishHead(): void {
    this.readBytes += (this.#head - this.#publishedHead) | 0;
    this.#publishedHead = this.#head;
    Atomics.store(this.#words, this.#headAt, this.#head);
  }

  /** Returns true once, after a drain, when the peer waits for room and is to be notified. */
  makeRoom(): boolean {
    if (Atomics.load(this.#words, this.#roomAt) !== roomState.wanted) return false;
    const used = (Atomics.load(this.#words, this.#tailAt) - this.#head) | 0;
    if (used > this.#capacity / 2) return false;
    const before = Atomics.compareExchange(
      this.#words,
      this.#roomAt,
      roomState.wanted,
      roomState.made,
    );
    return before === roomState.wanted;
  }
}
