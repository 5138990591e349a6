// The load of libuv's thread pool, for which fs, crypto, zlib and dns.lookup wait. libuv has no function for it:
// its variables are read from memory (memory.ts), or the states of its threads (threads.ts). Neither changes the
// process.

import { CodedError } from '../errors.js';
import { poolInMemory } from './memory.js';
import { movedBy, type NodeProcess, nodeProcess, withMemory } from './node-process.js';
import { poolThreads } from './threads.js';

export interface BlockingPoolReading {
  /** 0: the pool has not been used yet. */
  readonly threads: number;
  readonly idleThreads: number;
  /** Jobs that no thread has begun; `undefined` when only the threads can be read. */
  readonly waitingJobs: number | undefined;
  /** Name lookups (`dns.lookup`) among them: at most half of the threads run them at a time. */
  readonly waitingLookups: number | undefined;
  /** `memory` is exact; `threads` may count a thread that sleeps within its job as idle. */
  readonly method: 'memory' | 'threads';
  /** The reason why `method` is not `memory`; empty when it is. */
  readonly problem: string;
}

/**
 * Reads the pool of a Node process, by default of this one. The first read of an executable includes its
 * symbols, which takes some milliseconds. Throws `PROCESS_GONE`, `PROCESS_REFUSED`,
 * `PROCESS_NOT_NODE`, `PROCESS_OTHER_PID_NAMESPACE`, and `THREADPOOL_UNREADABLE` when neither way works.
 */
export function readBlockingPool(pid?: number): BlockingPoolReading {
  const target = nodeProcess(pid);
  const read = fromMemory(target);
  if (typeof read !== 'string') return read;
  const seen = poolThreads(target);
  if (seen === undefined) throw hidden(target.pid, read);
  const unknown = { waitingJobs: undefined, waitingLookups: undefined };
  return { ...seen, ...unknown, method: 'threads', problem: read };
}

/** The reading, or the reason why there is none. */
function fromMemory(target: NodeProcess): BlockingPoolReading | string {
  const { symbols, problem } = target.executable;
  if (symbols === undefined) return problem;
  const moved = movedBy(target, symbols.entry);
  if (moved === undefined) return closed;
  const found = withMemory(target, (read) => poolInMemory(read, symbols, moved));
  if (found === undefined) return closed;
  return { ...found, method: 'memory', problem: '' };
}

const closed = 'its memory is closed to this user (kernel.yama.ptrace_scope)';

function hidden(pid: number, problem: string): CodedError {
  const message = `the thread pool of process ${pid} cannot be seen: ${problem}, and its threads have no names, which they have from Node 22 on; run it with a Node from nodejs.org`;
  return new CodedError('THREADPOOL_UNREADABLE', message);
}

/** True: the jobs of a process can be counted from here. Otherwise the process measures a wait (probe.ts). */
export function canCountJobs(pid: number): boolean {
  try {
    return readBlockingPool(pid).waitingJobs !== undefined;
  } catch {
    return false; // the process has ended, or may not be read
  }
}
