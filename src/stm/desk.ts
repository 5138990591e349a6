// The memory in which a transaction notes what it reads and writes; a commit is one call with it.

/** Words of the desk, and the last word of a write: what is done with its object. */
export const desk = {
  snapshot: 0,
  readCount: 1,
  writeCount: 2,
  writeWords: 6,
  sets: 0,
  /** Ends the object. */
  frees: 1,
  /** Gives back a block that is no object. */
  retires: 2,
} as const;
