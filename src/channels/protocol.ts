// The ticket that a worker is started with: plain data from JSON or from `workerData`. Parsed here alone.

import { CodedError } from '../errors.js';
import type { ChannelTicket } from './types.js';

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Throws WORKER_PROTOCOL. The fields of an `shm` ticket are checked in shm/. */
export function parseTicket(ticket: unknown): ChannelTicket {
  if (isObject(ticket)) {
    if (ticket.kind === 'socket') return { kind: 'socket' };
    if (ticket.kind === 'shm') return { ...ticket, kind: 'shm' };
    if (ticket.kind === 'memory' && ticket.port instanceof MessagePort) {
      return { kind: 'memory', port: ticket.port };
    }
  }
  throw new CodedError('WORKER_PROTOCOL', 'a worker was started without a channel of a known kind');
}
