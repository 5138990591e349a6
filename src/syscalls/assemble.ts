// Joins counts of the kernel with samples of /proc for the same threads: one line for each thread in
// either, with role, times and calls by name.

import type { NativeTracedRecord } from '../native.js';
import { byStart } from '../proc/index.js';
import { callNames } from './calls.js';
import { countedCalls, foundCalls, type Joined, type Material, timesByCalls } from './counted.js';
import { eventCalls, type ProcessTree, type SeenThread } from './process-tree.js';
import { joinCalls, type TracedThread } from './report.js';
import { isNode, isServerProcess, rolesOf, workerRole } from './roles.js';
import type { ProcessIdentity } from './samples.js';
import { SharedRecords } from './shared-records.js';

/** Returns threads by process; those of child processes (`tid` 0) come last. */
export function assembleThreads(material: Material): TracedThread[] {
  const { tree } = material;
  const records = material.records.map((record) => ({
    ...record,
    pid: processOf(record, material),
  }));
  const names = callNames(process.arch);
  const byThread = new Map<number, NativeTracedRecord[]>();
  for (const record of records.filter(({ tid }) => tid > 0)) {
    byThread.set(record.tid, [...(byThread.get(record.tid) ?? []), record]);
  }
  const shared = new SharedRecords(material, records);
  const pids = new Set([...tree.pids, ...records.map(({ pid }) => pid).filter((pid) => pid > 0)]);
  const supervisors = supervisorsIn(tree);
  const threads = [...pids].flatMap((pid) => {
    const identity = identityIn(material, pid, byThread);
    const other = supervisors.has(pid) ? 'supervisor' : 'main loop';
    const mainRole = workerRole(identity) ?? other;
    const joined = joinThreads(pid, tree.threadsOf(pid), byThread);
    const known = joined.map((thread) => describe(thread, names));
    const roles = rolesOf(identity, known, mainRole);
    const isFollowed =
      material.followed.has(pid) || joined.some((thread) => thread.records.length > 0);
    return joined.flatMap((thread, at) => {
      if (shared.take(thread, isFollowed)) return [];
      const role = roles.get(thread.tid) ?? 'thread';
      return [lineOf(material, thread, role, known[at]?.name ?? '', names)];
    });
  });
  return [...threads, ...shared.lines(names)];
}

function supervisorsIn(tree: ProcessTree): Set<number | undefined> {
  const served = tree.pids.filter((pid) => {
    const identity = tree.identityOf(pid);
    return identity !== undefined && isServerProcess(identity);
  });
  return new Set(served.map((pid) => tree.parentOf(pid)));
}

/**
 * Returns the process of a record. Assembled programs report none: an unseen thread is taken to be the
 * first's.
 */
function processOf({ pid, tid }: NativeTracedRecord, { method, tree, root }: Material): number {
  if (method !== 'raw') return pid;
  return (
    tree.pids.find((each) => tree.threadsOf(each).some((seen) => seen.tid === tid)) ?? root.pid
  );
}

function identityIn(
  { root, tree }: Material,
  pid: number,
  byThread: ReadonlyMap<number, readonly NativeTracedRecord[]>,
): ProcessIdentity {
  if (pid === root.pid) return root;
  const seen = tree.identityOf(pid);
  const program = byThread.get(pid)?.at(-1)?.name ?? '';
  const counted = { pid, args: [], program, isCgi: seen?.isCgi ?? false };
  // The process may have been sampled before it ran its program.
  const isOutdated = seen !== undefined && !isNode(seen) && isNode(counted);
  return seen === undefined || isOutdated ? counted : seen;
}

function joinThreads(
  pid: number,
  seen: readonly SeenThread[],
  byThread: ReadonlyMap<number, readonly NativeTracedRecord[]>,
): Joined[] {
  const seenByTid = new Map(seen.map((thread) => [thread.tid, thread]));
  const counted = [...byThread].filter(([, [record]]) => record?.pid === pid).map(([tid]) => tid);
  const tids = [...new Set([...seenByTid.keys(), ...counted])].sort(byStart(pid));
  return tids.map((tid) => ({
    pid,
    tid,
    seen: seenByTid.get(tid),
    records: byThread.get(tid) ?? [],
  }));
}

function describe({ pid, tid, seen, records }: Joined, names: ReadonlyMap<number, string>) {
  const isEvent = (number: number): boolean => eventCalls.has(names.get(number) ?? '');
  const counted = records.some(({ calls }) => calls.some(({ number }) => isEvent(number)));
  const found = [...(seen?.found.keys() ?? [])].some(isEvent);
  // The last name of an ended thread is in its record only.
  const ended = records.findLast(({ isEnded }) => isEnded)?.name;
  const name = ended ?? seen?.name ?? records.at(-1)?.name ?? '';
  return { pid, tid, name, waitsForEvents: counted || found };
}

function lineOf(
  { method, tree }: Material,
  { pid, tid, seen, records }: Joined,
  role: string,
  name: string,
  names: ReadonlyMap<number, string>,
): TracedThread {
  const isSampled = method === 'counters';
  const counted = countedCalls(records, method, names);
  const calls = isSampled ? joinCalls([foundCalls(seen, names), counted]) : counted;
  // Records count from the start of the thread.
  const endedNs = records.reduce((total, { runNs }) => total + runNs, 0);
  const runNs = Math.max(endedNs - (seen?.runBeforeNs ?? 0), seen?.runNs ?? 0);
  const times = method === 'ebpf' ? timesByCalls(runNs, records) : seen?.times;
  const ended = records.some(({ isEnded }) => isEnded);
  return {
    pid,
    tid,
    role,
    name,
    hasEnded: ended || (seen?.hasEnded ?? tree.hasEnded(pid)),
    tasks: 1,
    userMs: times?.userMs ?? 0,
    systemMs: times?.systemMs ?? 0,
    samples: isSampled ? (seen?.samples ?? 0) : null,
    running: isSampled ? (seen?.running ?? 0) : null,
    calls,
  };
}
