// Messages between a shared worker and the supervisor that started it, as JSON over a socket pair.

import { CodedError } from '../../errors.js';

/** The one argument of a shared worker. Descriptors have their numbers in that process. */
export interface SharedWorkerTicket {
  readonly kind: 'shared-worker';
  readonly parentPid: number;
  /** Maximum time to go on after the end of the supervisor, in ms. */
  readonly orphanMs: number;
  /** The worker's number in `ActiveLeases`. */
  readonly worker: number;
  readonly channel: unknown;
  /** Carries the descriptors of each lease. */
  readonly controlSocketFd: number;
  /** The memory of `ActiveLeases`. */
  readonly activeLeasesFd: number;
  /** The program's transactional memory. */
  readonly spaceFd: number | undefined;
}

export type ToSharedWorker =
  /** A parent, in the process `pid`, has this lease; the descriptors of its channel were sent ahead. */
  | { readonly type: 'grant'; readonly lease: number; readonly pid: number }
  /** The lease ends. */
  | { readonly type: 'release'; readonly lease: number }
  /** All parents move to other workers, once the tasks that they have sent are answered. */
  | { readonly type: 'retire' };

/** The lease has ended: its parent has closed the channel, or `release` was done. */
export interface FromSharedWorker {
  readonly type: 'released';
  readonly lease: number;
}

/** Descriptors of a channel over shared memory, in the order in which they are sent. */
export const channelFds = ['segment', 'arena', 'bell', 'peerBell'] as const;

function unknownMessage(): CodedError {
  return new CodedError(
    'WORKER_PROTOCOL',
    'a shared worker got a message that this version cannot read',
  );
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  if (typeof value !== 'object' || value === null) throw unknownMessage();
  return new Map(Object.entries(value));
}

function leaseOf(fields: ReadonlyMap<string, unknown>): number {
  const lease = fields.get('lease');
  if (typeof lease !== 'number' || !Number.isInteger(lease) || lease < 1) throw unknownMessage();
  return lease;
}

/** Throws `WORKER_PROTOCOL`; so do those below. */
export function parseToSharedWorker(message: unknown): ToSharedWorker {
  const fields = fieldsOf(message);
  const type = fields.get('type');
  const pid = fields.get('pid');
  if (type === 'retire') return { type };
  const lease = leaseOf(fields);
  if (type === 'release') return { type, lease };
  if (type === 'grant' && typeof pid === 'number') return { type, lease, pid };
  throw unknownMessage();
}

export function parseFromSharedWorker(message: unknown): FromSharedWorker {
  const fields = fieldsOf(message);
  if (fields.get('type') !== 'released') throw unknownMessage();
  return { type: 'released', lease: leaseOf(fields) };
}

export function parseSharedWorkerTicket(ticket: unknown): SharedWorkerTicket {
  const fields = fieldsOf(ticket);
  const number = (name: string): number => {
    const value = fields.get(name);
    if (typeof value !== 'number') throw unknownMessage();
    return value;
  };
  if (fields.get('kind') !== 'shared-worker') throw unknownMessage();
  return {
    kind: 'shared-worker',
    parentPid: number('parentPid'),
    orphanMs: number('orphanMs'),
    worker: number('worker'),
    channel: fields.get('channel'),
    controlSocketFd: number('controlSocketFd'),
    activeLeasesFd: number('activeLeasesFd'),
    spaceFd: fields.get('spaceFd') === undefined ? undefined : number('spaceFd'),
  };
}
