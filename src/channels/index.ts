// Two-way paths for frames between this thread and a worker, and the values in them.

import { CodedError } from '../errors.js';
import { checkBuffers } from './bytes.js';
import { acceptMemory, offerMemory } from './memory/index.js';
import { parseTicket } from './protocol.js';
import { acceptShm, offerIsolated, offerShm } from './shm/index.js';
import { acceptSocket, offerSocket } from './socket/index.js';
import type { ChannelEnd, ChannelKind, ChannelOffer } from './types.js';

export { ByteReader, ByteWriter } from './bytes.js';
export {
  Codec,
  type CodecOptions,
  type Encoded,
  isImmutable,
  type Packed,
  type SlowCodec,
} from './codec/index.js';
export {
  acceptFromProgram,
  type BlocksShare,
  type MemberName,
  Members,
  memberFdCount,
  offerToProgram,
  parentBlocks,
  shareBlocks,
} from './shm/index.js';
export { overSocket, overStream } from './socket/index.js';
export type {
  Block,
  BlockStore,
  BodyWriter,
  Channel,
  ChannelEnd,
  ChannelKind,
  ChannelOffer,
  ChannelTicket,
  Claims,
  FrameListener,
  RefTransfer,
  SendOutcome,
} from './types.js';
export { Wire, type WireListener } from './wire.js';

export interface OfferOptions {
  readonly worker: 'process' | 'thread';
  /** Wait a few microseconds awake before sleeping; only `shm` does. */
  readonly spin: boolean;
  /** True: the worker is a process that is not trusted, and shares no memory but its own rings. */
  readonly isIsolated?: boolean;
  /** True: an isolated worker that runs on a kernel of its own. */
  readonly isGuest?: boolean;
  /** A larger frame of a worker over a socket or of an isolated one ends the channel; by default none is too large. */
  readonly maxFrameBytes?: number | undefined;
}

/**
 * Makes the parent's half of a new channel. Throws CHANNEL_UNAVAILABLE when this kind cannot work here,
 * INTERNAL_STATE when no channel can.
 */
export function offerChannel(kind: ChannelKind, options: OfferOptions): ChannelOffer {
  const { worker, spin, isIsolated = false, isGuest = false, maxFrameBytes } = options;
  checkBuffers();
  if (kind === 'shm' && isIsolated) {
    return offerIsolated({ spin, isGuest, maxFrameBytes: maxFrameBytes ?? Infinity });
  }
  if (kind === 'shm') return offerShm({ worker, spin });
  if (kind === 'socket' && worker === 'process') return offerSocket(maxFrameBytes);
  if (kind === 'memory' && worker === 'thread') return offerMemory();
  const message = `a ${worker} worker cannot have a ${kind} channel: leave channel at 'auto'`;
  throw new CodedError('CHANNEL_UNAVAILABLE', message);
}

/** Makes the worker's half. Throws WORKER_PROTOCOL for an invalid ticket, CHANNEL_UNAVAILABLE. */
export function acceptChannel(ticket: unknown): ChannelEnd {
  const parsed = parseTicket(ticket);
  switch (parsed.kind) {
    case 'socket':
      return acceptSocket();
    case 'memory':
      return acceptMemory(parsed.port);
    case 'shm':
      return acceptShm(parsed);
  }
}
