// Columns of the tables of one program: threads, workers, loops of servers, and buses.

import { bytesText, countText, msText, percentText } from '../src/observe/format.js';
import { isBlockedFor, lagConcern } from '../src/observe/limits.js';
import type {
  BusView,
  LoopView,
  MemoryView,
  ThreadView,
  WorkerView,
} from '../src/observe/views/view-types.js';
import { type Column, Share } from './table.js';

export const threadColumns: readonly Column<ThreadView>[] = [
  {
    head: 'Loop',
    cell: ({ role, isSilent }) => (isSilent ? `${role}: no answer` : role),
    tone: ({ isSilent }) => (isSilent ? 'alarm' : ''),
    isText: true,
  },
  { head: 'Pid', cell: ({ pid }) => pid, isSpare: true },
  {
    head: 'Busy',
    cell: ({ utilization }) => <Share value={utilization} text={percentText(utilization)} />,
  },
  { head: 'Lag p50', cell: ({ lagP50Ms }) => msText(lagP50Ms), isSpare: true },
  {
    head: 'Lag p99',
    cell: ({ lagP99Ms }) => msText(lagP99Ms),
    tone: ({ lagP99Ms }) => lagConcern(lagP99Ms),
  },
  { head: 'GC', cell: ({ gcShare }) => percentText(gcShare) },
  { head: 'Longest GC', cell: ({ gcMaxMs }) => msText(gcMaxMs), isSpare: true },
  { head: 'Heap', cell: ({ heapUsedBytes }) => bytesText(heapUsedBytes) },
  { head: 'of at most', cell: ({ heapLimitBytes }) => bytesText(heapLimitBytes), isSpare: true },
  { head: 'CPU', cell: ({ cpuShare }) => percentText(cpuShare), isSpare: true },
  { head: 'Memory', cell: ({ rssBytes }) => bytesText(rssBytes), isSpare: true },
];

export const workerColumns: readonly Column<WorkerView>[] = [
  { head: 'Worker', cell: ({ id }) => id },
  { head: 'Kind', cell: ({ kind }) => kind, isText: true, isSpare: true },
  { head: 'Pid', cell: ({ pid }) => pid ?? '-' },
  { head: 'State', cell: ({ state }) => state, isText: true },
  { head: 'In flight', cell: ({ tasksInFlight }) => tasksInFlight },
  { head: 'Tasks/s', cell: ({ tasksPerSecond }) => countText(tasksPerSecond) },
  { head: 'Done', cell: ({ tasksDone }) => countText(tasksDone), isSpare: true },
  { head: 'GC', cell: ({ gcShare }) => percentText(gcShare), isSpare: true },
  { head: 'Heap', cell: ({ heapUsedBytes }) => bytesText(heapUsedBytes), isSpare: true },
  { head: 'of at most', cell: ({ heapLimitBytes }) => bytesText(heapLimitBytes), isSpare: true },
  { head: 'CPU', cell: ({ cpuShare }) => percentText(cpuShare) },
  { head: 'Memory', cell: ({ rssBytes }) => bytesText(rssBytes), isSpare: true },
];

export const loopColumns: readonly Column<LoopView>[] = [
  { head: 'Loop', cell: ({ process, loop }) => `${process}.${loop}`, isText: true },
  { head: 'Pid', cell: ({ pid }) => pid ?? '-', isSpare: true },
  {
    head: 'State',
    cell: (row) => (isBlockedFor(row.blockedMs) ? `blocked ${msText(row.blockedMs)}` : row.state),
    tone: (row) => (isBlockedFor(row.blockedMs) ? 'alarm' : ''),
    isText: true,
  },
  {
    head: 'Busy',
    cell: (row) => <Share value={row.utilization} text={percentText(row.utilization)} />,
  },
  {
    head: 'Lag',
    cell: ({ lagMs }) => msText(lagMs),
    tone: ({ lagMs }) => lagConcern(lagMs),
    isSpare: true,
  },
  { head: 'Requests/s', cell: ({ requestsPerSecond }) => countText(requestsPerSecond) },
  { head: 'Open', cell: ({ openConnections }) => countText(openConnections) },
  { head: 'Memory', cell: ({ rssBytes }) => bytesText(rssBytes), isSpare: true },
  { head: 'Last exit', cell: ({ lastExit = '' }) => lastExit, isText: true, isSpare: true },
];

export const memoryColumns: readonly Column<MemoryView>[] = [
  { head: 'Pid', cell: ({ pid }) => pid },
  { head: 'Threads', cell: ({ threads }) => threads, isSpare: true },
  { head: 'Memory', cell: ({ memoryBytes }) => bytesText(memoryBytes) },
  { head: 'Commits/s', cell: ({ commitsPerSecond }) => countText(commitsPerSecond) },
  { head: 'Conflicts/s', cell: ({ conflictsPerSecond }) => countText(conflictsPerSecond) },
  { head: 'Sleeps/s', cell: ({ sleepsPerSecond }) => countText(sleepsPerSecond), isSpare: true },
  { head: 'Thefts', cell: ({ thefts }) => countText(thefts), isSpare: true },
  { head: 'Recoveries', cell: ({ recoveries }) => countText(recoveries), isSpare: true },
];

export const busColumns: readonly Column<BusView>[] = [
  { head: 'Pid', cell: ({ pid }) => pid },
  { head: 'Thread', cell: ({ thread }) => thread, isSpare: true },
  { head: 'Sent/s', cell: ({ sentPerSecond }) => countText(sentPerSecond) },
  { head: 'Received/s', cell: ({ receivedPerSecond }) => countText(receivedPerSecond) },
  { head: 'Undelivered', cell: ({ undelivered }) => countText(undelivered) },
  { head: 'Dropped', cell: ({ dropped }) => countText(dropped) },
  { head: 'Failed', cell: ({ failed }) => countText(failed), isSpare: true },
];
