// Types between the sending and the receiving half of the context layer and the pool. Layer 2: no dependency
// on channels, workers or pools; they carry the bytes made here.

import type { Transferable } from 'node:worker_threads';
import type { Parcel } from '../lib/index.js';
import type { Largest } from './closures/largest.js';

// biome-ignore lint/complexity/noBannedTypes: any function of the user's, whatever its signature
export type AnyFunction = Function;

/** Numbers that name memory in every process. */
export type BufferName = readonly number[];

/** A function at the moment of a call. */
export interface FunctionSnapshot {
  /** int32, names a definition. The same for the same code and the same unchanging captures. */
  readonly id: number;
  /** Definitions that the peer needs first, in this order; `id` is the last. */
  readonly definitions: readonly number[];
  /** Values that may differ at the next call; `undefined` when nothing captured can change. */
  readonly state: Uint8Array | undefined;
  /** Shared memory that `state` names, each once: its carrier keeps it while this may be sent. */
  readonly buffers: readonly BufferName[];
  /** Values beside `state`: posted before it, to each worker. */
  readonly parcel?: Parcel | undefined;
  /** True: no call changes anything in `state`, so a function with equal `id` and `state` is the same one. */
  readonly isSteady?: boolean;
}

/** A value at the moment of a call, in bytes readable by any peer that has `definitions`. */
export interface ValueSnapshot {
  readonly bytes: Uint8Array;
  readonly definitions: readonly number[];
  /** The same as in a function's snapshot. */
  readonly buffers: readonly BufferName[];
  readonly parcel?: Parcel | undefined;
}

/** Names memory that must not be copied (shared blocks). */
export interface BufferCarrier {
  /** The name of `buffer`, which this does not keep alive; `undefined`: copy it like any other. */
  name(buffer: ArrayBufferLike): BufferName | undefined;
  /** Called once for each of a snapshot's `buffers`. */
  find(name: BufferName): ArrayBufferLike;
  /** True while a call transfers something: then `carry` is called for every object. */
  readonly isMoving?: boolean;
  /** For peers that are threads of this process. `undefined`: copy or refuse `value` like any other. */
  carry?(value: object): { readonly moved: Transferable | undefined } | undefined;
  /** The values of a parcel, once. */
  open?(parcel: number): readonly unknown[];
}

/**
 * The sending half. The parent has one for all its workers; a worker has one for its parent. `buffers`: the
 * carrier for one snapshot; default: that of the exporter.
 */
export interface Exporter {
  /** Snapshot of a callback. Throws `TRANSFER_…` with path and way out, having sent nothing. */
  exportFunction(fn: AnyFunction, buffers?: BufferCarrier): FunctionSnapshot;
  /**
   * Right after `exportFunction(fn)`: a snapshot of `fn` with its arguments, to be called without any, where
   * they share something with its captures. `undefined`: they do not, and are sent by themselves. `haveCode`:
   * there are functions or classes among them. Throws as `exportFunction` does.
   */
  exportJoint(
    fn: AnyFunction,
    args: readonly unknown[],
    haveCode: boolean,
    buffers?: BufferCarrier,
  ): FunctionSnapshot | undefined;
  /** Snapshot of any value; `what` opens the error's path: "argument 2", "the result". */
  exportValue(value: unknown, what: string, buffers?: BufferCarrier): ValueSnapshot;
  /**
   * The place where modules keep a part of `value`, which a copy loses; `undefined`: nowhere. Never throws.
   */
  hiddenState(value: object): string | undefined;
  /** The bytes of a definition. */
  definition(id: number): Uint8Array;
  /**
   * `snapshot` with its state as a definition: sent once to each peer and good for many calls. Its `buffers`
   * are named by that definition. The same snapshot where nothing captured can change.
   */
  pin(snapshot: FunctionSnapshot): FunctionSnapshot;
  /** The function as messages show it, and the captured variable of it that takes most bytes. */
  largestCapture(fn: AnyFunction, buffers?: BufferCarrier): Largest;
  /** Drops a definition made by `pin`; no call of it may follow. Any other id is left alone. */
  unpin(id: number): void;
}

/** The receiving half. The parent has one for each worker; a worker has one for its parent. */
export interface Importer {
  /**
   * Adds a definition. A promise when modules must be loaded first: nothing of the peer may be read until it
   * settles. Rejects with `TRANSFER_IMPORT_FAILED`.
   */
  define(id: number, bytes: Uint8Array): void | Promise<void>;
  /** Drops a pinned function: the peer will not name it again. */
  forget(id: number): void;
  importFunction(id: number, state: Uint8Array | undefined): (...args: unknown[]) => unknown;
  importValue(bytes: Uint8Array): unknown;
}
