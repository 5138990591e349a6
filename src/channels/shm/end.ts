// One end of a channel over shared memory, made of what its two sides have agreed on. Not here: who
// offers it to whom, and how descriptors get there (index.ts for workers, members.ts for event loops).

import { callNative, type NativeBinding, type NativeSegment } from '../../native.js';
import type { ChannelEnd } from '../types.js';
import type { ArenaShare } from './arena.js';
import type { ShmBlocks } from './blocks.js';
import { ShmChannel } from './channel.js';
import { SegmentClaims } from './claims.js';
import { eventLoop } from './event-loop.js';
import type { SegmentMemory } from './layout.js';
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

/** The parts of an end, on either side. */
export interface EndParts {
  readonly segment: NativeSegment;
  readonly memory: SegmentMemory;
  readonly arena: ArenaShare;
  readonly blocks: ShmBlocks;
  readonly isParent: boolean;
  /** This side's eventfd, -1 for the loop's own, and the peer's; both are taken over. */
  readonly bell: number;
  readonly peerBell: number;
  readonly spin: boolean;
  readonly onPeerEnded: () => void;
}

export function openEnd(parts: EndParts): ShmEnd {
  const { segment, memory, arena, blocks, isParent, onPeerEnded } = parts;
  const loop = eventLoop();
  const end = callNative(() =>
    loop.native.attach(segment, isParent, parts.bell, parts.peerBell, parts.spin),
  );
  const refs = new Int32Array(callNative(() => loop.native.refWords(end)));
  const spill = new Spill(arena, isParent ? segment.owner : segment.parentOwner);
  const channel = new ShmChannel({
    segment,
    memory,
    loop,
    end,
    refs,
    isParent,
    spill,
    onPeerEnded,
  });
  return {
    channel,
    memory,
    requestAt: segment.requestAt,
    peerExited: () => channel.peerExited(),
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
