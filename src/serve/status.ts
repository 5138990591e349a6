// The scoreboard for people and programs: one line for each loop.

import { boardAt, type LoopState, loopStates, type Row } from './board.js';

import { silentMs } from './watch.js';

export interface LoopStatus {
  /** The number of its process in the scoreboard; the next process there has the same. */
  readonly process: number;
  readonly pid: number | undefined;
  /** Of its process: how many reloads came before its start. */
  readonly generation: number;
  /** Since its process was started, in ms. */
  readonly ageMs: number;
  /** Memory of its process, in bytes. */
  readonly rssBytes: number;
  /** How the process before that had this number ended. */
  readonly lastExit: string | undefined;
  /** Its index in its process. */
  readonly loop: number;
  readonly state: LoopState;
  /** The share of the last second in which it had work, 0 to 1. */
  readonly utilization: number;
  readonly openConnections: number;
  /** Connections that it got since its start. */
  readonly connections: number;
  /** Requests of HTTP that wait for their answer. */
  readonly requestsInFlight: number;
  /** Requests of HTTP that it answered since its start. */
  readonly requests: number;
  /** Written to connections that were closed, in whole KiB. */
  readonly bytesWritten: number;
  /** Whether it accepts connections by itself, as busy loops do, not over the listener thread. */
  readonly acceptsItself: boolean;
  /**
   * How long the last question of the listener thread waited for the loop, in ms: it is asked each second
   * while it holds connections.
   */
  readonly lagMs: number;
  /** For so long it has given no sign of life, in ms; 0 for a live one. */
  readonly blockedMs: number;
  /** Connections that were answered by 503 for all loops of its process; in the line of its first. */
  readonly turnedAway: number;
}

export type RowStatus = Omit<
  LoopStatus,
  'process' | 'pid' | 'generation' | 'ageMs' | 'rssBytes' | 'lastExit'
>;

/** What a row says of its loop. `nowMs` is the clock of the scoreboard. */
export function rowStatus(
  row: Row,
  nowMs: number,
  of: Pick<LoopStatus, 'loop' | 'utilization'>,
): RowStatus {
  return {
    ...of,
    state: row.state,
    openConnections: row.get(boardAt.open),
    connections: row.get(boardAt.placed),
    requestsInFlight: row.get(boardAt.inFlight),
    requests: row.get(boardAt.requests),
    bytesWritten: row.get(boardAt.kibWritten) * 1024,
    acceptsItself: row.get(boardAt.direct) === 1,
    lagMs: row.get(boardAt.lagMs),
    blockedMs: silentMs(row, nowMs),
    turnedAway: row.get(boardAt.turnedAway),
  };
}

/**
 * Loops as another version of manycore may tell them: what is no loop is left out, what is no number is 0.
 */
export function loopsIn(value: unknown): LoopStatus[] {
  if (!Array.isArray(value)) return [];
  return value.filter((each) => typeof each === 'object' && each !== null).map(loopIn);
}

function loopIn(told: Readonly<Partial<Record<keyof LoopStatus, unknown>>>): LoopStatus {
  const { pid, lastExit, state } = told;
  const number = (name: keyof LoopStatus): number => {
    const value = told[name];
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
    acceptsItself: told.acceptsItself === true,
    lagMs: number('lagMs'),
    blockedMs: number('blockedMs'),
    turnedAway: number('turnedAway'),
  };
}
