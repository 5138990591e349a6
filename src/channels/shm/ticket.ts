// The ticket of a worker's shm channel, and the one function that parses it.

import { CodedError } from '../../errors.js';
import type { ChannelTicket } from '../types.js';

/** The ticket of a worker that is not trusted: it shares the segment alone. Both descriptors are its own. */
export interface IsolatedTicket {
  readonly kind: 'shm';
  readonly worker: 'isolated';
  readonly segment: number;
  /** One end of the socket pair that is the bell of both sides. */
  readonly bell: number;
  readonly spin: boolean;
}

/** Descriptor numbers, valid in the worker: a process owns them, a thread has to copy them. */
export interface ShmTicket {
  readonly kind: 'shm';
  readonly worker: 'process' | 'thread';
  readonly segment: number;
  readonly arena: number;
  /** The worker's eventfd and the parent's. */
  readonly bell: number;
  readonly peerBell: number;
  readonly spin: boolean;
}

/** Throws `CHANNEL_UNAVAILABLE` when a field is missing. */
export function parseShmTicket(ticket: ChannelTicket): ShmTicket | IsolatedTicket {
  if (ticket.kind !== 'shm') {
    throw new CodedError('CHANNEL_UNAVAILABLE', `a ticket for ${ticket.kind} is not one for shm`);
  }
  const fd = (name: string): number => {
    const value = ticket[name];
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
    throw new CodedError('CHANNEL_UNAVAILABLE', `the ticket's ${name} is ${String(value)}`);
  };
  const spin = ticket['spin'] === true;
  if (ticket['worker'] === 'isolated') {
    return { kind: 'shm', worker: 'isolated', segment: fd('segment'), bell: fd('bell'), spin };
  }
  return {
    kind: 'shm',
    worker: ticket['worker'] === 'thread' ? 'thread' : 'process',
    segment: fd('segment'),
    arena: fd('arena'),
    bell: fd('bell'),
    peerBell: fd('peerBell'),
    spin,
  };
}
