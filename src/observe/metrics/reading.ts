// What all metrics are read from: the program that this thread belongs to, as it is now. A program is what
// one start has brought about: a process with its threads, or a supervisor with all processes and loops of
// its servers, and the workers of both that have pools of their own. The threads are asked over the sockets
// of their agents, this one directly. Other programs are not asked: a scrape each second would cost them
// something.
// Not here: what becomes of it (definitions.ts).

import { threadId } from 'node:worker_threads';
import {
  agentNameOf,
  agentSockets,
  mayBlock,
  ownStats,
  type ThreadStats,
} from '../../agent/index.js';
import { canCountJobs } from '../../blocking-pool/index.js';
import { isLeftSocket, socketPaths } from '../../internal/index.js';
import { readStat } from '../../proc/index.js';
import { programLoop } from '../../serve/index.js';
import { AgentLinks } from '../agent-link.js';
import { type ProcessReading, processReadings } from './processes.js';
import { processesOf, serverPidOf } from './sources.js';
import { type WorkerReading, workerPids, workerReadings } from './workers.js';

export interface ProgramReading {
  readonly threads: readonly ThreadStats[];
  /** Those that have a socket, but for threads of units that may block them. */
  readonly watched: readonly WatchedThread[];
  readonly processes: readonly ProcessReading[];
  readonly workers: readonly WorkerReading[];
}

export interface WatchedThread {
  readonly pid: number;
  readonly thread: number;
  /** It has answered in time. */
  readonly isUp: boolean;
}

let inFlight: Promise<ProgramReading> | undefined;
const links = new AgentLinks();

/** Who asks while another does gets the same answer. Rejects with `RUNTIME_FOLDER_REFUSED`. */
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
  const busy = workerPids(threads); // they do not answer then
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
 * The first process with those of its servers, as it tells of them or, while it is silent, their loops do,
 * and the workers of all of them.
 */
function processesIn(rootPid: number, answered: readonly ThreadStats[]): ReadonlySet<number> {
  const ofRoot = answered.filter(({ pid }) => pid === rootPid);
  const loops = answered.filter((each) => serverPidOf(each) === rootPid);
  const ours = new Set([rootPid, ...processesOf(ofRoot), ...loops.map(({ pid }) => pid)]);
  // Goes on over those that are added: workers may have workers.
  for (const pid of ours) {
    for (const worker of workerPids(answered.filter((each) => each.pid === pid))) ours.add(worker);
  }
  return ours;
}

/**
 * Sockets of the threads of the first process and of all below it, without this thread's own. Those of killed
 * processes are asked, too, and found to refuse: so each is removed once instead of looked at in every
 * scrape.
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
