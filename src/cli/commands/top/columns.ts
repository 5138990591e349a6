// Columns of each table of `manycore top`, and the tables of a program.

import {
  type BusView,
  busyConcern,
  bytesText,
  countText,
  isBlockedFor,
  type LoopView,
  lagConcern,
  type MemoryView,
  msText,
  type PoolView,
  type ProgramView,
  percentText,
  type ServerView,
  shortTitle,
  type ThreadView,
  type WorkerView,
} from '../../../observe/index.js';
import { partitionLines } from './partitions.js';
import { sortedWorkers, type WorkerSortName } from './state.js';
import { type Column, clean, type Line, type Tone, tableLines } from './table.js';

function shareTone(share: number | undefined): Tone {
  return busyConcern(share) || 'plain';
}

function lagTone(ms: number | undefined): Tone {
  return lagConcern(ms) || 'plain';
}

export const programColumns: readonly Column<ProgramView>[] = [
  { head: 'pid', text: ({ pid }) => String(pid) },
  { head: 'program', text: ({ title }) => shortTitle(title), isText: true, isFlexible: true },
  { head: 'loops', text: ({ summary }) => String(summary.loops), spare: 3 },
  {
    head: 'busy',
    text: ({ summary }) => percentText(summary.utilization),
    tone: ({ summary }) => shareTone(summary.utilization),
  },
  {
    head: 'lag',
    text: ({ summary }) => (summary.silentThreads > 0 ? 'silent' : msText(summary.lagP99Ms)),
    tone: ({ summary }) => (summary.silentThreads > 0 ? 'alarm' : lagTone(summary.lagP99Ms)),
  },
  { head: 'cpu', text: ({ summary }) => percentText(summary.cpuShare) },
  { head: 'mem', text: ({ summary }) => bytesText(summary.rssBytes), spare: 1 },
  { head: 'workers', text: ({ summary }) => `${summary.busyWorkers}/${summary.workers}` },
  { head: 'wait', text: ({ summary }) => countText(summary.waitingTasks), spare: 2 },
  { head: 'lost', text: ({ summary }) => countText(summary.lost), spare: 0.5 },
  { head: 'tasks/s', text: ({ summary }) => countText(summary.tasksPerSecond) },
  { head: 'req/s', text: ({ summary }) => countText(summary.requestsPerSecond), spare: 0 },
];

const threadColumns: readonly Column<ThreadView>[] = [
  { head: 'pid', text: ({ pid }) => String(pid) },
  {
    head: 'loop',
    text: ({ role, isSilent }) => (isSilent ? `${role}: no answer` : role),
    tone: ({ isSilent }) => (isSilent ? 'alarm' : 'plain'),
    isText: true,
    isFlexible: true,
  },
  {
    head: 'busy',
    text: ({ utilization }) => percentText(utilization),
    tone: ({ utilization }) => shareTone(utilization),
  },
  { head: 'lag p50', text: ({ lagP50Ms }) => msText(lagP50Ms), spare: 3 },
  {
    head: 'lag p99',
    text: ({ lagP99Ms }) => msText(lagP99Ms),
    tone: (row) => lagTone(row.lagP99Ms),
  },
  { head: 'lag max', text: ({ lagMaxMs }) => msText(lagMaxMs), spare: 2 },
  { head: 'gc', text: ({ gcShare }) => percentText(gcShare) },
  { head: 'gc max', text: ({ gcMaxMs }) => msText(gcMaxMs), spare: 1 },
  { head: 'heap', text: ({ heapUsedBytes }) => bytesText(heapUsedBytes) },
  { head: 'of', text: ({ heapLimitBytes }) => bytesText(heapLimitBytes), spare: 4 },
  { head: 'cpu', text: ({ cpuShare }) => percentText(cpuShare) },
  { head: 'mem', text: ({ rssBytes }) => bytesText(rssBytes) },
];

