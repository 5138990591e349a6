// Snapshots of arguments at the call, for a host that is not chosen yet: small values as bytes, large
// buffers in blocks of the arena, held until the task is settled. A host may write into such a block,
// so the arguments of a task that may run twice (`retry`) are copied into its frame each time instead.

import {
  type BlocksShare,
  Codec,
  isImmutable,
  type Packed,
  type SlowCodec,
  shareBlocks,
} from '../channels/index.js';
import type { AnyFunction, FunctionSnapshot } from '../context/index.js';
import { blocksOf, type Chunk, encodedOf, parentBuffers, parentExporter } from '../host/index.js';
import { ChunkFailure } from './pinned.js';

/** A function and its arguments as they were at the call. */
interface PackedCall {
  readonly snapshot: FunctionSnapshot;
  readonly args: readonly unknown[];
  /** `undefined`: nobody can change the arguments. */
  readonly packed: Packed | undefined;
}

/** Of a call whose arguments go along with the function. */
const noArguments: readonly unknown[] = [];

export class Packer {
  readonly #codec: Codec;
  /** For tasks with `retry`. */
  readonly #inlineCodec: Codec;
  readonly #share: BlocksShare | undefined;
  /** While one item after the other is tried alone. */
  #isBlaming = false;

  /** Throws `NATIVE_REFUSED` when there should be shared memory and there is none. */
  constructor(isOverSharedMemory: boolean) {
    this.#share = isOverSharedMemory ? shareBlocks() : undefined;
    const blocks = this.#share?.blocks;
    const slow: SlowCodec = {
      encode: (args) => encodedOf(parentExporter().exportValue(...this.#named(args))),
      decode: () => undefined, // nothing is read with these codecs
    };
    this.#codec = new Codec({ blocks, slow });
    this.#inlineCodec = new Codec({ blocks, slow, thresholdBytes: Infinity });
  }

  /** Throws `TRANSFER_…`; then nothing is held. */
  pack(args: readonly unknown[], mayRunTwice: boolean): Packed {
    const wasNaming = this.#setNaming();
    try {
      return (mayRunTwice ? this.#inlineCodec : this.#codec).pack(args);
    } finally {
      parentBuffers.isNaming = wasNaming;
    }
  }

  /** The arguments of a chunk. Throws a `ChunkFailure` that says which item cannot travel. */
  packChunk(args: [Chunk], mayRunTwice: boolean): Packed {
    try {
      return this.pack(args, mayRunTwice);
    } catch (error) {
      throw this.#blame(args[0], mayRunTwice) ?? error;
    }
  }

  #blame({ items, offset, count }: Chunk, mayRunTwice: boolean): ChunkFailure | undefined {
    if (!Array.isArray(items)) return undefined;
    this.#isBlaming = true;
    try {
      for (let at = 0; at < count; at += 1) {
        try {
          this.release(this.pack([items[offset + at]], mayRunTwice));
        } catch (error) {
          return new ChunkFailure(error, at, undefined);
        }
      }
      return undefined;
    } finally {
      this.#isBlaming = false;
    }
  }

  /** What is sent, and what messages call it. */
  #named(args: unknown): [value: unknown, what: string] {
    return this.#isBlaming && Array.isArray(args) ? [args[0], 'the item'] : [args, 'the arguments'];
  }

  release(packed: Packed): void {
    if (packed.blocks.length > 0) this.#codec.release(packed);
  }

  /** Throws `TRANSFER_…`. */
  exportFunction(fn: AnyFunction): FunctionSnapshot {
    const wasNaming = this.#setNaming();
    try {
      return parentExporter().exportFunction(fn);
    } finally {
      parentBuffers.isNaming = wasNaming;
    }
  }

  /** What is sent for a call. Throws `TRANSFER_…`; then nothing is held. */
  exportCall(fn: AnyFunction, args: readonly unknown[], mayRunTwice: boolean): PackedCall {
    const snapshot = this.exportFunction(fn);
    if (isImmutable(args)) return { snapshot, args, packed: undefined };
    const packed = this.pack(args, mayRunTwice);
    if (snapshot.state === undefined) return { snapshot, args, packed };
    const joint = this.#exportJoint(fn, args, packed);
    if (joint === undefined) return { snapshot, args, packed };
    this.release(packed);
    return { snapshot: joint, args: noArguments, packed: undefined };
  }

  #exportJoint(
    fn: AnyFunction,
    args: readonly unknown[],
    { definitions }: Packed,
  ): FunctionSnapshot | undefined {
    const wasNaming = this.#setNaming();
    try {
      return parentExporter().exportJoint(fn, args, definitions.length > 0);
    } finally {
      parentBuffers.isNaming = wasNaming;
    }
  }

  /** For this pool's channel. An export runs getters, which may call another pool. */
  #setNaming(): boolean {
    const wasNaming = parentBuffers.isNaming;
    parentBuffers.isNaming = this.#share !== undefined;
    return wasNaming;
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
