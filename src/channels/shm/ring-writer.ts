// The writing end of a ring, in JavaScript because a call into the binary costs more than a whole
// frame (bench/cases/throughput). The protocol is that of crates/core/src/ring/spsc.rs, the format
// that of frame.rs: frames are written in place, the tail is stored last.
// Not here: waking the peer (channel.ts), bodies too large for the ring (spill.ts).

import { ByteWriter } from '../bytes.js';
import type { BodyWriter } from '../types.js';
import { frameHeaderBytes, type RingPlace, roomState, type SegmentMemory } from './layout.js';

/** `tooLarge`: more than a quarter of the ring; `corrupt`: the peer's head cannot be right. */
export type WriteOutcome = 'sent' | 'full' | 'refused' | 'tooLarge' | 'corrupt';

export class RingWriter {
  readonly #words: Int32Array;
  readonly #writer: ByteWriter;
  readonly #bytesAt: number;
  readonly #capacity: number;
  readonly #mask: number;
  /** The largest frame, header included. */
  readonly #largest: number;
  readonly #tailAt: number;
  readonly #headAt: number;
  readonly #roomAt: number;
  /** int32 that wraps, as in the segment. */
  #tail: number;
  /** The head as last seen; only ever behind the real one. */
  #seenHead: number;
  /** Bytes of all frames up to `#countedTail`: counted when the ring's head is read, not for each frame. */
  #countedBytes = 0;
  #countedTail: number;
  #isCorrupt = false;
  /** The tail at the last request for room. */
  #wantedAt = 0;
  /** All requests for room so far, and all answers that were taken. */
  roomEvents = 0;

  constructor(memory: SegmentMemory, place: RingPlace) {
    this.#words = memory.words;
    this.#writer = new ByteWriter(memory.bytes, false);
    this.#bytesAt = place.bytesAt;
    this.#capacity = place.capacity;
    this.#mask = place.capacity - 1;
    this.#largest = place.capacity / 4;
    this.#tailAt = place.tailAt;
    this.#headAt = place.headAt;
    this.#roomAt = place.roomAt;
    this.#tail = Atomics.load(memory.words, place.tailAt);
    this.#seenHead = Atomics.load(memory.words, place.headAt);
    this.#countedTail = this.#tail;
  }

  /** Bytes of all frames so far, padded to eight. */
  get writtenBytes(): number {
    this.#count();
    return this.#countedBytes;
  }

  /** The position of the next frame, as an int32 that wraps. */
  get tail(): number {
    return this.#tail;
  }

  /** Returns the position up to which the peer has read; compare with `tail` by difference only. */
  readHead(): number {
    this.#free(this.#capacity);
    return this.#seenHead;
  }

  /**
   * Writes one frame whole or nothing. `write` may be called a second time, when its bytes did not
   * fit before the end of the ring. `sizeFlags` is or-ed into the size field.
   */
  write<T>(
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
    sizeFlags: number,
  ): WriteOutcome {
    const free = this.#free(this.#largest);
    if (this.#isCorrupt) return 'corrupt';
    const at = this.#tail & this.#mask;
    const toEnd = this.#capacity - at;
    const room = Math.min(free, toEnd, this.#largest);
    if (room >= frameHeaderBytes) {
      if (!this.#encode(at, room, write, value)) return 'refused';
      if (!this.#writer.overflowed) return this.#publish(at, kind, task, target, sizeFlags);
      if (room === this.#largest) return 'tooLarge';
    }
    // After a gap, from the start of the ring; worth a fresh read of the peer's head.
    const roomAtStart = Math.min(this.#free(this.#largest + toEnd) - toEnd, this.#largest);
    if (roomAtStart >= frameHeaderBytes) {
      if (!this.#encode(0, roomAtStart, write, value)) return 'refused';
      if (!this.#writer.overflowed) {
        this.#words[(this.#bytesAt + at) >> 2] = -toEnd;
        this.#tail = (this.#tail + toEnd) | 0;
        this.#countedBytes -= toEnd;
        return this.#publish(0, kind, task, target, sizeFlags);
      }
      if (roomAtStart === this.#largest) return 'tooLarge';
    }
    return 'full';
  }

  /**
   * After `full`: requests a notice when half of the ring is free. Returns false when that is so already,
   * then the caller tries again. (Half is always enough: of two pieces one holds a largest frame.)
   */
  wantRoom(): boolean {
    this.roomEvents += 1;
    this.#wantedAt = this.#tail;
    Atomics.store(this.#words, this.#roomAt, roomState.wanted);
    if (this.#free(this.#capacity) < this.#capacity / 2 && !this.#isCorrupt) return true;
    Atomics.store(this.#words, this.#roomAt, roomState.plenty);
    return false;
  }

  /** True: the peer has read as much as an honest one has before it answers `wantRoom`. */
  hasMadeRoom(): boolean {
    this.#free(Infinity);
    return !this.#isCorrupt && ((this.#wantedAt - this.#seenHead) | 0) <= this.#capacity / 2;
  }

  /** Returns true when the peer has answered `wantRoom`; takes the answer. */
  takeRoom(): boolean {
    if (Atomics.load(this.#words, this.#roomAt) !== roomState.made) return false;
    Atomics.store(this.#words, this.#roomAt, roomState.plenty);
    this.roomEvents += 1;
    return true;
  }

  /**
   * Returns the free bytes; reads the peer's head only when fewer than `enough` are free by the last reading.
   */
  #free(enough: number): number {
    const known = this.#capacity - ((this.#tail - this.#seenHead) | 0);
    if (known >= enough) return known;
    this.#count();
    const head = Atomics.load(this.#words, this.#headAt);
    const used = (this.#tail - head) | 0;
    if (used < 0 || used > this.#capacity || (head & 7) !== 0) {
      this.#isCorrupt = true;
      return 0;
    }
    this.#seenHead = head;
    return this.#capacity - used;
  }

  #count(): void {
    this.#countedBytes += (this.#tail - this.#countedTail) | 0;
    this.#countedTail = this.#tail;
  }

  #encode<T>(at: number, room: number, write: BodyWriter<T>, value: T): boolean {
    const start = this.#bytesAt + at;
    this.#writer.reset(start + frameHeaderBytes, start + room);
    return write(this.#writer, value);
  }

  #publish(at: number, kind: number, task: number, target: number, sizeFlags: number): 'sent' {
    const start = this.#bytesAt + at;
    const sizeBytes = this.#writer.position - start;
    const words = this.#words;
    const first = start >> 2;
    words[first] = sizeBytes | sizeFlags;
    words[first + 1] = kind;
    words[first + 2] = task;
    words[first + 3] = target;
    this.#tail = (this.#tail + ((sizeBytes + 7) & ~7)) | 0;
    Atomics.store(words, this.#tailAt, this.#tail);
    return 'sent';
  }
}
