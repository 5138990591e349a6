// Snapshots of arguments at the call, for a worker that is not chosen yet: small values as bytes, large
// buffers in blocks of the arena, held until the task is settled. A worker may write into such a block,
// so the arguments of a task that may run twice (`retry`) are copied into its frame each time instead.

import {
  type BlocksShare,
  Codec,
  isImmutable,
  type Packed,
  type SlowCodec,
  shareBlocks,
} from '../../channels/index.js';
import {
  type AnyFunction,
  beginCall,
  endCall,
  type FunctionSnapshot,
  type ValueSnapshot,
} from '../../context/index.js';
import {
  blocksOf,
  type Chunk,
  encodedOf,
  type Moving,
  ParentBuffers,
  parcelsOf,
  parentExporter,
} from '../../worker/index.js';
import { ChunkFailure } from '../calls/pinned.js';
import type { Task } from '../task.js';
import { noteLargeState } from './large-state.js';

/** A function and its arguments as they were at the call. */
interface PackedCall {
  readonly snapshot: FunctionSnapshot;
  readonly args: readonly unknown[];
  /** `undefined`: the arguments cannot change. */
  readonly packed: Packed | undefined;
}

/** Arguments of a call that are packed together with the function. */
const noArguments: readonly unknown[] = [];

/** Encodes what is no plain data by `snapshotOf`. Nothing is read with the codecs of a packer. */
function slowCodec(snapshotOf: (value: unknown) => ValueSnapshot): SlowCodec {
  return { encode: (value) => encodedOf(snapshotOf(value)), decode: () => undefined };
}

export class Packer {
  readonly #codec: Codec;
  /** For tasks with `retry`. */
  readonly #inlineCodec: Codec;
  readonly #share: BlocksShare | undefined;
  readonly #exporter = parentExporter();
  readonly #buffers: ParentBuffers;

  /** Throws `NATIVE_REFUSED` when there should be shared memory and there is none. */
  constructor(isOverSharedMemory: boolean, isThread: boolean) {
    this.#buffers = new ParentBuffers({ hasSharedMemory: isOverSharedMemory, isThread });
    this.#share = isOverSharedMemory ? shareBlocks() : undefined;
    const blocks = this.#share?.blocks;
    const slow = slowCodec((args) => this.#exportArguments(args, this.#buffers));
    this.#codec = new Codec({ blocks, slow });
    this.#inlineCodec = new Codec({ blocks, slow, thresholdBytes: Infinity });
  }

  #exportArguments(args: unknown, buffers: ParentBuffers): ValueSnapshot {
    return this.#exporter.exportValue(args, 'the arguments', buffers);
  }

  /** Packs arguments. Throws `TRANSFER_…`; then nothing is held. */
  pack(args: readonly unknown[], mayRunTwice: boolean): Packed {
    return (mayRunTwice ? this.#inlineCodec : this.#codec).pack(args);
  }

  /** Packs the arguments of a chunk. Throws a `ChunkFailure` with the item that cannot travel. */
  packChunk(args: [Chunk], mayRunTwice: boolean): Packed {
    try {
      return this.pack(args, mayRunTwice);
    } catch (error) {
      throw this.#blame(args[0]) ?? error;
    }
  }

  /** Packs the items of a chunk one by one, and returns the failure of the first that cannot travel. */
  #blame({ items, offset, count }: Chunk): ChunkFailure | undefined {
    if (!Array.isArray(items)) return undefined;
    const slow = slowCodec((args) => {
      const item: unknown = Array.isArray(args) ? args[0] : args;
      return this.#exporter.exportValue(item, 'the item', this.#buffers);
    });
    const codec = new Codec({ blocks: this.#share?.blocks, slow, thresholdBytes: Infinity });
    for (let at = 0; at < count; at += 1) {
      try {
        this.release(codec.pack([items[offset + at]]));
      } catch (error) {
        return new ChunkFailure(error, at, undefined);
      }
    }
    return undefined;
  }

  release(packed: Packed): void {
    if (packed.blocks.length > 0) this.#codec.release(packed);
  }

  /** Takes the snapshot of a function alone. Throws `TRANSFER_…`. */
  exportFunction(fn: AnyFunction): FunctionSnapshot {
    const isNested = beginCall();
    try {
      return this.#exportFunction(fn, this.#buffers);
    } finally {
      endCall(isNested);
    }
  }

  #exportFunction(fn: AnyFunction, buffers: ParentBuffers): FunctionSnapshot {
    const snapshot = this.#exporter.exportFunction(fn, buffers);
    noteLargeState(fn, snapshot, buffers);
    return snapshot;
  }

  /**
   * Takes the snapshot of a call and holds it until `settled`; `moving`: its transfer list, of which nothing
   * is detached yet. Throws `TRANSFER_…`, for a transfer list also `OPTION_INVALID`; then nothing is held.
   */
  exportCall(
    fn: AnyFunction,
    args: readonly unknown[],
    mayRunTwice: boolean,
    moving: Moving | undefined,
  ): PackedCall {
    const buffers = moving === undefined ? this.#buffers : this.#buffers.withMoving(moving);
    const call = this.#exportWith(fn, args, mayRunTwice, buffers);
    try {
      moving?.check();
    } catch (error) {
      if (call.packed !== undefined) this.release(call.packed);
      throw error;
    }
    this.hold(call.snapshot);
    return call;
  }

  #exportWith(
    fn: AnyFunction,
    args: readonly unknown[],
    mayRunTwice: boolean,
    buffers: ParentBuffers,
  ): PackedCall {
    const isNested = beginCall();
    try {
      const snapshot = this.#exportFunction(fn, buffers);
      if (isImmutable(args)) return { snapshot, args, packed: undefined };
      const packed = buffers.isMoving
        ? this.#codec.packEncoded(encodedOf(this.#exportArguments(args, buffers)))
        : this.pack(args, mayRunTwice);
      // Neither can change, nor contains part of a module that both use.
      if (snapshot.state === undefined && packed.definitions.length === 0) {
        return { snapshot, args, packed };
      }
      const haveCode = packed.definitions.length > 0;
      const joint = this.#exporter.exportJoint(fn, args, haveCode, buffers);
      if (joint === undefined) return { snapshot, args, packed };
      this.release(packed);
      return { snapshot: joint, args: noArguments, packed: undefined };
    } finally {
      endCall(isNested);
    }
  }

  /** Keeps the shared memory that a function captured; call it before any other code may run. */
  hold({ buffers }: FunctionSnapshot): void {
    for (const block of blocksOf(buffers)) this.#share?.blocks.hold(block);
  }

  /** Releases that memory; once for each `hold`. */
  letGo({ buffers }: FunctionSnapshot): void {
    for (const block of blocksOf(buffers)) this.#share?.blocks.release(block);
  }

  /** Releases all that a settled task held. */
  settled(task: Task): void {
    if (task.snapshot.buffers.length > 0) this.letGo(task.snapshot);
    if (task.packed !== undefined) this.release(task.packed);
    if (task.options.transfer.length > 0) for (const parcel of parcelsOf(task)) parcel.discard();
  }

  close(): void {
    this.#share?.leave();
  }
}
