// Event loops that have channels to each other over one arena: that of the process that has brought them
// together, in which each is a parent with numbers of its own, for itself and for its workers. So blocks
// pass between any two without a copy. Two members have one channel; either offers it to the other.
// Not here: who is there, and how descriptors get from one to another (serve/mesh.ts).

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

/** Descriptors of a channel between members: the segment, the bell of whom it is offered to, the other's. */
export const memberFdCount = 3;

/** One end, and the descriptors of the other, which are the caller's. */
export interface MemberOffer {
  readonly end: ChannelEnd;
  readonly fds: readonly number[];
}

/** As one of them sees them. */
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
   * Brings members together, in the arena of this process; `onReclaimed` is called whenever what one that has
   * ended held was taken back. Throws `NATIVE_MISSING`, `NATIVE_REFUSED`.
   */
  static found(onReclaimed: () => void): Members {
    return new Members(shareParentArena(), { id: 0, owner: 0 }, onReclaimed);
  }

  /** This thread becomes `self`, in the arena behind `fd`, which is taken over, for its life. */
  static join(fd: number, self: MemberName): Members {
    return new Members(joinArena(fd, self.owner), self, () => {});
  }

  /** The descriptor for those who join; the arena's own. */
  get arenaFd(): number {
    return callNative(() => this.#arena.native.fd());
  }

  /** Numbers for one who joins: the first of them. Throws `NATIVE_REFUSED`. Only for who has founded. */
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

  /** The descriptors are taken over. Throws `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `NATIVE_REFUSED`. */
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
    this.#reclaim.add(refTransfer);
    return { ...end, claims: undefined, refTransfer };
  }

  /**
   * `member` has ended; all of `survivors`, of which this is one, are told the same. Nobody takes its memory
   * for free before `whenOver` resolves here.
   */
  ended(member: MemberName, survivors: readonly MemberName[], whenOver?: Promise<void>): void {
    this.#reclaim.ended(member, survivors, whenOver);
  }

  /** Nobody has ended whose memory may still be referred to by somebody unknown. */
  get hasReclaimedAll(): boolean {
    return this.#reclaim.isComplete;
  }

  /** There are no members any more. */
  leave(): void {
    this.#arena.leave();
  }
}