const poolColumns: readonly Column<PoolView>[] = [
  { head: 'busy', text: ({ busyWorkers, workers }) => `${busyWorkers}/${workers.length}` },
  { head: 'waiting', text: ({ waitingTasks }) => countText(waitingTasks) },
  { head: 'running', text: ({ runningTasks }) => countText(runningTasks), spare: 1 },
  { head: 'tasks/s', text: ({ tasksPerSecond }) => countText(tasksPerSecond) },
  {
    head: 'failed/s',
    text: ({ failedPerSecond }) => countText(failedPerSecond),
    tone: ({ failedPerSecond = 0 }) => (failedPerSecond > 0 ? 'warning' : 'plain'),
  },
  { head: 'wait p50', text: ({ waitP50Ms }) => msText(waitP50Ms), spare: 3 },
  { head: 'wait p99', text: ({ waitP99Ms }) => msText(waitP99Ms) },
  { head: 'run p50', text: ({ runP50Ms }) => msText(runP50Ms), spare: 2 },
  { head: 'run p99', text: ({ runP99Ms }) => msText(runP99Ms) },
  { head: 'ended', text: ({ endedWorkers }) => String(endedWorkers), spare: 0 },
  { head: 'lost', text: ({ lostWorkers }) => String(lostWorkers) },
];

const workerColumns: readonly Column<WorkerView>[] = [
  { head: 'id', text: ({ id }) => String(id) },
  { head: 'kind', text: ({ kind }) => kind, isText: true },
  { head: 'pid', text: ({ pid }) => (pid === undefined ? '-' : String(pid)) },
  {
    head: 'state',
    text: ({ state }) => state,
    tone: ({ state }) => (state === 'ready' ? 'good' : 'warning'),
    isText: true,
    isFlexible: true,
  },
  { head: 'in flight', text: ({ tasksInFlight }) => countText(tasksInFlight) },
  { head: 'tasks/s', text: ({ tasksPerSecond }) => countText(tasksPerSecond) },
  { head: 'done', text: ({ tasksDone }) => countText(tasksDone), spare: 3 },
  { head: 'gc', text: ({ gcShare }) => percentText(gcShare), spare: 1 },
  { head: 'heap', text: ({ heapUsedBytes }) => bytesText(heapUsedBytes), spare: 0 },
  { head: 'of', text: ({ heapLimitBytes }) => bytesText(heapLimitBytes), spare: 2 },
  { head: 'cpu', text: ({ cpuShare }) => percentText(cpuShare) },
  { head: 'mem', text: ({ rssBytes }) => bytesText(rssBytes) },
];

function isBlocked({ blockedMs }: LoopView): boolean {
  return isBlockedFor(blockedMs);
}

const loopColumns: readonly Column<LoopView>[] = [
  { head: 'pid', text: ({ pid }) => (pid === undefined ? '-' : String(pid)) },
  { head: 'loop', text: ({ process, loop }) => `${process}.${loop}` },
  {
    head: 'state',
    text: (row) => (isBlocked(row) ? `blocked ${msText(row.blockedMs)}` : row.state),
    tone: (row) => (isBlocked(row) ? 'alarm' : row.state === 'ready' ? 'good' : 'warning'),
    isText: true,
    isFlexible: true,
  },
  {
    head: 'busy',
    text: (row) => percentText(row.utilization),
    tone: (row) => shareTone(row.utilization),
  },
  { head: 'lag', text: ({ lagMs }) => msText(lagMs), tone: ({ lagMs }) => lagTone(lagMs) },
  { head: 'req/s', text: ({ requestsPerSecond }) => countText(requestsPerSecond) },
  { head: 'in flight', text: ({ requestsInFlight }) => countText(requestsInFlight), spare: 2 },
  { head: 'open', text: ({ openConnections }) => countText(openConnections) },
  { head: 'mem', text: ({ rssBytes }) => bytesText(rssBytes), spare: 1 },
  { head: 'last exit', text: ({ lastExit = '' }) => lastExit, isText: true, spare: 3 },
];

