// What a shared worker and whoever started it tell each other, as JSON over a socket pair.

import { CodedError } from '../errors.js';

/** What a shared worker is started with, as its one argument. Descriptors by their numbers there. */
export interface SharedWorkerTicket {
  readonly kind: 'shared-worker';
  readonly parentPid: number;
  /** The worker may go on for so long when its parent has ended, in ms. */
  readonly orphanMs: number;
  /** Its number in `Turns`. */
  readonly worker: number;
  readonly channel: unknown;
  /** Where the descriptors of places come from. */
  readonly controlSocketFd: number;
  /** The memory of `Turns`. */
  readonly turnsFd: number;
}

export type ToSharedWorker =
  /** A parent, in the process `pid`, has a place; the descriptors of its channel were sent ahead. */
  | { readonly type: 'join'; readonly place: number; readonly pid: number }
  /** It has it no more. */
  | { readonly type: 'part'; readonly place: number }
  /** All parents are to go elsewhere, once it has answered what they have sent. */
  | { readonly type: 'retire' };

/** The place is empty: its parent has closed the channel, or `part` was done. */
export interface FromSharedWorker {
  readonly type: 'parted';
  readonly place: number;
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

function placeOf(fields: ReadonlyMap<string, unknown>): number {
  const place = fields.get('place');
  if (typeof place !== 'number' || !Number.isInteger(place) || place < 1) throw unknownMessage();
  return place;
}

/** Throws `WORKER_PROTOCOL`; so do those below. */
export function parseToSharedWorker(message: unknown): ToSharedWorker {
  const fields = fieldsOf(message);
  const type = fields.get('type');
  const pid = fields.get('pid');
  if (type === 'retire') return { type };
  const place = placeOf(fields);
  if (type === 'part') return { type, place };
  if (type === 'join' && typeof pid === 'number') return { type, place, pid };
  throw unknownMessage();
}

export function parseFromSharedWorker(message: unknown): FromSharedWorker {
  const fields = fieldsOf(message);
  if (fields.get('type') !== 'parted') throw unknownMessage();
  return { type: 'parted', place: placeOf(fields) };
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
    turnsFd: number('turnsFd'),
  };
}
