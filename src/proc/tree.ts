// Threads and descendants of a process.

import { readStat } from './stat.js';
import { namesIn, readText, textOf } from './text.js';

/** True: the kernel lists the children of each thread (CONFIG_PROC_CHILDREN). */
const listsChildren = readText('/proc/thread-self/children') !== undefined;

/** Numbers of the threads of a process, in the order of their start. */
export function threadsOf(pid: number): number[] {
  return namesIn(`/proc/${pid}/task`).map(Number).sort(byStart(pid));
}

/**
 * Compares numbers of threads of a process by their start. The kernel counts up from `pid`, the number of
 * the main thread, and starts again from small numbers after `pid_max`.
 */
export function byStart(pid: number): (a: number, b: number) => number {
  return (a, b) => Number(a < pid) - Number(b < pid) || a - b;
}

/** Children of `pid`, also those that have ended and are not reaped. */
export function childrenOf(pid: number): number[] {
  return listsChildren ? listedChildren(pid) : searchedChildren()(pid);
}

/** `pid` and its descendants, without those whose parent has ended. */
export function readTree(pid: number): number[] {
  const childrenOf = listsChildren ? listedChildren : searchedChildren();
  const found = [pid];
  for (const each of found) found.push(...childrenOf(each));
  return found;
}

function listedChildren(pid: number): number[] {
  const texts = threadsOf(pid).map((tid) => textOf(`/proc/${pid}/task/${tid}/children`));
  return texts.flatMap((text) => text.split(' ').filter(Boolean).map(Number));
}

/** Reads all processes of the machine once. */
function searchedChildren(): (pid: number) => number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of namesIn('/proc')) {
    const parentPid = /^\d+$/.test(name) ? readStat(`/proc/${name}`)?.parentPid : undefined;
    if (parentPid === undefined) continue;
    childrenOf.set(parentPid, [...(childrenOf.get(parentPid) ?? []), Number(name)]);
  }
  return (pid) => childrenOf.get(pid) ?? [];
}
