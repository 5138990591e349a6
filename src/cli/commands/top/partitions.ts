// The partitions of a pool as a tree: the process of the pool, below it each partition with its limits, and in it the
// processes of its code. All numbers are measured from outside, and none comes from the code.

import {
  bytesText,
  type InsideView,
  type PartitionView,
  type PoolView,
  percentText,
  type ThreadView,
  type WorkerView,
} from '../../../observe/index.js';
import { maxTasks } from '../../../worker/index.js';
import { type Column, type Line, tableLines } from './table.js';

interface Row {
  /** With the branches before the name. */
  readonly name: string;
  readonly pid: number | undefined;
  readonly cpuShare: number | undefined;
  readonly rssBytes: number | undefined;
  /** Only of a partition. */
  readonly limits?: PartitionView | undefined;
}

/** Share of the memory of a partition from which on it is near its end. */
const nearlyFull = 0.9;

const columns: readonly Column<Row>[] = [
  { head: 'process', text: ({ name }) => name, isText: true, isFlexible: true },
  { head: 'pid', text: ({ pid }) => (pid === undefined ? '-' : String(pid)) },
  { head: 'cpu', text: ({ cpuShare }) => percentText(cpuShare) },
  { head: 'of', text: ({ limits }) => (limits ? percentText(limits.cpuShare) : '') },
  {
    head: 'mem',
    text: ({ rssBytes }) => bytesText(rssBytes),
    tone: ({ rssBytes = 0, limits }) =>
      limits && rssBytes > nearlyFull * limits.memoryBytes ? 'warning' : 'plain',
  },
  { head: 'of', text: ({ limits }) => (limits ? bytesText(limits.memoryBytes) : '') },
  {
    head: 'max threads',
    text: ({ limits }) => (limits ? String(maxTasks(limits)) : ''),
    spare: 0,
  },
];

/** `workers`: those of the pool, in their order; `threads`: those of its program. */
export function partitionLines(
  { id, pid, partition: limits }: PoolView,
  workers: readonly WorkerView[],
  threads: readonly ThreadView[],
  width: number | undefined,
): Line[] {
  const own = threads.find((each) => each.pid === pid && each.rssBytes !== undefined);
  const root: Row = {
    name: `pool ${id}`,
    pid,
    cpuShare: own?.cpuShare,
    rssBytes: own?.rssBytes,
  };
  const rows = workers.flatMap((worker, at) => {
    const isLast = at === workers.length - 1;
    const { pid, cpuShare, rssBytes, inside = [] } = worker;
    const name = `${branch(isLast)}${worker.kind} ${worker.id}`;
    return [
      { name, pid, cpuShare, rssBytes, limits },
      ...inside.map((each, place) => insideRow(each, inside.slice(place + 1), isLast)),
    ];
  });
  return tableLines(columns, [root, ...rows], width);
}

/** `later`: the processes behind it in the tree. */
function insideRow(process: InsideView, later: readonly InsideView[], isInLast: boolean): Row {
  const hasSibling = (depth: number): boolean => {
    const next = later.find((each) => each.depth <= depth);
    return next?.depth === depth;
  };
  const above = Array.from({ length: process.depth }, (_, depth) => gapOf(!hasSibling(depth)));
  const before = gapOf(isInLast) + above.join('') + branch(!hasSibling(process.depth));
  const { pid, cpuShare, rssBytes } = process;
  return { name: before + process.name, pid, cpuShare, rssBytes };
}

function branch(isLast: boolean): string {
  return isLast ? '`- ' : '|- ';
}

function gapOf(isOver: boolean): string {
  return isOver ? '   ' : '|  ';
}
