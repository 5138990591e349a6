// Table of all programs, one row each.

import type { ProgramLine } from '../src/observe/dashboard/protocol.js';
import { bytesText, countText, msText, percentText, shortTitle } from '../src/observe/format.js';
import { lagConcern } from '../src/observe/limits.js';
import { type Column, Share, Table } from './table.js';

const columns: readonly Column<ProgramLine>[] = [
  {
    head: 'Program',
    cell: ({ pid, title }) => (
      <a href={`#${pid}`} title={title}>
        {shortTitle(title)}
      </a>
    ),
    isText: true,
  },
  { head: 'Pid', cell: ({ pid }) => pid, isSpare: true },
  {
    head: 'Busy',
    cell: ({ summary: { utilization } }) => (
      <Share value={utilization} text={percentText(utilization)} />
    ),
  },
  {
    head: 'Lag',
    cell: ({ summary }) => (summary.silentThreads > 0 ? 'no answer' : msText(summary.lagP99Ms)),
    tone: ({ summary }) => (summary.silentThreads > 0 ? 'alarm' : lagConcern(summary.lagP99Ms)),
  },
  { head: 'CPU', cell: ({ summary }) => percentText(summary.cpuShare), isSpare: true },
  { head: 'Memory', cell: ({ summary }) => bytesText(summary.rssBytes), isSpare: true },
  { head: 'Workers', cell: ({ summary }) => `${summary.busyWorkers}/${summary.workers}` },
  { head: 'Waiting', cell: ({ summary }) => countText(summary.waitingTasks), isSpare: true },
  { head: 'Lost', cell: ({ summary }) => countText(summary.lost), isSpare: true },
  { head: 'Tasks/s', cell: ({ summary }) => countText(summary.tasksPerSecond) },
  {
    head: 'Requests/s',
    cell: ({ summary }) => countText(summary.requestsPerSecond),
    isSpare: true,
  },
];

export function ProgramList({
  programs,
}: {
  readonly programs: readonly ProgramLine[] | undefined;
}) {
  if (programs === undefined) return <p>Searching for programs ...</p>;
  if (programs.length === 0) return <p>No program that uses manycore runs.</p>;
  return <Table label="Programs" columns={columns} rows={programs} keyOf={({ pid }) => pid} />;
}