const busColumns: readonly Column<BusView>[] = [
  { head: 'pid', text: ({ pid }) => String(pid) },
  { head: 'thread', text: ({ thread }) => String(thread) },
  { head: 'sent/s', text: ({ sentPerSecond }) => countText(sentPerSecond) },
  { head: 'received/s', text: ({ receivedPerSecond }) => countText(receivedPerSecond) },
  { head: 'undelivered', text: ({ undelivered }) => countText(undelivered) },
  { head: 'dropped', text: ({ dropped }) => countText(dropped) },
  { head: 'failed', text: ({ failed }) => countText(failed) },
];

const memoryColumns: readonly Column<MemoryView>[] = [
  { head: 'pid', text: ({ pid }) => String(pid) },
  { head: 'threads', text: ({ threads }) => countText(threads) },
  { head: 'mem', text: ({ memoryBytes }) => bytesText(memoryBytes) },
  { head: 'commits/s', text: ({ commitsPerSecond }) => countText(commitsPerSecond) },
  { head: 'conflicts/s', text: ({ conflictsPerSecond }) => countText(conflictsPerSecond) },
  { head: 'sleeps/s', text: ({ sleepsPerSecond }) => countText(sleepsPerSecond), spare: 1 },
  { head: 'thefts', text: ({ thefts }) => countText(thefts), spare: 2 },
  { head: 'recoveries', text: ({ recoveries }) => countText(recoveries), spare: 3 },
];

export interface Section {
  readonly title: string;
  readonly note: string;
  readonly lines: readonly Line[];
}

/** `width`: limit of the lines; `undefined`: none. */
export function programSections(
  { threads, pools, servers, buses, memories }: ProgramView,
  workerSort: WorkerSortName,
  width: number | undefined,
): Section[] {
  return [
    ...servers.map((server) => serverSection(server, width)),
    { title: 'Event loops', note: '', lines: tableLines(threadColumns, threads, width) },
    ...pools.flatMap((pool) => poolSections(pool, threads, workerSort, width)),
    ...(buses.length === 0
      ? []
      : [{ title: 'Buses', note: '', lines: tableLines(busColumns, buses, width) }]),
    ...(memories.length === 0 ? [] : [memorySection(memories, width)]),
  ];
}

function memorySection(memories: readonly MemoryView[], width: number | undefined): Section {
  const lines = tableLines(memoryColumns, memories, width);
  return { title: 'Transactional memory', note: '', lines };
}

function serverSection(server: ServerView, width: number | undefined): Section {
  const { app, addresses, units, loops, requestsPerSecond, turnedAway, lostProcesses } = server;
  const what =
    addresses.length > 0
      ? `Server ${shortTitle(app)} at ${addresses.join(', ')}`
      : `Units ${units.join(', ')}`;
  const note = `${countText(requestsPerSecond)} requests/s, ${lostProcesses} lost, ${turnedAway} turned away (503)`;
  return { title: clean(what), note, lines: tableLines(loopColumns, loops, width) };
}

function poolSections(
  pool: PoolView,
  threads: readonly ThreadView[],
  workerSort: WorkerSortName,
  width: number | undefined,
): Section[] {
  const where = pool.thread === 0 ? `process ${pool.pid}` : `${pool.pid}, thread ${pool.thread}`;
  const old = pool.isSilent ? ', no answer: as it was before' : '';
  const note = clean(`in ${where}, over ${pool.channel}${old}`);
  const workers = sortedWorkers(pool.workers, workerSort);
  return [
    { title: `Pool ${pool.id}`, note, lines: tableLines(poolColumns, [pool], width) },
    {
      title: `Workers of pool ${pool.id}`,
      note: '',
      lines: workers.length === 0 ? [] : tableLines(workerColumns, workers, width),
    },
    ...(pool.partition === undefined
      ? []
      : [
          {
            title: `Partitions of pool ${pool.id}`,
            note: '',
            lines: partitionLines(pool, workers, threads, width),
          },
        ]),
  ];
}
