// The entry of a taken lock, in JSON.

import { CodedError } from '../errors.js';

export interface Holder {
  /** Id of this lease, unique. */
  readonly id: string;
  /** Name of the owner's process, as its store made it. */
  readonly owner: string;
  /** Time after which the lock is free if the entry does not change, in ms. */
  readonly leaseMs: number;
}

export function writeHolder(holder: Holder): Buffer {
  return Buffer.from(JSON.stringify(holder));
}

/** Throws `TRANSFER_CORRUPT`. */
export function parseHolder(bytes: Uint8Array, lock: string): Holder {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString());
  } catch {
    // refused below
  }
  const { id, owner, leaseMs } = Object(value);
  if (typeof id === 'string' && typeof owner === 'string' && Number.isSafeInteger(leaseMs)) {
    return value as Holder;
  }
  throw new CodedError('TRANSFER_CORRUPT', `the entry of the lock "${lock}" names no owner`);
}
