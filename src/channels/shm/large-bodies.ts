// Bodies that are larger than a quarter of the ring, as a channel carries them: in blocks of the arena (spill.ts), or
// in pieces where the two ends share no arena (pieces.ts). Their frames carry `spillFlag`.

import type { ByteReader } from '../bytes.js';
import type { BodyWriter } from '../types.js';
import type { RingWriter, WriteOutcome } from './ring-writer.js';

export interface LargeBodies {
  /** Bytes of bodies so far that did not travel in the ring. */
  readonly writtenBytes: number;
  readonly readBytes: number;
  /** True: a part of a body waits for room in the ring, and no frame may be written before it. */
  readonly isWaiting: boolean;
  /** Sends a body that is too large for the ring. Throws `SHARED_MEMORY_FULL`. */
  write<T>(
    ring: RingWriter,
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): Exclude<WriteOutcome, 'tooLarge'>;
  /** Writes more of the body that waits; `sent`: all of it. */
  resume(ring: RingWriter): 'sent' | 'full' | 'corrupt';
  /** Returns the body of a frame, or `undefined` while it is not whole. Throws `SEGMENT_CORRUPT`, `NATIVE_REFUSED`. */
  read(kind: number, task: number, target: number, frame: ByteReader): ByteReader | undefined;
  /** This side is done with the channel; the peer may still read, unless it is gone. */
  end(ring: RingWriter, isPeerGone: boolean): void;
  /** The peer has ended: it reads no more. */
  peerEnded(): void;
}
