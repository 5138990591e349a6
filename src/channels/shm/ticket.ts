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
  /** Set for a worker on a kernel of its own. */
  readonly guest?: GuestFacts | undefined;
}

/** Facts that a guest kernel does not have. */
export interface GuestFacts {
  readonly segmentBytes: number;
  /** The number of cores of the machine outside. */
  readonly coreCount: number;
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
    const passed = { segment: fd('segment'), bell: fd('bell') };
    return { kind: 'shm', worker: 'isolated', ...passed, spin, guest: guestFacts(ticket['guest']) };
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

function guestFacts(given: unknown): GuestFacts | undefined {
  if (given === undefined) return undefined;
  const count = (name: string): number => {
    const value: unknown = Reflect.get(Object(given), name);
    if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value;
    throw new CodedError('CHANNEL_UNAVAILABLE', `the ticket's ${name} is ${String(value)}`);
  };
  return { segmentBytes: count('segmentBytes'), coreCount: count('coreCount') };
}
