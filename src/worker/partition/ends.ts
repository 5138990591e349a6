// The reasons of a sandbox's end.

import { Socket } from 'node:net';
import { type CodedError, hasCode } from '../../errors.js';
import { messageOf, ownOf } from '../../lib/index.js';
import { describeExit, isCrash, isUnreadable } from '../parent/exit.js';
import type { ReachedLimit, WorkerExit } from '../types.js';
import { maxTasks } from './command-line.js';
import { guestKernel, sandboxAround } from './guest.js';
import { engineOf, guestTools, refusedByBubblewrap, unavailable } from './layers.js';
import type { FilledPartition, FilledVm } from './options.js';
import { type CauseLine, printable } from './own-output.js';

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
  const words = printable(line);
  if (passing.test(line)) {
    return Object.assign(new Error(unavailable(words).message), { code: 'EAGAIN' });
  }
  return isOfEnter ? unavailable(words) : refusedByBubblewrap(words);
}

/** The failure of a guest whose worker did not begin. */
export interface GuestFailure {
  /** `PARTITION_UNAVAILABLE`, with the line that names the cause as `cause`. */
  readonly error: CodedError;
  /** `surely`: the next start fails as well; `maybe`: a few more show that; `unknown`: it may pass. */
  readonly repeats: 'surely' | 'maybe' | 'unknown';
}

/** Explains why a guest did not start. `timeoutText`: it was ended for its time, in words. */
export function guestFailure(
  vm: FilledVm,
  exit: WorkerExit,
  timeoutText: string | undefined,
): GuestFailure {
  const { limit, error, lastLine: line = '', exitCode, signal } = exit;
  if (timeoutText !== undefined) {
    const way = `raise startTimeoutMs, or ${otherWay(vm)}`;
    return { error: noGuest(vm, timeoutText, way, line), repeats: 'unknown' };
  }
  if (limit !== undefined) {
    return { error: noGuest(vm, limit.reason, 'raise it', line), repeats: 'maybe' };
  }
  if (line.startsWith(`manycore-enter: ${guestKernel} cannot be started`)) {
    const what = `the kernel ${guestTools(vm.kernel).kernel} is no program for this machine`;
    return { error: noGuest(vm, what, otherWay(vm), line), repeats: 'surely' };
  }
  if (hasCode(error, 'PARTITION_UNAVAILABLE')) return { error, repeats: 'surely' };
  const isPassing = passing.test(line) || signal !== null || exitCode === killed;
  const what = `${programOf(vm)} ended ${describeExit(exit)} before its worker began`;
  return {
    error: noGuest(vm, what, otherWay(vm), line),
    repeats: isPassing ? 'unknown' : 'maybe',
  };
}

/** A shell's exit code for SIGKILL. */
const killed = 137;

function noGuest(vm: FilledVm, what: string, wayOut: string, line: string): CodedError {
  const engine = engineOf(vm) === 'gvisor' ? 'gVisor' : 'User-mode Linux';
  const cause = line === '' ? undefined : new Error(line);
  return unavailable(`a guest on ${engine} did not start: ${what}: ${wayOut}`, ownOf({ cause }));
}

function programOf(vm: FilledVm): string {
  return engineOf(vm) === 'gvisor' ? 'runsc' : `the kernel ${guestTools(vm.kernel).kernel}`;
}

function otherWay(vm: FilledVm): string {
  return engineOf(vm) === 'gvisor'
    ? "check the package runsc, or use engine 'uml'"
    : "name another kernel in worker.kernel, or use engine 'gvisor'";
}

/** Texts of the system for what it may have again soon. */
const passing =
  /temporarily unavailable|Cannot allocate memory|No space left|Too many open files|resource busy/i;

/** The line of a guest whose own kernel has ended something (crates/enter/src/guest.rs). */
const guestIsOutOfMemory = 'manycore-enter: the guest is out of memory';

/**
 * The limit that has ended a partition. Memory ends it by a kill, or by V8, whose heap is a part of it. Tasks are
 * refused, which code may handle: they are the likely cause of an end that was no success. `status`: what
 * `manycore-enter run` wrote; `maxHeapMb`: that of the pool's options, 0 without one.
 */
export function limitOf(
  status: string,
  exitCode: number | null,
  partition: FilledPartition,
  cause: CauseLine,
  maxHeapMb: number,
): ReachedLimit | undefined {
  if (exitCode === 0) return undefined;
  const words = status.split('\n');
  const isOfGuest = partition.kind === 'vm' && cause.text === guestIsOutOfMemory;
  const ofMemory = `memory limit of ${partition.memoryMb} MiB (memoryMb)`;
  if (words.includes('memory') || isOfGuest) return { name: 'memory', reason: ofMemory };
  if (isCrash(exitCode) && cause.isHeapFull) {
    const ofHeap = `limit of ${maxHeapMb} MiB for its heap (maxHeapMb)`;
    return { name: 'memory', reason: maxHeapMb > 0 ? ofHeap : ofMemory };
  }
  if (!words.includes('tasks')) return undefined;
  const tasks = maxTasks(partition.kind === 'vm' ? sandboxAround(partition) : partition);
  const option = partition.kind === 'vm' ? '' : ' (maxProcesses)';
  const reason = `it had reached its limit of ${tasks} processes and threads${option}`;
  return { name: 'tasks', reason };
}
