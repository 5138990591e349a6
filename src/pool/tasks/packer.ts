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
  parcelsOf,
  parentBuffers,
  parentExporter,
  type Reach,
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
  #reach: Reach;

  /** Throws `NATIVE_REFUSED` when there should be shared memory and there is none. */
  constructor(isOverSharedMemory: boolean, isThread: boolean) {
    this.#reach = { hasSharedMemory: isOverSharedMemory, isThread, moving: undefined };
    this.#share = isOverSharedMemory ? shareBlocks() : undefined;
    const blocks = this.#share?.blocks;
    const slow = slowCodec((args) => parentExporter().exportValue(args, 'the arguments'));
    this.#codec = new Codec({ blocks, slow });
    this.#inlineCodec = new Codec({ blocks, slow, thresholdBytes: Infinity });
  }

  /** Packs arguments. Throws `TRANSFER_…`; then nothing is held. */
  pack(args: readonly unknown[], mayRunTwice: boolean): Packed {
    return this.#packWith(mayRunTwice ? this.#inlineCodec : this.#codec, args);
  }

  #packWith(codec: Codec, args: readonly unknown[]): Packed {
    const before = this.#begin();
    try {
      return this.#reach.moving === undefined ? codec.pack(args) : codec.packSlowly(args);
    } finally {
      parentBuffers.reach = before;
    }
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
      return parentExporter().exportValue(item, 'the item');
    });
    const codec = new Codec({ blocks: this.#share?.blocks, slow, thresholdBytes: Infinity });
    for (let at = 0; at < count; at += 1) {
      try {
        this.release(this.#packWith(codec, [items[offset + at]]));
      } catch (error) {
        return new ChunkFailure(error, at, undefined);
      }
    }
    return undefined;
  }

  release(packed: Packed): void {
    if (packed.blocks.length > 0) this.#codec.release(packed);
  }

  /** Throws `TRANSFER_…`. */
  exportFunction(fn: AnyFunction): FunctionSnapshot {
    const before = this.#begin();
    const isNested = beginCall();
    try {
      const snapshot = parentExporter().exportFunction(fn);
      noteLargeState(fn, snapshot);
      return snapshot;
    } finally {
      endCall(isNested);
      parentBuffers.reach = before;
    }
  }

  /** Takes the snapshot of a call. Throws `TRANSFER_…`; then nothing is held. */
  exportCall(fn: AnyFunction, args: readonly unknown[], mayRunTwice: boolean): PackedCall {
    if (args.length === 0) return this.#exportWith(fn, args, mayRunTwice);
    const isNested = beginCall();
    try {
      return this.#exportWith(fn, args, mayRunTwice);
    } finally {
      endCall(isNested);
    }
  }

  #exportWith(fn: AnyFunction, args: readonly unknown[], mayRunTwice: boolean): PackedCall {
    const snapshot = this.exportFunction(fn);
    if (isImmutable(args)) return { snapshot, args, packed: undefined };
    const packed = this.pack(args, mayRunTwice);
    // Neither can change, nor contains part of a module that both use.
    if (snapshot.state === undefined && packed.definitions.length === 0) {
      return { snapshot, args, packed };
    }
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
    const before = this.#begin();
    try {
      return parentExporter().exportJoint(fn, args, definitions.length > 0);
    } finally {
      parentBuffers.reach = before;
    }
  }

  /**
   * Sets the reach of this pool's workers and returns the former: an export runs getters, which may call
   * another pool.
   */
  #begin(): Reach {
    const before = parentBuffers.reach;
    parentBuffers.reach = this.#reach;
    return before;
  }

  /**
   * Exports a call with a transfer list, as `exportCall`. Also throws `OPTION_INVALID`. Nothing is detached
   * yet.
   */
  exportMovingCall(fn: AnyFunction, args: readonly unknown[], moving: Moving): PackedCall {
    const usual = this.#reach;
    this.#reach = { ...usual, moving };
    let call: PackedCall;
    try {
      call = this.exportCall(fn, args, false);
    } finally {
      this.#reach = usual;
    }
    try {
      moving.check();
    } catch (error) {
      if (call.packed !== undefined) this.release(call.packed);
      throw error;
    }
    return call;
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
    this.letGo(task.snapshot);
    if (task.packed !== undefined) this.release(task.packed);
    if (task.options.transfer.length > 0) for (const parcel of parcelsOf(task)) parcel.discard();
  }

  close(): void {
    this.#share?.leave();
  }
}
