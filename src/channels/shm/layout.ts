// The positions of a segment's words, as indices into an `Int32Array` over it. The same numbers as
// crates/core/src/layout.rs; test/channels/shm-golden.test.ts holds the two to each other.

const lineWords = 32;

/** Index of each hot word. */
export const wordAt = {
  requestTail: lineWords,
  requestHead: 2 * lineWords,
  replyTail: 3 * lineWords,
  replyHead: 4 * lineWords,
  parentAsleep: 5 * lineWords,
  workerAsleep: 6 * lineWords,
  parentState: 9 * lineWords,
  workerState: 10 * lineWords,
  requestRoom: 11 * lineWords,
  replyRoom: 12 * lineWords,
  firstClaim: 1024,
} as const;

/** Index of the word that only JavaScript reads and writes: see `Claims.loading`. */
export const workerLoadingAt = 13 * lineWords;

/** The value of a side's state word. */
export const sideState = { absent: 0, open: 1, closed: 2, gone: 3 } as const;

/** The room word of a ring: the writer sets `wanted`, the reader answers `made`. */
export const roomState = { plenty: 0, wanted: 1, made: 2 } as const;

/** The frame in front of each body: size, kind, task, target, 4 bytes each. */
export const frameHeaderBytes = 16;
/** Set in the size of a frame whose body lies in an arena block. */
export const spillFlag = 0x4000_0000;

/** A segment's bytes, as the views that the ring code uses. */
export interface SegmentMemory {
  readonly bytes: Buffer;
  readonly words: Int32Array;
}

/** One ring: indices of its words, byte offset of its first byte, size (a power of two). */
export interface RingPlace {
  readonly tailAt: number;
  readonly headAt: number;
  readonly roomAt: number;
  readonly bytesAt: number;
  readonly capacity: number;
}

/** The indices of the words that one side's channel uses besides its rings. */
export interface SideWords {
  readonly ownState: number;
  readonly peerState: number;
  readonly peerAsleep: number;
}

export const parentWords: SideWords = {
  ownState: wordAt.parentState,
  peerState: wordAt.workerState,
  peerAsleep: wordAt.workerAsleep,
};

export const workerWords: SideWords = {
  ownState: wordAt.workerState,
  peerState: wordAt.parentState,
  peerAsleep: wordAt.parentAsleep,
};

export function requestRing(bytesAt: number, capacity: number): RingPlace {
  const { requestTail: tailAt, requestHead: headAt, requestRoom: roomAt } = wordAt;
  return { tailAt, headAt, roomAt, bytesAt, capacity };
}

export function replyRing(bytesAt: number, capacity: number): RingPlace {
  const { replyTail: tailAt, replyHead: headAt, replyRoom: roomAt } = wordAt;
  return { tailAt, headAt, roomAt, bytesAt, capacity };
}

/** Indices of the words of `NativeLoop.endWords`. The first two are for refs, the others for the guard. */
export const endWordAt = { wanted: 0, held: 1, rings: 2, news: 3, isBellGone: 4 } as const;
