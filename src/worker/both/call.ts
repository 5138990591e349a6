// A call on its way to a worker: its frame, and the parcels beside that.

import type { Packed } from '../../channels/index.js';
import type { FunctionSnapshot } from '../../context/receiving.js';
import type { Parcel } from '../../lib/index.js';

/** A call, which the pool keeps until it is answered. */
export interface Call {
  readonly snapshot: FunctionSnapshot;
  readonly args: readonly unknown[];
  /** Arguments as they were at the call; `undefined` when they cannot change. */
  readonly packed: Packed | undefined;
  /** True: the arguments are one `Chunk`, and the function is its mapper. */
  readonly isChunk: boolean;
  /**
   * Set here before the error: for a chunk the index of the failed item, for a stream `failedAtEnd`.
   * Otherwise below 0.
   */
  failedAt: number;
}

const noParcels: readonly Parcel[] = [];

/** Returns the parcels to send before the frame of a call, in the order in which they are read. */
export function parcelsOf({ snapshot, packed }: Call): readonly Parcel[] {
  const captured = snapshot.state === undefined ? undefined : snapshot.parcel;
  const passed = packed?.parcel;
  if (captured === undefined && passed === undefined) return noParcels;
  return [captured, passed].filter((parcel) => parcel !== undefined);
}

/** True: its worker must have learnt `definition` before. */
export function needs({ snapshot, packed }: Call, definition: number): boolean {
  return (
    snapshot.definitions.includes(definition) || packed?.definitions.includes(definition) === true
  );
}

/** True: some value leaves this thread with the call, so it goes once. */
export function isOneWay(call: Call): boolean {
  return parcelsOf(call).some(({ transfer }) => transfer.length > 0);
}
