// How full libuv's thread pool is: what fs, crypto, zlib and dns.lookup wait for. libuv tells nobody, so
// its own variables are read (memory.ts), or its threads are looked at (threads.ts). Neither changes
// anything in the process that is read.

import { CodedError } from '../errors.js';
import { poolInMemory } from './memory.js';
import { movedBy, type NodeProcess, nodeProcess, withMemory } from './target.js';
import { poolThreads } from './threads.js';

export interface BlockingPoolReading {
  /** 0: nothing has used the pool yet. */
  readonly threads: number;
  readonly idleThreads: number;
  /** Jobs that no thread has begun; `undefined` where only the threads can be seen. */
  readonly waitingJobs: number | undefined;
  /** Those of them that look up names (`dns.lookup`): at most half of the threads do that at a time. */
  readonly waitingLookups: number | undefined;
  /** `memory` is exact; `threads` may take one that waits within its job for an idle one. */
  readonly method: 'memory' | 'threads';
  /** Why it is not `memory`; empty where it is. */
  readonly problem: string;
}

/**
 * Reads the pool of a process of Node, of this one by default. The first time for an executable it reads
 * its symbols, which takes some milliseconds. Throws `PROCESS_GONE`, `PROCESS_REFUSED`,
 * `PROCESS_NOT_NODE`, `PROCESS_OTHER_PID_NAMESPACE`, and `THREADPOOL_UNREADABLE` where nothing can be seen.
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

/** Or why it cannot be read. */
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

/** Whether jobs of the pool of a process are seen from here; else it is to be asked how long one waits. */
export function canCountJobs(pid: number): boolean {
  try {
    return readBlockingPool(pid).waitingJobs !== undefined;
  } catch {
    return false; // it has ended, or cannot be seen
  }
}
