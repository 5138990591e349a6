// Detects blocked loops and stopped processes: a callback that does not return keeps its loop from answering
// the listener thread's probes, and from taking connections. Reads the scoreboard alone, so that it cannot
// be blocked, too.
// Not here: placement, which notices much sooner (crates/core/src/accept/placement.rs).

import { boardAt, type Row } from '../shared/board.js';

/** Time without an answer at the first and the second report of a blocked loop, in ms. */
export const firstReportMs = 2000;
export const secondReportMs = 5000;

export interface BlockedLoop {
  readonly process: number;
  readonly index: number;
  readonly blockedMs: number;
}

/** Time for which a loop is silent at `nowMs`, the clock of the scoreboard, in ms; 0: not silent. */
export function silentMs(row: Row, nowMs: number): number {
  return Math.max(
    ...[boardAt.untakenSince, boardAt.pingedSince].map((at) => age(row.get(at), nowMs)),
  );
}

/** Age of a 32-bit time, where 0 means none; a time in the future was written just now. */
function age(sinceMs: number, nowMs: number): number {
  const ageMs = (nowMs - sinceMs) >>> 0;
  return sinceMs === 0 || ageMs > 2 ** 31 ? 0 : ageMs;
}

/** Time for which a process that serves since `servedMs` has not answered the supervisor's bell, in ms. */
export function stoppedMs(rows: readonly Row[], nowMs: number, servedMs: number): number {
  const ages = rows
    .filter(({ state }) => state === 'ready')
    .map((row) => row.get(boardAt.idleWrittenAt))
    .map((writtenAt) => (writtenAt === 0 ? servedMs : age(writtenAt, nowMs)));
  return ages.length === 0 ? 0 : Math.min(...ages);
}

/** True: a process takes no connection, because its loops have as many as they may, with its thread for files. */
export function isFull(rows: readonly Row[]): boolean {
  const ready = rows.filter(({ state }) => state === 'ready');
  const sum = (of: readonly Row[], at: number) => of.reduce((total, row) => total + row.get(at), 0);
  const open = sum(ready, boardAt.open) + sum(rows, boardAt.filesOpen);
  return ready.length > 0 && open >= sum(ready, boardAt.limit);
}

/** Returns loops of the board that are ready, and silent for `minMs` or longer. */
export function blockedLoops(
  rows: readonly (readonly Row[])[],
  nowMs: number,
  minMs: number,
): BlockedLoop[] {
  return rows.flatMap((ofProcess, process) =>
    ofProcess
      .map((row, index) => ({ row, process, index, blockedMs: silentMs(row, nowMs) }))
      .filter(({ row, blockedMs }) => row.state === 'ready' && blockedMs >= minMs)
      .map(({ index, blockedMs }) => ({ process, index, blockedMs })),
  );
}
