// The channel between two programs of one user, over a segment of their own: they share no arena, and neither has
// started the other. The bell is a socket pair, so each sees the end of the other, whatever has ended it.
// Not here: how descriptors get from one to the other (cluster/local).

import { callNative, requireNative } from '../../native.js';
import type { ChannelEnd } from '../types.js';
import { maySpin, memoryOf, openIsolatedEnd } from './end.js';

/** A program has a channel to each loop of each other one. Larger bodies go in pieces. */
const ringBytes = 256 * 1024;

/** One end, and the descriptors of the other until `closeFds`. */
export interface ProgramOffer {
  readonly end: ChannelEnd;
  readonly fds: readonly number[];
  /** Closes them here; in a thread Node would warn of a plain `closeSync`. */
  closeFds(): void;
}

/** Makes a channel, and opens this end of it. Throws `NATIVE_MISSING`, `NATIVE_REFUSED`. */
export function offerToProgram(): ProgramOffer {
  const binding = requireNative();
  const fds = callNative(() => new binding.NativeDescriptors());
  try {
    return callNative(() => {
      const segmentFd = fds.createSegment(ringBytes, 0, 0, 0);
      const segment = binding.NativeSegment.open(fds.release(fds.duplicate(segmentFd)));
      const [ours = -1, theirs = -1] = fds.createSocketPair();
      const end = openProgramEnd(segment, true, fds.release(ours));
      return { end, fds: [segmentFd, theirs], closeFds: () => fds.closeAll() };
    });
  } catch (error) {
    fds.closeAll();
    throw error;
  }
}

/**
 * Takes the descriptors of an offer, each by `release` when it is used: the segment, and this side's end of the bell.
 * The others stay the caller's. Throws `SEGMENT_VERSION`, `SEGMENT_CORRUPT`, `NATIVE_REFUSED`.
 */
export function acceptFromProgram(
  fds: readonly number[],
  release: (fd: number) => number,
): ChannelEnd {
  const [segmentFd = -1, bell = -1] = fds;
  const binding = requireNative();
  return callNative(() => {
    const segment = binding.NativeSegment.open(release(segmentFd));
    return openProgramEnd(segment, false, release(bell));
  });
}

type Segment = Parameters<typeof memoryOf>[0];

function openProgramEnd(segment: Segment, isParent: boolean, bell: number): ChannelEnd {
  const end = openIsolatedEnd({
    segment,
    memory: memoryOf(segment),
    isParent,
    isProgram: true,
    bell,
    spin: maySpin(requireNative(), true),
    maxBodyBytes: Number.POSITIVE_INFINITY,
  });
  return { ...end, claims: undefined };
}
