// The reasons of a sandbox's end.

import { Socket } from 'node:net';
import { hasCode } from '../../errors.js';
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
export function refusalOf(exitCode: number | null, line: string): Error | undefined {
  const isOfEnter = exitCode === refusedExitCode && line.startsWith('manycore-enter: ');
  const isOfBubblewrap = exitCode === 1 && line.startsWith('bwrap: ');
  if (!isOfEnter && !isOfBubblewrap) return undefined;
  const error = unavailable(printable(line));
  return passing.test(line) ? Object.assign(new Error(error.message), { code: 'EAGAIN' }) : error;
}

/** Texts of the system for what it may have again soon. */
const passing =
  /temporarily unavailable|Cannot allocate memory|No space left|Too many open files|resource busy/i;

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
  const option = partition.kind === 'vm' ? '' : ' (maxProcesses)';
  const reason = `it had reached its limit of ${tasks} processes and threads${option}`;
  return { name: 'tasks', reason };
}
