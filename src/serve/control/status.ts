// Status of each loop, read from the scoreboard.

import { boardAt, type LoopState, loopStates, type Row } from '../shared/board.js';

import { silentMs } from '../supervisor/blocked-loops.js';

export interface LoopStatus {
  /** Number of its process in the scoreboard; a replacement may have the same. */
  readonly process: number;
  readonly pid: number | undefined;
  /** Number of reloads before its process started. */
  readonly generation: number;
  /** Age of its process, in ms. */
  readonly ageMs: number;
  /** Memory of its process, in bytes. */
  readonly rssBytes: number;
  /** Exit text of the previous process with this number. */
  readonly lastExit: string | undefined;
  /** Index of the loop in its process. */
  readonly loop: number;
  readonly state: LoopState;
  /** Share of the last second in which it had work, 0 to 1. */
  readonly utilization: number;
  /** In the line of the first loop also those of the thread that answers requests for files. */
  readonly openConnections: number;
  /** Connections since its start. */
  readonly connections: number;
  /** HTTP requests without an answer yet. */
  readonly requestsInFlight: number;
  /** HTTP requests answered since its start; in the line of the first loop also those of the thread for files. */
  readonly requests: number;
  /**
   * Bytes written to connections that were closed, in whole KiB. In the line of the first loop also what the thread
   * for files has written.
   */
  readonly bytesWritten: number;
  /** True: it accepts connections by itself, as busy loops do, not over the listener thread. */
  readonly acceptsItself: boolean;
  /**
   * Latency of the loop's last answer to the listener thread, in ms: it is probed each second while it holds
   * connections.
   */
  readonly lagMs: number;
  /** Time since its last sign of life, in ms; 0: not blocked. */
  readonly blockedMs: number;
  /** Connections answered by 503 for all loops of its process; in the line of the first loop. */
  readonly turnedAway: number;
  /** Kept-alive connections that left the loop while it was blocked. */
  readonly takenAway: number;
  /** Connections that the loop got which had left a blocked one; not in `connections`. */
  readonly takenOver: number;
}

export type RowStatus = Omit<
  LoopStatus,
  'process' | 'pid' | 'generation' | 'ageMs' | 'rssBytes' | 'lastExit'
>;

/** Reads a row. `nowMs` is the clock of the scoreboard. */
export function rowStatus(
  row: Row,
  nowMs: number,
  of: Pick<LoopStatus, 'loop' | 'utilization'>,
): RowStatus {
  return {
    ...of,
    state: row.state,
    openConnections: row.get(boardAt.open) + row.get(boardAt.filesOpen),
    connections: row.get(boardAt.placed),
    requestsInFlight: row.get(boardAt.inFlight),
    requests: row.get(boardAt.requests) + row.get(boardAt.filesSent),
    bytesWritten: (row.get(boardAt.kibWritten) + row.get(boardAt.filesKib)) * 1024,
    acceptsItself: row.get(boardAt.direct) === 1,
    lagMs: row.get(boardAt.lagMs),
    blockedMs: silentMs(row, nowMs),
    turnedAway: row.get(boardAt.turnedAway),
    takenAway: row.get(boardAt.takenAway),
    takenOver: row.get(boardAt.takenOver),
  };
}

/**
 * Parses loops, also from another version of manycore: invalid loops are omitted, invalid numbers are 0.
 */
export function loopsIn(value: unknown): LoopStatus[] {
  if (!Array.isArray(value)) return [];
  return value.filter((each) => typeof each === 'object' && each !== null).map(loopIn);
}

function loopIn(given: Readonly<Partial<Record<keyof LoopStatus, unknown>>>): LoopStatus {
  const { pid, lastExit, state } = given;
  const number = (name: keyof LoopStatus): number => {
    const value = given[name];
    return typeof value === 'number' ? value : 0;
  };
  return {
    process: number('process'),
    pid: typeof pid === 'number' ? pid : undefined,
    generation: number('generation'),
    ageMs: number('ageMs'),
    rssBytes: number('rssBytes'),
    lastExit: typeof lastExit === 'string' ? lastExit : undefined,
    loop: number('loop'),
    state: loopStates.find((known) => known === state) ?? 'free',
    utilization: number('utilization'),
    openConnections: number('openConnections'),
    connections: number('connections'),
    requestsInFlight: number('requestsInFlight'),
    requests: number('requests'),
    bytesWritten: number('bytesWritten'),
    acceptsItself: given.acceptsItself === true,
    lagMs: number('lagMs'),
    blockedMs: number('blockedMs'),
    turnedAway: number('turnedAway'),
    takenAway: number('takenAway'),
    takenOver: number('takenOver'),
  };
}
