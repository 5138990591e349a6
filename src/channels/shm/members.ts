// Members: event loops that have channels to each other over one arena, that of the process that brought them
// together (the arena's owner). Each is a parent with numbers of its own, for itself and for its workers. So
// blocks pass between any two without a copy. Two members have one channel; either offers it to the other.
// Not here: the membership, and how descriptors get from one to another (serve/supervisor/mesh.ts).

import {
  callNative,
  type NativeBinding,
  type NativeDescriptors,
  requireNative,
} from '../../native.js';
import type { ChannelEnd } from '../types.js';
import { type ArenaShare, joinArena, shareParentArena } from './arena.js';
import { countAll, ShmBlocks } from './blocks.js';
import { defaultRingBytes, type EndParts, maySpin, memoryOf, openEnd } from './end.js';
import { eventLoop } from './event-loop.js';
import { type MemberName, MemberRefTransfer, OrphanReclaim } from './orphan-reclaim.js';

/**
 * The descriptors of a channel between members: the segment, the bell of the accepting member, the other's.
 */
export const memberFdCount = 3;

/** One end, and the descriptors of the other, which are the caller's. */
export interface MemberOffer {
  readonly end: ChannelEnd;
  readonly fds: readonly number[];
}

/** The members, as one of them uses them. */
export class Members {
  readonly #arena: ArenaShare;
  readonly #self: MemberName;
  readonly #reclaim: OrphanReclaim;

  private constructor(arena: ArenaShare, self: MemberName, onReclaimed: () => void) {
    this.#arena = arena;
    this.#self = self;
    this.#reclaim = new OrphanReclaim(arena.table, self, onReclaimed);
  }

  /**
   * Brings members together, in the arena of this process. Calls `onReclaimed` whenever the memory and
   * references of members that have ended were reclaimed. Throws `NATIVE_MISSING`, `NATIVE_REFUSED`.
   */
  static found(onReclaimed: () => void): Members {
    return new Members(shareParentArena(), { id: 0, owner: 0 }, onReclaimed);
  }

  /** Makes this thread the member `self`, for its life, in the arena behind `fd`, which is taken over. */
  static join(fd: number, self: MemberName): Members {
    return new Members(joinArena(fd, self.owner), self, () => {});
  }

  /** The descriptor that joining members get; it stays the arena's. */
  get arenaFd(): number {
    return callNative(() => this.#arena.native.fd());
  }

  /**
   * Takes numbers for a joining member: returns the first. Throws `NATIVE_REFUSED`. Only in the arena's
   * owner.
   */
  takeOwner(): number {
    return callNative(() => this.#arena.native.takeMember());
  }

  /** Throws `NATIVE_REFUSED`. */
  offer(to: MemberName): MemberOffer {
    const binding = requireNative();
    const fds = callNative(() => new binding.NativeDescriptors());
    const arena = this.#arena.share();
    const { native: loop } = eventLoop();
    const parentBell = loop.holdBell();
    try {
      return callNative(() => this.#makeOffer(to, binding, fds, arena, parentBell));
    } catch (error) {
      arena.leave();
      throw error;
    } finally {
      fds.closeAll();
      loop.releaseBell();
    }
  }

  #makeOffer(
    to: MemberName,
    binding: NativeBinding,
    fds: NativeDescriptors,
    arena: ArenaShare,
    parentBell: number,
  ): MemberOffer {
    const segmentFd = fds.createSegment(defaultRingBytes, 0, to.owner, this.#self.owner);
    const segment = binding.NativeSegment.open(fds.release(fds.duplicate(segmentFd)));
    const bell = fds.createEventfd();
    const passed = [segmentFd, bell, parentBell].map((fd) => fds.duplicate(fd));
    const bells = { bell: -1, peerBell: fds.release(bell) };
    const spin = maySpin(binding, true);
    const end = this.#open(to, {
      segment,
      memory: memoryOf(segment),
      arena,
      isParent: true,
      ...bells,
      spin,
    });
    return { end, fds: passed.map((fd) => fds.release(fd)) };
  }

  /** Takes over the descriptors. Throws `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `NATIVE_REFUSED`. */
  accept(from: MemberName, fds: readonly number[]): ChannelEnd {
    const [segmentFd = -1, bell = -1, peerBell = -1] = fds;
    const binding = requireNative();
    return callNative(() => {
      const segment = binding.NativeSegment.open(segmentFd);
      const memory = memoryOf(segment);
      const spin = maySpin(binding, true);
      const arena = this.#arena.share();
      return this.#open(from, { segment, memory, arena, isParent: false, bell, peerBell, spin });
    });
  }

  #open(peer: MemberName, parts: Omit<EndParts, 'blocks' | 'onPeerEnded'>): ChannelEnd {
    const blocks = new ShmBlocks(this.#arena.table, countAll);
    const refTransfer = new MemberRefTransfer(peer, blocks, this.#reclaim);
    const end = openEnd({ ...parts, blocks, onPeerEnded() {} });
    return { ...end, claims: undefined, refTransfer };
  }

  /**
   * `member` has ended; each of `survivors`, of which this is one, gets the same call. None of its memory is
   * freed before `whenOver` resolves here, nor that of members that end later.
   */
  ended(member: MemberName, survivors: readonly MemberName[], whenOver?: Promise<void>): void {
    this.#reclaim.ended(member, survivors, { hasWorkers: whenOver !== undefined });
    void whenOver?.then(() => this.#reclaim.workersEnded(member.id));
  }

  /** True: no member has ended whose memory may still have unregistered references. */
  get hasReclaimedAll(): boolean {
    return this.#reclaim.isComplete;
  }

  /** The last member has left. */
  leave(): void {
    this.#arena.leave();
  }
}
