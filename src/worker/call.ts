// A call on its way to a worker: what is sent for it, and what goes beside that.

import type { Packed } from '../channels/index.js';
import type { FunctionSnapshot } from '../context/index.js';
import type { Parcel } from '../internal/index.js';

/** A call as the pool keeps it until it is answered. */
export interface Call {
  readonly snapshot: FunctionSnapshot;
  readonly args: readonly unknown[];
  /** The arguments as they were at the call; `undefined` when nobody can change them. */
  readonly packed: Packed | undefined;
  /** The arguments are one `Chunk`, and the function is its mapper. */
  readonly isChunk: boolean;
  /**
   * Set here before the error: of a chunk which of its items failed, of a stream `failedAtEnd`. Else below 0.
   */
  failedAt: number;
}

const noParcels: readonly Parcel[] = [];

/** What goes before the frame of a call, in the order in which it is read. */
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

/** Something in it leaves this thread with it, so it goes once. */
export function isOneWay(call: Call): boolean {
  return parcelsOf(call).some(({ transfer }) => transfer.length > 0);
}
