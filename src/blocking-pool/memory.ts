// The pool of libuv, read from the memory of its process while that goes on. Nothing is stopped and
// nothing is locked, so what is read may be torn: a pointer may lead to memory that is free by now. Each
// step is checked against the one before, and a list is never followed for ever.
// Lists are followed from their end: jobs are added there and taken from the front, so an entry that is
// gone when we come to it says that all before it are gone, too, and what was counted until then waited.
// A job that is done goes into another such list, and has no function any more: that tells the two apart.

import type { ReadAt } from './elf.js';
import type { PoolSymbols } from './symbols.js';

export interface PoolInMemory {
  /** 0: the pool was not used yet. */
  readonly threads: number;
  readonly idleThreads: number;
  readonly waitingJobs: number;
  /** Those of `waitingJobs` that look up names: at most half of the threads do that at a time. */
  readonly waitingLookups: number;
}

/** What counts as one more in a list that is longer is not looked at: each entry is a system call. */
const mostJobs = 10_000;
/** Of a job, `uv__work`: what runs it lies so far before its entry. */
const functionBefore = 24;
const entryBytes = 16;
/** libuv takes no more. */
const mostThreads = 1024;
const attempts = 3;

/** `moved`: how far the program lies from where its linker put it. `undefined`: that is no pool. */
export function poolInMemory(
  read: ReadAt,
  symbols: PoolSymbols,
  moved: number,
): PoolInMemory | undefined {
  const threads = numberAt(read, symbols.threads + moved);
  const idleThreads = numberAt(read, symbols.idleThreads + moved);
  if (threads === undefined || idleThreads === undefined || threads > mostThreads) return undefined;
  if (threads === 0) return { threads, idleThreads: 0, waitingJobs: 0, waitingLookups: 0 };
  const others = new Set([symbols.lookupsEntry + moved, symbols.exitEntry + moved]);
  const waitingLookups = entriesOf(read, symbols.lookups + moved, new Set());
  const jobs = entriesOf(read, symbols.jobs + moved, others);
  return {
    threads,
    // A thread that has just begun may count as idle in one word and not in the other.
    idleThreads: Math.min(idleThreads, threads),
    waitingJobs: jobs + waitingLookups,
    waitingLookups,
  };
}

/** The entries of the list at `head` that are none of `others`. */
function entriesOf(read: ReadAt, head: number, others: ReadonlySet<number>): number {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { count, isWhole } = walk(read, head, others);
    if (isWhole || count > 0) return count;
  }
  return 0;
}

/** From the last entry to the first, each of which names the entry that we came from as its next one. */
function walk(
  read: ReadAt,
  head: number,
  others: ReadonlySet<number>,
): { count: number; isWhole: boolean } {
  let from = head;
  let entry = entryAt(read, head, false)?.previous ?? 0;
  let count = 0;
  // A list that was never made, of a pool that is just being started, is empty.
  while (entry !== head && entry !== 0 && count < mostJobs) {
    const isJob = !others.has(entry);
    const found = entryAt(read, entry, isJob);
    if (found?.next !== from || found.isDone) return { count, isWhole: false };
    if (isJob) count += 1;
    from = entry;
    entry = found.previous;
  }
  return { count, isWhole: true };
}

interface Entry {
  readonly next: number;
  readonly previous: number;
  readonly isDone: boolean;
}

/** In one read, so that what belongs together is seldom torn. */
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
