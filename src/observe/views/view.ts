// Makes views from two polls of the running programs: counts become rates; threads, pools and servers become
// rows. Pure: measured values are arguments, and nothing is polled here. Stats may come from other versions
// of manycore: missing values count as 0.
// Not here: polling (programs.ts), /proc (usage.ts), display (the command line, web/).

import type { SourceKind, ThreadStats } from '../../agent/index.js';
import { type KnownThread, numberIn, sourcesOf } from '../parse-stats.js';
import type { Program } from '../programs.js';
import type { TreeProcess, Usage } from '../usage.js';
import { parsePool, poolView, processWorkers } from './pool-view.js';
import { maxOf, type Processes, perSecond, total } from './rates.js';
import { loopPids, serverViews } from './server-view.js';
import { silentView, threadView } from './thread-view.js';
import type {
  BusView,
  MemoryView,
  PoolView,
  ProgramView,
  SummaryView,
  ThreadView,
} from './view-types.js';

/** Result of one poll of all programs. */
export interface Poll {
  /** Time at which the usage was read, by a monotonic clock. */
  readonly atMs: number;
  readonly programs: readonly Program[];
  /** By pid. */
  readonly usage: ReadonlyMap<number, Usage>;
  /** Processes of partitions, by the pid of the one outside. */
  readonly trees: ReadonlyMap<number, readonly TreeProcess[]>;
}

/** All processes whose CPU and memory a view needs. */
export function pidsOf(programs: readonly Program[], trees: Poll['trees']): Set<number> {
  return new Set(programs.flatMap((program) => programPids(program, trees)));
}

/** The processes outside of all partitions. */
export function partitionPids(programs: readonly Program[]): Set<number> {
  const workers = programs.flatMap(reportedThreads).flatMap(processWorkers);
  return new Set(workers.flatMap(({ pid, isPartition }) => (isPartition ? pid : [])));
}

/** Threads with stats, present or old. */
function reportedThreads({ threads, silent }: Program): ThreadStats[] {
  return [...threads, ...silent.flatMap(({ last }) => last ?? [])];
}

function programPids(program: Program, trees: Poll['trees']): number[] {
  const { pid, servers } = program;
  const reported = reportedThreads(program);
  const ofThreads = reported.flatMap((thread) => [
    thread.pid,
    ...processWorkers(thread).map((worker) => worker.pid),
  ]);
  const inside = ofThreads.flatMap((each) => trees.get(each) ?? []).map((each) => each.pid);
  return [...new Set([pid, ...loopPids(servers, reported), ...ofThreads, ...inside])];
}

/** One view for each program, in the order of the poll. */
export function viewOf(now: Poll, before: Poll | undefined): ProgramView[] {
  const earlier = new Map(before?.programs.map((program) => [program.pid, program]));
  const processes = processesOf(now, before);
  return now.programs.map((program) =>
    programView(program, earlier.get(program.pid), processes, programPids(program, now.trees)),
  );
}

function processesOf(now: Poll, before: Poll | undefined): Processes {
  const elapsedMs = before === undefined ? 0 : now.atMs - before.atMs;
  return {
    cpuShareOf: (pid = 0) => {
      const usedMs = now.usage.get(pid)?.cpuMs ?? 0;
      const perS = perSecond(usedMs, before?.usage.get(pid)?.cpuMs, elapsedMs);
      return perS === undefined ? undefined : perS / 1000;
    },
    rssBytesOf: (pid = 0) => now.usage.get(pid)?.rssBytes,
    treeOf: (pid = 0) => now.trees.get(pid) ?? [],
  };
}

function programView(
  program: Program,
  earlier: Program | undefined,
  processes: Processes,
  pids: readonly number[],
): ProgramView {
  const known = knownThreads(program, earlier);
  const workers = new Map(
    known.flatMap(({ thread }) => processWorkers(thread)).map(({ pid, id }) => [pid, id]),
  );
  const threads = threadViews(program, known, workers, processes);
  const loops = threads.filter(({ pid }) => !workers.has(pid));
  const pools = known.flatMap((thread) => poolViews(thread, processes));
  const servers = serverViews(program, earlier, known);
  const buses = known.flatMap(busViews);
  const memories = once(known.flatMap(memoryViews));
  const summary: SummaryView = {
    loops: loops.length,
    utilization: maxOf([
      ...loops.map(({ utilization }) => utilization),
      ...servers.flatMap(({ loops }) => loops.map(({ utilization }) => utilization)),
    ]),
    lagP99Ms: maxOf(loops.map(({ lagP99Ms }) => lagP99Ms)),
    silentThreads: program.silent.filter(({ mayBlock }) => !mayBlock).length,
    workers: total(pools.map(({ workers }) => workers.length)) ?? 0,
    busyWorkers: total(pools.map(({ busyWorkers }) => busyWorkers)) ?? 0,
    waitingTasks: total(pools.map(({ waitingTasks }) => waitingTasks)) ?? 0,
    tasksPerSecond: total(pools.map(({ tasksPerSecond }) => tasksPerSecond)),
    requestsPerSecond: total(servers.map(({ requestsPerSecond }) => requestsPerSecond)),
    lost:
      (total(pools.map(({ lostWorkers }) => lostWorkers)) ?? 0) +
      (total(servers.map(({ lostProcesses }) => lostProcesses)) ?? 0),
    cpuShare: total(pids.map(processes.cpuShareOf)),
    rssBytes: total(pids.map(processes.rssBytesOf)),
  };
  const { pid, title } = program;
  return { pid, title, summary, threads, pools, servers, buses, memories };
}

