// One end of a channel over shared memory, made of what its two sides have agreed on. Not here: who
// offers it to whom, and how descriptors get there (index.ts for workers, members.ts for event loops).

import { callNative, type NativeBinding, type NativeSegment } from '../../native.js';
import type { BlockStore, ChannelEnd } from '../types.js';
import type { ArenaShare } from './arena.js';
import type { ShmBlocks } from './blocks.js';
import { ShmChannel } from './channel.js';
import { SegmentClaims } from './claims.js';
import { eventLoop } from './event-loop.js';
import type { LargeBodies } from './large-bodies.js';
import type { SegmentMemory } from './layout.js';
import { Pieces } from './pieces.js';
import { Spill } from './spill.js';

export const defaultRingBytes = 128 * 1024;

/** A channel end over shared memory. */
export interface ShmEnd extends ChannelEnd {
  readonly channel: ShmChannel;
  /** The segment itself, and where its request ring begins: tests forge numbers in it. */
  readonly memory: SegmentMemory;
  readonly requestAt: number;
  readonly peerExited: () => void;
}

/** The parts of every end, on either side. */
interface CommonParts {
  readonly segment: NativeSegment;
  readonly memory: SegmentMemory;
  readonly isParent: boolean;
  readonly spin: boolean;
}

/** The parts of an end whose peer is trusted with the same arena. */
export interface EndParts extends CommonParts {
  readonly arena: ArenaShare;
  readonly blocks: ShmBlocks;
  /** This side's eventfd, -1 for the loop's own, and the peer's; both are taken over. */
  readonly bell: number;
  readonly peerBell: number;
  readonly onPeerEnded: () => void;
}

export function openEnd(parts: EndParts): ShmEnd {
  const { segment, arena, blocks, isParent, spin } = parts;
  const end = callNative(() =>
    eventLoop().native.attach(segment, isParent, parts.bell, parts.peerBell, spin),
  );
  const large = new Spill(arena, isParent ? segment.owner : segment.parentOwner);
  return endOf(parts, {
    end,
    large,
    blocks,
    isGuarded: false,
    endsWithBell: false,
    onPeerEnded: parts.onPeerEnded,
  });
}

/** The parts of an end that shares its segment alone: of a worker that is not trusted, or of two programs. */
export interface IsolatedParts extends CommonParts {
  /** This side's end of the socket pair that is the bell; it is taken over. */
  readonly bell: number;
  /** Maximum size of a body of the peer, in bytes. */
  readonly maxBodyBytes: number;
  /** True: the peer is a program of the same user, and ends by itself. */
  readonly isProgram?: boolean;
}

export function openIsolatedEnd(parts: IsolatedParts): ShmEnd {
  const { segment, isParent, spin } = parts;
  const end = callNative(() =>
    eventLoop().native.attachStream(segment, isParent, parts.bell, spin),
  );
  const large = new Pieces(segment.ringBytes, parts.maxBodyBytes);
  const { isProgram = false } = parts;
  const isGuarded = isParent && !isProgram; // the worker has no reason to distrust its parent
  const endsWithBell = isGuarded || isProgram;
  return endOf(parts, {
    end,
    large,
    blocks: undefined,
    isGuarded,
    endsWithBell,
    onPeerEnded: () => {},
  });
}

interface OwnParts {
  /** The number of this end in the native loop. */
  readonly end: number;
  readonly large: LargeBodies;
  readonly blocks: BlockStore | undefined;
  /** True: the peer is not trusted. */
  readonly isGuarded: boolean;
  /** True: the peer has ended when it has closed the bell. */
  readonly endsWithBell: boolean;
  readonly onPeerEnded: () => void;
}

function endOf(
  { segment, memory, isParent }: CommonParts,
  { end, large, blocks, isGuarded, endsWithBell, onPeerEnded }: OwnParts,
): ShmEnd {
  const loop = eventLoop();
  const endWords = new Int32Array(callNative(() => loop.native.endWords(end)));
  const channel = new ShmChannel({
    segment,
    memory,
    loop,
    end,
    endWords,
    isParent,
    isGuarded,
    endsWithBell,
    large,
    onPeerEnded,
  });
  return {
    channel,
    memory,
    requestAt: segment.requestAt,
    peerExited: () => channel.peerExited(),
    hasPeerOpened: () => channel.hasPeerOpened,
    claims: new SegmentClaims(memory.words, segment.slotCount),
    blocks,
  };
}

export function memoryOf(segment: NativeSegment): SegmentMemory {
  const buffer = callNative(() => segment.buffer());
  return { bytes: Buffer.from(buffer), words: new Int32Array(buffer) };
}

let knownQuota: boolean | undefined;

/** Returns false under a CPU quota, where spinning takes time from the tasks. Called once: it reads files. */
export function maySpin(binding: NativeBinding, isWanted: boolean): boolean {
  if (!isWanted) return false;
  knownQuota ??= binding.hasCpuQuota();
  return !knownQuota;
}
