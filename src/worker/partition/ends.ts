// The reasons of a sandbox's end.

import { Socket } from 'node:net';
import { type CodedError, hasCode } from '../../errors.js';
import { messageOf } from '../../lib/index.js';
import { isUnreadable } from '../parent/exit.js';
import type { ReachedLimit } from '../types.js';
import { maxTasks } from './command-line.js';
import { sandboxAround } from './guest.js';
import { unavailable } from './layers.js';
import type { FilledPartition } from './options.js';
import { printable } from './own-output.js';

/** Exit code of `manycore-enter` for a step that failed. */
const refusedExitCode = 125;
/** More than `manycore-enter` writes. */
const maxStatusChars = 1000;

/**
 * The limit of manycore for which a partition's channel was ended. `isDistrusted`: a value or frame of it was refused;
 * else a frame was above the limit of its size.
 */
export function limitOfChannel(
  error: Error | undefined,
  isDistrusted: boolean,
  { resultMb }: FilledPartition,
): ReachedLimit | undefined {
  if (!isUnreadable(error)) return undefined;
  if (hasCode(error, 'PARTITION_CODE')) return { name: 'data', reason: error.message };
  if (isDistrusted || !hasCode(error, 'CHANNEL_FRAME_CORRUPT')) {
    return { name: 'protocol', reason: messageOf(error) };
  }
  const reason = `it sent a value of more than ${resultMb} MiB (resultMb): ${error.message}`;
  return { name: 'result', reason };
}

/** Resolves to the first part of what comes, at its end. */
export function textOf(stream: unknown): Promise<string> {
  if (!(stream instanceof Socket)) return Promise.resolve('');
  let text = '';
  stream.setEncoding('utf8').unref();
  stream.on('data', (more: string) => {
    if (text.length < maxStatusChars) text += more;
  });
  return new Promise((resolve) => {
    stream.once('close', () => resolve(text));
  });
}

/** The reason of `manycore-enter` or bubblewrap, if the partition could not be made. `line`: the last on stderr. */
export function refusalOf(exitCode: number | null, line: string): CodedError | undefined {
  const isOfEnter = exitCode === refusedExitCode && line.startsWith('manycore-enter: ');
  const isOfBubblewrap = exitCode === 1 && line.startsWith('bwrap: ');
  return isOfEnter || isOfBubblewrap ? unavailable(printable(line)) : undefined;
}

/** The line of a guest whose own kernel has ended something (crates/enter/src/guest.rs). */
const guestIsOutOfMemory = 'manycore-enter: the guest is out of memory';

/**
 * The limit of a kernel that has ended a partition. Memory ends by a kill. Tasks are refused, and what the code does
 * then is its own affair: they are the likely cause of an end that was no success. `status`: what `manycore-enter run`
 * wrote; `line`: the last on stderr.
 */
export function limitOf(
  status: string,
  exitCode: number | null,
  partition: FilledPartition,
  line: string,
): ReachedLimit | undefined {
  if (exitCode === 0) return undefined;
  const words = status.split('\n');
  const isOfGuest = partition.kind === 'vm' && line === guestIsOutOfMemory;
  if (words.includes('memory') || isOfGuest) {
    return { name: 'memory', reason: `memory limit of ${partition.memoryMb} MiB (memoryMb)` };
  }
  if (!words.includes('tasks')) return undefined;
  const tasks = maxTasks(partition.kind === 'vm' ? sandboxAround(partition) : partition);
  const reason = `it had reached its limit of ${tasks} processes and threads (maxProcesses)`;
  return { name: 'tasks', reason };
}
