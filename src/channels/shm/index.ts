// The shm channel: frames between this thread and one host over shared memory, for process hosts and
// thread hosts alike. The parent offers, the host accepts; descriptors travel as inherited `stdio`
// (process) or as plain numbers (thread). `docs/design/shared-memory.md` states the protocol.

import { CodedError } from '../../errors.js';
import {
  callNative,
  type NativeBinding,
  type NativeSegment,
  requireNative,
} from '../../native.js';
import type { ChannelEnd, ChannelOffer, ChannelTicket } from '../types.js';
import { ShmChannel } from './channel.js';
import { SegmentClaims } from './claims.js';
import { eventLoop } from './event-loop.js';
import { sideState, wordAt } from './layout.js';
import type { Spill } from './spill.js';
import { parseShmTicket, type ShmTicket } from './ticket.js';

export interface ShmOptions {
  readonly host: 'process' | 'thread';
  /** Whether either side may spin for a moment before it sleeps. */
  readonly spin: boolean;
  /** Size of each ring, a power of two from 1 KiB to 64 MiB. */
  readonly ringBytes?: number;
  /** How many tasks may be in flight with claims. */
  readonly slotCount?: number;
}

/** A channel end over shared memory. */
export interface ShmEnd extends ChannelEnd {
  readonly channel: ShmChannel;
}

/** An offer whose `open` gives an shm end. */
export interface ShmOffer extends ChannelOffer {
  open(): ShmEnd;
}

const defaultRingBytes = 128 * 1024;
const defaultSlotCount = 1024;
/** Where `stdio` of a process host goes on after stdin, stdout and stderr. */
const firstPassedFd = 3;

const noSpill: Spill = {
  write() {
    throw new CodedError('SHARED_MEMORY_FULL', 'the frame is larger than the ring takes');
  },
  read: () => undefined,
  end() {},
};

function openEnd(
  segment: NativeSegment,
  isParent: boolean,
  bell: number,
  peerBell: number,
  spin: boolean,
): ShmEnd {
  const loop = eventLoop();
  const end = callNative(() => loop.native.attach(segment, isParent, bell, peerBell, spin));
  const buffer = segment.buffer();
  const memory = { bytes: Buffer.from(buffer), words: new Int32Array(buffer) };
  return {
    channel: new ShmChannel({ segment, memory, loop, end, isParent, spill: noSpill }),
    claims: new SegmentClaims(memory.words, segment.slotCount),
    blocks: undefined,
    owner: segment.owner,
  };
}

/** Descriptors that an offer holds until it is opened or discarded, the parent's bell included. */
class OfferedFds {
  readonly #binding: NativeBinding;
  #fds: number[] = [];
  #holdsBell = false;

  constructor(binding: NativeBinding) {
    this.#binding = binding;
  }

  holdBell(): number {
    const fd = eventLoop().native.holdBell();
    this.#holdsBell = true;
    return fd;
  }

  releaseBell(): void {
    if (this.#holdsBell) eventLoop().native.releaseBell();
    this.#holdsBell = false;
  }

  add(fd: number): number {
    this.#fds.push(fd);
    return fd;
  }

  /** `fd` now belongs to somebody else. */
  release(fd: number): void {
    this.#fds = this.#fds.filter((held) => held !== fd);
  }

  closeAll(): void {
    for (const fd of this.#fds) this.#binding.closeFd(fd);
    this.#fds = [];
    this.releaseBell();
  }
}

/** Throws `NATIVE_MISSING` or `NATIVE_REFUSED` where shared memory cannot be had. */
export function offerShm(options: ShmOptions): ShmOffer {
  const binding = requireNative();
  const fds = new OfferedFds(binding);
  try {
    return callNative(() => makeOffer(binding, fds, options));
  } catch (error) {
    fds.closeAll();
    throw error;
  }
}

let nextOwner = 1;

function makeOffer(binding: NativeBinding, fds: OfferedFds, options: ShmOptions): ShmOffer {
  const { ringBytes = defaultRingBytes, slotCount = defaultSlotCount, spin } = options;
  const parentBell = fds.holdBell();
  const segmentFd = fds.add(binding.createSegment(ringBytes, slotCount, nextOwner++));
  const segment = binding.NativeSegment.open(binding.duplicateFd(segmentFd));
  const hostBell = fds.add(binding.createEventfd());
  const isProcess = options.host === 'process';
  const passed = isProcess
    ? { segment: segmentFd, bell: hostBell, peerBell: parentBell }
    : {
        segment: segmentFd,
        bell: fds.add(binding.duplicateFd(hostBell)),
        peerBell: fds.add(binding.duplicateFd(parentBell)),
      };
  const stdio = isProcess ? [passed.segment, passed.segment, passed.bell, passed.peerBell] : [];
  const ticket: ShmTicket = isProcess
    ? {
        kind: 'shm',
        segment: firstPassedFd,
        arena: firstPassedFd + 1,
        bell: firstPassedFd + 2,
        peerBell: firstPassedFd + 3,
        spin,
      }
    : { kind: 'shm', ...passed, arena: passed.segment, spin };
  return {
    ticket: { ...ticket },
    stdio,
    transfer: [],
    open() {
      fds.release(hostBell);
      try {
        return openEnd(segment, true, -1, hostBell, spin);
      } finally {
        // A process has its own copies by now; a thread takes these over when it accepts.
        if (isProcess) fds.closeAll();
        else fds.releaseBell();
      }
    },
    discard() {
      fds.closeAll();
    },
  };
}

/** The host's end. Throws `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `CHANNEL_UNAVAILABLE`. */
export function acceptShm(ticket: ChannelTicket): ShmEnd {
  const { segment, bell, peerBell, spin } = parseShmTicket(ticket);
  const binding = requireNative();
  const opened = callNative(() => binding.NativeSegment.open(segment));
  return openEnd(opened, false, bell, peerBell, spin);
}

export type { ShmChannel };
export { sideState, wordAt };
