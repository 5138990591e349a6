// The shm channel: frames between this thread and one host over shared memory, for process hosts and
// thread hosts alike. The parent offers, the host accepts; descriptors travel as inherited `stdio`
// (process) or as plain numbers (thread). `docs/design/shared-memory.md` states the protocol.

import { callNative, type NativeBinding, type NativeSegment, requireNative } from '../../native.js';
import type { BlockStore, ChannelEnd, ChannelOffer, ChannelTicket } from '../types.js';
import { type ArenaShare, adoptArena, shareParentArena } from './arena.js';
import { ShmBlocks } from './blocks.js';
import { ShmChannel } from './channel.js';
import { SegmentClaims } from './claims.js';
import { eventLoop } from './event-loop.js';
import { type SegmentMemory, sideState, wordAt } from './layout.js';
import { Spill } from './spill.js';
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
  /** The segment itself: tests forge numbers in it. */
  readonly memory: SegmentMemory;
  readonly peerExited: () => void;
}

/** An offer whose `open` gives an shm end. */
export interface ShmOffer extends ChannelOffer {
  open(): ShmEnd;
}

const defaultRingBytes = 128 * 1024;
const defaultSlotCount = 1024;
/** Where `stdio` of a process host goes on after stdin, stdout and stderr. */
const firstPassedFd = 3;

/** What an end is made of, on either side. */
interface EndParts {
  readonly segment: NativeSegment;
  readonly arena: ArenaShare;
  readonly isParent: boolean;
  /** This side's eventfd, -1 for the loop's own, and the peer's; both are taken over. */
  readonly bell: number;
  readonly peerBell: number;
  readonly spin: boolean;
  readonly onPeerEnded: () => void;
}

function openEnd(parts: EndParts): ShmEnd {
  const { segment, arena, isParent, onPeerEnded } = parts;
  const loop = eventLoop();
  const end = callNative(() =>
    loop.native.attach(segment, isParent, parts.bell, parts.peerBell, parts.spin),
  );
  const memory = memoryOf(segment);
  const spill = new Spill(arena, isParent ? segment.owner : 0);
  const channel = new ShmChannel({ segment, memory, loop, end, isParent, spill, onPeerEnded });
  return {
    channel,
    memory,
    peerExited: () => channel.peerExited(),
    claims: new SegmentClaims(memory.words, segment.slotCount),
    blocks: new ShmBlocks(arena.table),
    owner: segment.owner,
  };
}

function memoryOf(segment: NativeSegment): SegmentMemory {
  const buffer = callNative(() => segment.buffer());
  return { bytes: Buffer.from(buffer), words: new Int32Array(buffer) };
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
  const arena = shareParentArena();
  try {
    return callNative(() => makeOffer(binding, fds, arena, options));
  } catch (error) {
    fds.closeAll();
    arena.leave();
    throw error;
  }
}

/** What the host finds: its descriptors by the numbers that it will know them by. */
function makeTicket(passed: Omit<ShmTicket, 'kind' | 'spin'>, options: ShmOptions): ShmTicket {
  if (options.host === 'thread') return { kind: 'shm', ...passed, spin: options.spin };
  const [segment, arena, bell, peerBell] = [0, 1, 2, 3].map((place) => firstPassedFd + place);
  const numbers = { segment, arena, bell, peerBell };
  return parseShmTicket({ kind: 'shm', ...numbers, spin: options.spin });
}

function makeOffer(
  binding: NativeBinding,
  fds: OfferedFds,
  arena: ArenaShare,
  options: ShmOptions,
): ShmOffer {
  const { ringBytes = defaultRingBytes, slotCount = defaultSlotCount, spin } = options;
  const isProcess = options.host === 'process';
  const owner = arena.native.takeOwner();
  const segmentFd = fds.add(binding.createSegment(ringBytes, slotCount, owner));
  const segment = binding.NativeSegment.open(binding.duplicateFd(segmentFd));
  const hostBell = fds.add(binding.createEventfd());
  // A process gets copies of what is open here; a thread gets descriptors of its own.
  const copy = (fd: number) => (isProcess ? fd : fds.add(binding.duplicateFd(fd)));
  const passed = {
    segment: segmentFd,
    arena: copy(arena.native.fd()),
    bell: copy(hostBell),
    peerBell: copy(fds.holdBell()),
  };
  const giveBack = (): void => {
    // The thread has not come so far as to take its descriptors over.
    const hasAccepted = memoryOf(segment).words[wordAt.hostState] !== sideState.absent;
    if (!isProcess && !hasAccepted) fds.closeAll();
    arena.table.ownerEnded(owner);
  };
  return {
    ticket: { ...makeTicket(passed, options) },
    stdio: isProcess ? [passed.segment, passed.arena, passed.bell, passed.peerBell] : [],
    transfer: [],
    open() {
      fds.release(hostBell);
      try {
        const parts = { segment, arena, isParent: true, bell: -1, peerBell: hostBell, spin };
        return openEnd({ ...parts, onPeerEnded: giveBack });
      } finally {
        if (isProcess) fds.closeAll();
        else fds.releaseBell();
      }
    },
    discard() {
      fds.closeAll();
      arena.table.ownerEnded(owner);
      arena.leave();
    },
  };
}

/** The parent's blocks for a user other than a channel: a pool's packer, `shared()`. */
export interface BlocksShare {
  readonly blocks: BlockStore;
  leave(): void;
}

/** Throws `NATIVE_MISSING`, `NATIVE_REFUSED`. Blocks that are held outlive `leave`. */
export function shareBlocks(): BlocksShare {
  const arena = shareParentArena();
  return { blocks: new ShmBlocks(arena.table), leave: () => arena.leave() };
}

/** The host's end. Throws `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `CHANNEL_UNAVAILABLE`. */
export function acceptShm(ticket: ChannelTicket): ShmEnd {
  const { segment: segmentFd, arena: arenaFd, bell, peerBell, spin } = parseShmTicket(ticket);
  const binding = requireNative();
  const segment = callNative(() => binding.NativeSegment.open(segmentFd));
  const arena = adoptArena(arenaFd, segment.owner);
  const onPeerEnded = (): void => {};
  return openEnd({ segment, arena, isParent: false, bell, peerBell, spin, onPeerEnded });
}

export type { ShmChannel };
