// Snapshots of arguments at the call, for a host that is not chosen yet: small values as bytes, large
// buffers in blocks of the arena, held until the task is settled.

import { type BlocksShare, Codec, type Packed, shareBlocks } from '../channels/index.js';
import { parentBuffers, parentExporter } from '../host/index.js';

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
        encode: (value) => parentExporter().exportValue(value, 'the arguments'),
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

  close(): void {
    this.#share?.leave();
  }
}
