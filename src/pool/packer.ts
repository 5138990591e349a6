// Snapshots of arguments at the call, for a host that is not chosen yet: small values as bytes, large
// buffers in blocks of the arena, held until the task is settled.

import { type BlocksShare, Codec, type Packed, shareBlocks } from '../channels/index.js';
import type { FunctionSnapshot } from '../context/index.js';
import { blocksOf, encodedOf, parentBuffers, parentExporter } from '../host/index.js';

export class Packer {
  readonly #codec: Codec;
  readonly #share: BlocksShare | undefined;

  /** Throws `NATIVE_REFUSED` when there should be shared memory and there is none. */
  constructor(isOverSharedMemory: boolean) {
    this.#share = isOverSharedMemory ? shareBlocks() : undefined;
    if (this.#share !== undefined) parentBuffers.blocks = this.#share.blocks;
    this.#codec = new Codec({
      blocks: this.#share?.blocks,
      slow: {
        encode: (value) => encodedOf(parentExporter().exportValue(value, 'the arguments')),
        decode: () => undefined, // nothing is read with this codec
      },
    });
  }

  /** Throws `TRANSFER_…`; then nothing is held. */
  pack(args: readonly unknown[]): Packed {
    return this.#codec.pack(args);
  }

  release(packed: Packed): void {
    if (packed.blocks.length > 0) this.#codec.release(packed);
  }

  /** Keeps the shared memory that a function captured; call it before anything else may run. */
  hold({ buffers }: FunctionSnapshot): void {
    for (const block of blocksOf(buffers)) this.#share?.blocks.hold(block);
  }

  /** Once for each `hold`. */
  letGo({ buffers }: FunctionSnapshot): void {
    for (const block of blocksOf(buffers)) this.#share?.blocks.release(block);
  }

  close(): void {
    this.#share?.leave();
  }
}
