// Reads libuv's pool from the memory of a running process. The process is not stopped and nothing is locked, so
// reads may be torn: a pointer may lead to freed memory. Each step is checked against the one before, and the
// length of a list is limited.
// Lists are followed from their end. Jobs are added there and taken from the front: when an entry is gone, all
// entries before it are gone as well, and the entries counted so far were waiting.
// A finished job is in another list of the same form and has no function: that distinguishes the two.

import type { ReadAt } from './elf.js';
import type { PoolSymbols } from './symbols.js';

export interface PoolInMemory {
  /** 0: the pool has not been used yet. */
  readonly threads: number;
  readonly idleThreads: number;
  readonly waitingJobs: number;
  /** Name lookups among `waitingJobs`: at most half of the threads run them at a time. */
  readonly waitingLookups: number;
}

/** Limit of a count: each entry costs a system call. */
const maxJobs = 10_000;
/** Offset of the function of a job (`uv__work`) before its list entry, in bytes. */
const functionBefore = 24;
const entryBytes = 16;
/** The limit of libuv. */
const maxThreads = 1024;
const attempts = 3;

/** Reads the pool; `moved` is the relocation of the program. `undefined`: the memory holds no pool. */
export function poolInMemory(
  read: ReadAt,
  symbols: PoolSymbols,
  moved: number,
): PoolInMemory | undefined {
  const threads = numberAt(read, symbols.threads + moved);
  const idleThreads = numberAt(read, symbols.idleThreads + moved);
  if (threads === undefined || idleThreads === undefined || threads > maxThreads) return undefined;
  if (threads === 0) return { threads, idleThreads: 0, waitingJobs: 0, waitingLookups: 0 };
  const others = new Set([symbols.lookupsEntry + moved, symbols.exitEntry + moved]);
  const waitingLookups = entriesOf(read, symbols.lookups + moved, new Set());
  const jobs = entriesOf(read, symbols.jobs + moved, others);
  return {
    threads,
    // A thread that has just started may be idle in one word and not in the other.
    idleThreads: Math.min(idleThreads, threads),
    waitingJobs: jobs + waitingLookups,
    waitingLookups,
  };
}

/** Number of entries of the list at `head` that are not in `others`. */
function entriesOf(read: ReadAt, head: number, others: ReadonlySet<number>): number {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { count, isWhole } = walk(read, head, others);
    if (isWhole || count > 0) return count;
  }
  return 0;
}

/**
 * Follows the list backwards; the `next` of each entry must be the entry visited before. An entry that is met a
 * second time was taken and queued anew meanwhile: the list has changed. The last entry may have got successors
 * since `head` was read: it counts when the entry before it leads to it.
 */
function walk(
  read: ReadAt,
  head: number,
  others: ReadonlySet<number>,
): { count: number; isWhole: boolean } {
  const last = entryAt(read, head, false)?.previous ?? 0;
  let from = head;
  let entry = last;
  let count = 0;
  /** 1: the last entry is a job, and the entry before it was not read yet. */
  let unconfirmed = 0;
  const visited = new Set<number>();
  // The list of a pool that is still starting is not initialised: it counts as empty.
  while (entry !== head && entry !== 0 && count < maxJobs) {
    const isJob = !others.has(entry);
    const found = entryAt(read, entry, isJob);
    const isLinked = found?.next === from;
    const hasChanged = visited.has(entry) || !(isLinked || entry === last);
    if (hasChanged || found === undefined || found.isDone) return { count, isWhole: false };
    visited.add(entry);
    if (isLinked) {
      count += unconfirmed + (isJob ? 1 : 0);
      unconfirmed = 0;
    } else if (isJob) {
      unconfirmed = 1;
    }
    from = entry;
    entry = found.previous;
  }
  return { count, isWhole: unconfirmed === 0 };
}

interface Entry {
  readonly next: number;
  readonly previous: number;
  readonly isDone: boolean;
}

/** Reads an entry at once, so that its fields are seldom torn. */
function entryAt(read: ReadAt, address: number, isJob: boolean): Entry | undefined {
  const before = isJob ? functionBefore : 0;
  const bytes = read(address - before, before + entryBytes);
  if (bytes.length < before + entryBytes) return undefined;
  return {
    next: Number(bytes.readBigUInt64LE(before)),
    previous: Number(bytes.readBigUInt64LE(before + 8)),
    isDone: isJob && bytes.readBigUInt64LE(0) === 0n,
  };
}

function numberAt(read: ReadAt, address: number): number | undefined {
  const bytes = read(address, 4);
  return bytes.length < 4 ? undefined : bytes.readUInt32LE(0);
}
