// A Node process that is to be read: proc(5). Each reason why it cannot be has an error of its own, with its way
// out. Not here: the reading (memory.ts).

import { readFileSync, readlinkSync } from 'node:fs';
import { CodedError } from '../errors.js';
import {
  findProcess,
  processGone,
  processRefused,
  readStat,
  type SeenProcess,
} from '../proc/index.js';
import { withFile } from './file.js';
import { type Executable, executableAt, isNodeAt } from './symbols.js';

export interface NodeProcess extends SeenProcess {
  /** The path of its executable, for messages. */
  readonly path: string;
  readonly executable: Executable;
}

/**
 * Finds a Node process, by default this one. Throws `PROCESS_GONE`, `PROCESS_REFUSED`,
 * `PROCESS_NOT_NODE`, `PROCESS_OTHER_PID_NAMESPACE`, and `THREADPOOL_UNREADABLE` on systems other than Linux.
 */
export function nodeProcess(pid: number = process.pid): NodeProcess {
  if (process.platform !== 'linux') throw notLinux(pid);
  const seen = findProcess(pid);
  const path = pathOf(seen);
  return { ...seen, path, executable: executableOf(seen, path) };
}

/** The relocation of the program, in bytes; `undefined` when it may not be read. */
export function movedBy({ folder }: NodeProcess, entry: number): number | undefined {
  const atEntry = 9n; // AT_ENTRY of getauxval(3)
  try {
    const vector = readFileSync(`${folder}/auxv`);
    for (let at = 0; at + 16 <= vector.length; at += 16) {
      if (vector.readBigUInt64LE(at) === atEntry) {
        return Number(vector.readBigUInt64LE(at + 8)) - entry;
      }
    }
  } catch {
    // Then its memory is not readable either.
  }
  return undefined;
}

/** Calls `use` with a reader of its memory; `undefined` when the kernel refuses it (ptrace_scope). */
export function withMemory<T>(
  { folder }: NodeProcess,
  use: Parameters<typeof withFile<T>>[1],
): T | undefined {
  try {
    return withFile(`${folder}/mem`, use);
  } catch {
    return undefined;
  }
}

function pathOf(seen: SeenProcess): string {
  const { pid, folder } = seen;
  try {
    return readlinkSync(`${folder}/exe`);
  } catch (cause) {
    if (isRefusal(cause)) throw processRefused(seen, cause);
    // Kernel threads have no executable; neither has a process that is about to end.
    if (readStat(folder)?.isOfKernel !== true) throw processGone(pid);
    throw notNode(pid, 'a thread of the kernel');
  }
}

function executableOf(seen: SeenProcess, path: string): Executable {
  const { pid, folder } = seen;
  try {
    // This process is Node, whatever its file contains.
    if (pid !== process.pid && !isNodeAt(`${folder}/exe`)) throw notNode(pid, path);
    return executableAt(`${folder}/exe`);
  } catch (cause) {
    if (cause instanceof CodedError) throw cause;
    if (isRefusal(cause)) throw processRefused(seen, cause);
    throw Object(cause).code === 'ENOENT' ? processGone(pid) : notNode(pid, path);
  }
}

function isRefusal(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes(Object(error).code);
}

function notLinux(pid: number): CodedError {
  const message = `process ${pid} cannot be looked into on ${process.platform}: that needs the /proc of Linux`;
  return new CodedError('THREADPOOL_UNREADABLE', message);
}

function notNode(pid: number, what: string): CodedError {
  const message = `process ${pid} is not Node, but ${what}: give the number of one that is (pgrep -l node)`;
  return new CodedError('PROCESS_NOT_NODE', message);
}