/** All threads with stats, present or old, with those of the previous poll. */
function knownThreads(
  { threads, silent }: Program,
  earlier: Program | undefined,
): readonly KnownThread[] {
  const before = [
    ...(earlier?.threads ?? []),
    ...(earlier?.silent ?? []).flatMap(({ last }) => last ?? []),
  ];
  const answered = threads.map((thread): KnownThread => {
    const last = sameThread(thread, before);
    const elapsedMs = last === undefined ? 0 : thread.uptimeMs - last.uptimeMs;
    const rate: KnownThread['rate'] = (count, was) => perSecond(count, was, elapsedMs);
    return { thread, last, isSilent: false, rate };
  });
  const silenced = silent.flatMap(({ last }): KnownThread[] =>
    last === undefined
      ? []
      : [{ thread: last, last: undefined, isSilent: true, rate: () => undefined }],
  );
  return [...answered, ...silenced];
}

/** The same thread at the previous poll; not an earlier thread with the same numbers. */
function sameThread(
  { pid, thread, uptimeMs }: ThreadStats,
  all: readonly ThreadStats[],
): ThreadStats | undefined {
  return all.find(
    (other) => other.pid === pid && other.thread === thread && other.uptimeMs < uptimeMs,
  );
}

/** `workers`: worker processes, by pid. */
function threadViews(
  { silent }: Program,
  known: readonly KnownThread[],
  workers: ReadonlyMap<number, number>,
  processes: Processes,
): ThreadView[] {
  const seen = new Set<number>();
  const isFirst = (pid: number): boolean => {
    const isNew = !seen.has(pid);
    seen.add(pid);
    return isNew;
  };
  return [
    ...known
      .filter(({ isSilent }) => !isSilent)
      .map(({ thread, last }) => threadView(thread, last, isFirst(thread.pid), processes)),
    ...silent.map((each) => silentView(each, isFirst(each.pid), processes)),
  ].map((row) => ({ ...row, role: roleIn(row, workers.get(row.pid)) }));
}

function roleIn({ role, thread }: ThreadView, worker: number | undefined): string {
  if (worker === undefined) return role;
  return thread === 0 ? `worker ${worker}` : `worker ${worker} ${role}`;
}

function poolViews(
  { thread, last, isSilent, rate }: KnownThread,
  processes: Processes,
): PoolView[] {
  const { pid, thread: number } = thread;
  const before = sourcesOf(last, 'pool');
  return sourcesOf(thread, 'pool').map(({ id, stats }) => {
    const was = before.find((pool) => pool.id === id);
    const lastStats = was && parsePool(was.stats);
    const at = { pid, thread: number, id, isSilent };
    return poolView(at, parsePool(stats), lastStats, rate, processes);
  });
}

/** Views of the sources of a kind in a thread; `rateOf`: of a count of the source. */
function sourceViews<View>(
  { thread, last, rate }: KnownThread,
  kind: SourceKind,
  view: (stats: object, rateOf: (name: string) => number | undefined) => View,
) {
  const before = sourcesOf(last, kind);
  return sourcesOf(thread, kind).map(({ id, stats }) => {
    const was = before.find((each) => each.id === id)?.stats;
    const rateOf = (name: string): number | undefined =>
      rate(numberIn(stats, name), was && numberIn(was, name));
    return { pid: thread.pid, thread: thread.thread, id, ...view(stats, rateOf) };
  });
}

function busViews(known: KnownThread): BusView[] {
  return sourceViews(known, 'bus', (stats, rateOf) => ({
    sentPerSecond: rateOf('sent'),
    receivedPerSecond: rateOf('received'),
    undelivered: numberIn(stats, 'undelivered'),
    dropped: numberIn(stats, 'dropped'),
    failed: numberIn(stats, 'failed'),
  }));
}

/** Each memory once: all loops of a server report the same one. */
function once(memories: readonly MemoryView[]): MemoryView[] {
  return memories.filter(
    ({ space }, at) => memories.findIndex((other) => other.space === space) === at,
  );
}

function memoryViews(known: KnownThread): MemoryView[] {
  return sourceViews(known, 'stm', (stats, rateOf) => ({
    space: numberIn(stats, 'space'),
    threads: numberIn(stats, 'threads'),
    memoryBytes: numberIn(stats, 'memoryBytes'),
    commitsPerSecond: rateOf('commits'),
    conflictsPerSecond: rateOf('conflicts'),
    sleepsPerSecond: rateOf('sleeps'),
    thefts: numberIn(stats, 'thefts'),
    recoveries: numberIn(stats, 'recoveries'),
  }));
}
