// Words of the transactional memory without the native core, behind those of worker/both/thread-space.ts.

import { maxParticipants, participantWord, threadWord } from '../../worker/index.js';

const participantsEnd = threadWord.participants + maxParticipants * participantWord.count;
export const word = {
  clock: 4,
  epoch: 5,
  heapTop: 6,
  /** The participant that alone may commit, and 1; 0: none. */
  serial: 7,
  root: 8,
  /** Counts commits that change something that is watched. */
  bell: 9,
  /** 1: somebody sleeps. */
  watched: 10,
  commits: 12,
  conflicts: 13,
  sleeps: 14,
  /** Lists of free blocks, by class. */
  free: 32,
  /** Lists of blocks that readers may still see, by epoch. */
  limbo: 64,
  heap: participantsEnd,
} as const;

/** In front of an object: the next block of its list, or its owner; its class and generation. */
export const headerWords = 2;
/** Added to the second of them when an object ends: no handle of it fits a later one there. */
export const generation = 256;
/** Epochs are odd; what was retired is free three epochs later. */
export const epochStep = 2;
export const limbos = 3;
