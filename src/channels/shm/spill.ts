// Bodies that are larger than a quarter of the ring travel in an arena block, and the frame says
// where. The writer knows that a block is free again when the reader's head has passed its frame: no
// message is needed. (Blocks that a value refers to are another matter: blocks.ts.)

import type { ByteReader } from '../bytes.js';
import type { BodyWriter } from '../types.js';
import type { RingWriter, WriteOutcome } from './ring-writer.js';

export interface Spill {
  write<T>(
    ring: RingWriter,
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): Exclude<WriteOutcome, 'tooLarge'>;
  /** The body that a spilled frame names; `undefined` when the name cannot be right. */
  read(frame: ByteReader): ByteReader | undefined;
  end(): void;
}
