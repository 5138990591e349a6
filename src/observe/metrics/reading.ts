// Reads the program of this thread, from which all metrics are computed. A program is everything that one
// start started: a process with its threads, or a supervisor with all processes and loops of its servers; and
// their workers that have pools of their own. Threads are polled over the sockets of their agents, this
// thread directly. Other programs are not polled: a scrape each second would cost them CPU time.
// Not here: the metrics (definitions.ts).

import { threadId } from 'node:worker_threads';
import {
  agentNameOf,
  agentSockets,
  mayBlock,
  ownStats,
  type ThreadStats,
} from '../../agent/index.js';
import { canCountJobs } from '../../blocking-pool/index.js';
import { isLeftSocket, socketPaths } from '../../lib/index.js';
import { readStat } from '../../proc/index.js';
import { programLoop } from '../../serve/index.js';
import { AgentLinks } from '../agent-link.js';
import { type ProcessReading, processReadings } from './processes.js';
import { processesOf, serverPidOf } from './sources.js';
import { type WorkerReading, workerPids, workerReadings } from './workers.js';

export interface ProgramReading {
  readonly threads: readonly ThreadStats[];
  /** Threads that have a socket, without those of units that may block. */
  readonly watched: readonly WatchedThread[];
  readonly processes: readonly ProcessReading[];
  readonly workers: readonly WorkerReading[];
}

export interface WatchedThread {
  readonly pid: number;
  readonly thread: number;
  /** True: it answered in time. */
  readonly isUp: boolean;
}

let inFlight: Promise<ProgramReading> | undefined;
const links = new AgentLinks();

/** Returns the present reading; concurrent calls share one. Rejects with `RUNTIME_FOLDER_REFUSED`. */
export function readProgram(): Promise<ProgramReading> {
  inFlight ??= read().finally(() => {
    inFlight = undefined;
  });
  return inFlight;
}

async function read(): Promise<ProgramReading> {
  const rootPid = programLoop() === undefined ? process.pid : process.ppid;
  const others = process.env['MANYCORE_AGENT'] === '0' ? [] : otherThreads(rootPid);
  const [own, answers] = await Promise.all([
    ownStats({ probes: !canCountJobs(process.pid) }),
    links.poll(others, ({ pid, thread }) => thread === 0 && !canCountJobs(pid)),
  ]);
  const answered = [own, ...answers.flatMap(({ stats }) => stats ?? [])];
  const ours = processesIn(rootPid, answered);
  const threads = answered.filter(({ pid }) => ours.has(pid));
  const all = [
    { pid: own.pid, thread: own.thread, mayBlock: mayBlock(), stats: own },
    ...answers.map(({ link: { pid, thread, mayBlock }, stats }) => ({
      pid,
      thread,
      mayBlock,
      stats,
    })),
  ];
  const workers = workerReadings(
    threads,
    all.filter(({ stats }) => stats === undefined),
  );
  const busy = workerPids(threads); // a busy worker does not answer
  const watched = all.filter((each) => ours.has(each.pid) && !each.mayBlock && !busy.has(each.pid));
  return {
    threads,
    workers,
    watched: watched.map(({ pid, thread, stats }) => ({
      pid,
      thread,
      isUp: stats !== undefined,
    })),
    processes: processReadings(rootPid, threads, workers),
  };
}

/**
 * Pids of the program: the first process, those of its servers, and the workers of all of them. Server
 * processes are reported by the first process or, while it is silent, by their loops.
 */
function processesIn(rootPid: number, answered: readonly ThreadStats[]): ReadonlySet<number> {
  const ofRoot = answered.filter(({ pid }) => pid === rootPid);
  const loops = answered.filter((each) => serverPidOf(each) === rootPid);
  const ours = new Set([rootPid, ...processesOf(ofRoot), ...loops.map(({ pid }) => pid)]);
  // Iterates over added pids, too: workers may have workers.
  for (const pid of ours) {
    for (const worker of workerPids(answered.filter((each) => each.pid === pid))) ours.add(worker);
  }
  return ours;
}

/**
 * Sockets of the threads of the first process and all its descendants, without this thread's own. Sockets of
 * killed processes are polled, too: they refuse and are removed, so that no later scrape checks them again.
 */
function otherThreads(rootPid: number): string[] {
  return socketPaths(agentSockets).filter((path) => {
    const { pid, thread } = agentNameOf(path);
    const isOwn = pid === process.pid && thread === threadId;
    return !isOwn && (isBelow(pid, rootPid) || isLeftSocket(path));
  });
}

function isBelow(pid: number, rootPid: number): boolean {
  if (pid === rootPid) return true;
  const parentPid = readStat(`/proc/${pid}`)?.parentPid ?? 0;
  return parentPid > 1 && isBelow(parentPid, rootPid);
}
