// The shm channel: frames between this thread and one worker over shared memory, for process workers and
// thread workers alike. The parent offers, the worker accepts; descriptors travel as inherited `stdio`
// (process) or as plain numbers (thread). A worker that is not trusted shares the segment alone, and no arena.
// `docs/design/shared-memory.md` states the protocol.

import { ownOf } from '../../lib/index.js';
import {
  callNative,
  type NativeBinding,
  type NativeDescriptors,
  requireNative,
} from '../../native.js';
import type { BlockStore, ChannelOffer, ChannelTicket } from '../types.js';
import { type ArenaShare, adoptArena, shareParentArena } from './arena.js';
import { countOfWorker, ShmBlocks } from './blocks.js';
import type { ShmChannel } from './channel.js';
import {
  defaultRingBytes,
  maySpin,
  memoryOf,
  openEnd,
  openIsolatedEnd,
  type ShmEnd,
} from './end.js';
import { eventLoop } from './event-loop.js';
import { type IsolatedTicket, parseShmTicket, type ShmTicket } from './ticket.js';

export interface ShmOptions {
  readonly worker: 'process' | 'thread';
  /** True: either side may spin for a moment before it sleeps. */
  readonly spin: boolean;
  /** Size of each ring, a power of two from 1 KiB to 64 MiB. */
  readonly ringBytes?: number;
  /** The number of tasks that may be in flight with claims. */
  readonly slotCount?: number;
}

/** An offer whose `open` gives an shm end. */
export interface ShmOffer extends ChannelOffer {
  open(): ShmEnd;
}

const defaultSlotCount = 1024;
/** The first descriptor in `stdio` of a process worker behind stdin, stdout and stderr. */
const firstPassedFd = 3;

/** Throws `NATIVE_MISSING` or `NATIVE_REFUSED` where shared memory cannot be had. */
export function offerShm(options: ShmOptions): ShmOffer {
  const binding = requireNative();
  const fds = callNative(() => new binding.NativeDescriptors());
  const arena = shareParentArena();
  try {
    return callNative(() => makeOffer(binding, fds, arena, options));
  } catch (error) {
    fds.closeAll();
    arena.leave();
    throw error;
  }
}

/** Descriptors of an offer, as numbers of this process. */
interface Passed {
  readonly segment: number;
  readonly arena: number;
  readonly bell: number;
  readonly peerBell: number;
}

/** A process worker uses their positions in `stdio`, a thread the parent's numbers. */
function makeTicket({ worker, spin }: ShmOptions, passed: Passed): ShmTicket {
  if (worker === 'thread') return { kind: 'shm', worker, ...passed, spin };
  const at = firstPassedFd;
  return { kind: 'shm', worker, segment: at, arena: at + 1, bell: at + 2, peerBell: at + 3, spin };
}

function makeOffer(
  binding: NativeBinding,
  fds: NativeDescriptors,
  arena: ArenaShare,
  options: ShmOptions,
): ShmOffer {
  const { ringBytes = defaultRingBytes, slotCount = defaultSlotCount } = ownOf(options);
  const spin = maySpin(binding, options.spin);
  const isProcess = options.worker === 'process';
  const { native: loop } = eventLoop();
  const owner = arena.native.takeOwner();
  const segmentFd = fds.createSegment(ringBytes, slotCount, owner, arena.table.owner);
  const segment = binding.NativeSegment.open(fds.release(fds.duplicate(segmentFd)));
  // Here and not in `open`: a runtime that forbids such buffers refuses the offer.
  const memory = memoryOf(segment);
  const workerBell = fds.createEventfd();
  const parentBell = loop.holdBell();
  // A process gets copies of what is open here. A thread makes its own copies of what is kept open
  // for it until it has ended: it may start late, or never.
  const keep = (fd: number) => (isProcess ? fd : fds.duplicate(fd));
  const passed: Passed = {
    segment: segmentFd,
    arena: keep(arena.native.fd()),
    bell: keep(workerBell),
    peerBell: keep(parentBell),
  };
  const blocks = new ShmBlocks(arena.table, countOfWorker(owner, true));
  const onPeerEnded = (): void => {
    fds.closeAll();
    arena.table.workerEnded(owner, blocks);
  };
  return {
    ticket: { ...makeTicket({ ...options, spin }, passed) },
    stdio: isProcess ? [passed.segment, passed.arena, passed.bell, passed.peerBell] : [],
    transfer: [],
    open() {
      try {
        const peerBell = fds.release(workerBell);
        const side = { isParent: true, bell: -1, peerBell, spin, onPeerEnded };
        return openEnd({ segment, memory, arena, blocks, ...side });
      } finally {
        loop.releaseBell();
        if (isProcess) fds.closeAll();
      }
    },
    discard() {
      loop.releaseBell();
      onPeerEnded();
      arena.leave();
    },
  };
}

