// Bodies that are larger than a quarter of the ring travel in an arena block, and the frame names the block.
// The block is free again when the reader's head has passed its frame: no message is needed. (Blocks that a
// value refers to are another matter: blocks.ts.)

import { CodedError, hasCode } from '../../errors.js';
import { ByteReader, ByteWriter } from '../bytes.js';
import type { BodyWriter } from '../types.js';
import type { ArenaShare } from './arena.js';
import type { LargeBodies } from './large-bodies.js';
import { spillFlag } from './layout.js';
import type { RingWriter, WriteOutcome } from './ring-writer.js';

/** The location of a spilled body: the frame holds it in place of the body. */
interface Place {
  readonly offset: number;
  readonly sizeBytes: number;
  readonly owner: number;
}

function writePlace(writer: ByteWriter, place: Place): boolean {
  writer.f64(place.offset);
  writer.f64(place.sizeBytes);
  writer.i32(place.owner);
  return true;
}

function misplaced(cause: unknown): CodedError {
  const message = 'the location of a large frame is invalid: the channel is closed';
  return new CodedError('SEGMENT_CORRUPT', message, { cause });
}

/** A block in flight; it is free when the reader's head is at or past `endsAt`. */
interface InFlight {
  readonly offset: number;
  readonly endsAt: number;
}

export class Spill implements LargeBodies {
  readonly #arena: ArenaShare;
  /** The owner number of the peer: it may name no block but its own. */
  readonly #peerOwner: number;
  /** Bytes of all bodies so far. */
  writtenBytes = 0;
  readBytes = 0;
  readonly isWaiting = false;
  #inFlight: InFlight[] = [];

  constructor(arena: ArenaShare, peerOwner: number) {
    this.#arena = arena;
    this.#peerOwner = peerOwner;
  }

  /** Encodes on the heap, then sends by block. Throws `SHARED_MEMORY_FULL`. */
  write<T>(
    ring: RingWriter,
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): Exclude<WriteOutcome, 'tooLarge'> {
    this.#freeRead(ring);
    const writer = ByteWriter.growing(1 << 17);
    if (!write(writer, value)) return 'refused';
    const table = this.#arena.table;
    const sizeBytes = writer.position;
    const offset = table.placeUncounted(writer.bytes.subarray(0, sizeBytes));
    if (offset === undefined) {
      throw new CodedError(
        'SHARED_MEMORY_FULL',
        `no shared memory is left for a frame of ${sizeBytes} bytes: send less at a time`,
      );
    }
    const place: Place = { offset, sizeBytes, owner: table.owner };
    const outcome = ring.write(kind, task, target, writePlace, place, spillFlag);
    if (outcome === 'sent') {
      this.writtenBytes += sizeBytes;
      this.#inFlight.push({ offset, endsAt: ring.tail });
    } else table.freeUncounted(offset);
    return outcome === 'tooLarge' ? 'corrupt' : outcome;
  }

  /**
   * Returns the body that a spilled frame names. Throws `SEGMENT_CORRUPT` or `NATIVE_REFUSED` (no mapping).
   */
  read(_kind: number, _task: number, _target: number, frame: ByteReader): ByteReader {
    try {
      const offset = frame.f64();
      const sizeBytes = frame.f64();
      const owner = frame.i32();
      if (owner === this.#peerOwner) {
        // No memory is kept by it: the writer frees the block once the frame was read.
        const view = this.#arena.native.view(owner, offset, sizeBytes, false);
        this.readBytes += sizeBytes;
        return new ByteReader(Buffer.from(view));
      }
    } catch (error) {
      if (!hasCode(error, 'NATIVE_REFUSED')) throw misplaced(error);
      const message = 'a large frame cannot be mapped: the channel is closed';
      throw new CodedError('NATIVE_REFUSED', message, { cause: error });
    }
    throw misplaced(undefined);
  }

  resume(): 'sent' {
    return 'sent';
  }

  /** Frees the blocks of frames that the reader is done with. */
  #freeRead(ring: RingWriter): void {
    if (this.#inFlight.length === 0) return;
    const head = ring.readHead();
    let done = 0;
    for (const { offset, endsAt } of this.#inFlight) {
      if (((head - endsAt) | 0) < 0) break;
      this.#arena.table.freeUncounted(offset);
      done++;
    }
    this.#inFlight.splice(0, done);
  }

  /** This side is done with the channel; the peer may still read, unless it is gone. */
  end(ring: RingWriter, isPeerGone: boolean): void {
    const reclaim = (): boolean => {
      this.#freeRead(ring);
      return this.#inFlight.length === 0;
    };
    if (isPeerGone) this.peerEnded();
    else if (!reclaim()) this.#arena.table.addReclaim(reclaim);
    this.#arena.leave();
  }

  /** Frees the blocks in flight, which the peer will not read any more. */
  peerEnded(): void {
    for (const { offset } of this.#inFlight) this.#arena.table.freeUncounted(offset);
    this.#inFlight = [];
    this.#arena.table.reclaim();
  }
}