export interface IsolatedOptions {
  /** True: either side may spin for a moment before it sleeps. */
  readonly spin: boolean;
  /** Maximum size of a frame of the worker, in bytes; a larger one ends the channel. */
  readonly maxFrameBytes: number;
  /** Size of each ring, a power of two from 1 KiB to 64 MiB. */
  readonly ringBytes?: number;
  /** True: the worker runs on a kernel of its own. */
  readonly isGuest?: boolean;
}

/** A core that no machine has: a guest publishes it, so that its peer never takes it for its own. */
const guestCore = 1_000_000;
/** Larger than the ring of other workers, whose large bodies lie in the arena. */
const isolatedRingBytes = 1024 * 1024;

/** Offers a channel to a process that is not trusted. Throws `NATIVE_MISSING`, `NATIVE_REFUSED`. */
export function offerIsolated(options: IsolatedOptions): ShmOffer {
  const { ringBytes = isolatedRingBytes, maxFrameBytes, isGuest = false } = ownOf(options);
  const binding = requireNative();
  const fds = callNative(() => new binding.NativeDescriptors());
  const spin = maySpin(binding, options.spin);
  try {
    return callNative(() => {
      const segmentFd = fds.createSegment(ringBytes, defaultSlotCount, 0, 0);
      const segment = binding.NativeSegment.open(fds.release(fds.duplicate(segmentFd)));
      const memory = memoryOf(segment);
      const [ours = -1, theirs = -1] = fds.createSocketPair();
      const ticket: IsolatedTicket = {
        kind: 'shm',
        worker: 'isolated',
        segment: firstPassedFd,
        bell: firstPassedFd + 1,
        spin,
        guest: isGuest
          ? { segmentBytes: segment.sizeBytes, coreCount: binding.allowedCores().length }
          : undefined,
      };
      return {
        ticket: { ...ticket },
        stdio: [segmentFd, theirs],
        transfer: [],
        open() {
          const bell = fds.release(ours);
          fds.closeAll();
          const side = { isParent: true, bell, spin, maxBodyBytes: maxFrameBytes };
          return openIsolatedEnd({ segment, memory, ...side });
        },
        discard: () => fds.closeAll(),
      };
    });
  } catch (error) {
    fds.closeAll();
    throw error;
  }
}

/** This thread's blocks for a user other than a channel: a pool's packer, `shared()`. */
export interface BlocksShare {
  readonly blocks: BlockStore;
  leave(): void;
}

/** Throws `NATIVE_MISSING`, `NATIVE_REFUSED`. Blocks that are held outlive `leave`. */
export function shareBlocks(): BlocksShare {
  const arena = shareParentArena();
  return { blocks: arena.blocks, leave: () => arena.leave() };
}

/** Makes the worker's end. Throws `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `CHANNEL_UNAVAILABLE`. */
export function acceptShm(ticket: ChannelTicket): ShmEnd {
  const parsed = parseShmTicket(ticket);
  if (parsed.worker === 'isolated') return acceptIsolated(parsed);
  const { worker, spin, ...passed } = parsed;
  const binding = requireNative();
  const fds = callNative(() => new binding.NativeDescriptors());
  const take = (fd: number) => (worker === 'process' ? fd : fds.release(fds.duplicate(fd)));
  return callNative(() => {
    const segment = binding.NativeSegment.open(take(passed.segment));
    const arena = adoptArena(take(passed.arena), segment.owner);
    const bells = { bell: take(passed.bell), peerBell: take(passed.peerBell) };
    const side = { isParent: false, ...bells, spin, onPeerEnded() {} };
    const blocks = new ShmBlocks(arena.table, countOfWorker(segment.owner, false));
    return openEnd({ segment, memory: memoryOf(segment), arena, blocks, ...side });
  });
}

function acceptIsolated({ segment: fd, bell, spin, guest }: IsolatedTicket): ShmEnd {
  const binding = requireNative();
  return callNative(() => {
    if (guest !== undefined) binding.setGuestCores(guestCore, guest.coreCount);
    const segment =
      guest === undefined
        ? binding.NativeSegment.open(fd)
        : binding.NativeSegment.openInGuest(fd, guest.segmentBytes);
    const side = { isParent: false, bell, spin, maxBodyBytes: Infinity };
    return openIsolatedEnd({ segment, memory: memoryOf(segment), ...side });
  });
}

export { parentBlocks } from './arena.js';
export { Members, memberFdCount } from './members.js';
export type { MemberName } from './orphan-reclaim.js';
export { acceptFromProgram, offerToProgram } from './programs.js';
export type { ShmChannel, ShmEnd };
