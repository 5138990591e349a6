// Reports loops that are blocked, with their stacks; notes processes that are stopped, and kills them in the end. A
// blocked loop is reported after two seconds, after five, and each time that the time without an answer has doubled.
// Time for which its process was stopped (SIGSTOP, a debugger) does not count: no callback ran then either.
// Not here: how both are detected (blocked-loops.ts), and how processes are replaced.

import { announcements } from '../../lib/index.js';
import type { FilledServeOptions } from '../options.js';
import type { Row } from '../shared/board.js';
import {
  blockedLoops,
  firstReportMs,
  secondReportMs,
  silentMs,
  stoppedMs,
} from './blocked-loops.js';
import { placeIn } from './stack-text.js';
import type { SupervisorSystem } from './system.js';

/** A process that has not answered for so long, though rung each second, is stopped. */
const stoppedAfterMs = 2000;
/** A running process has answered one of the last two rings; without an answer nothing is reported yet. */
const lateAfterMs = 1000;

/** The part of a server's process that is used here. */
export interface WatchedProcess {
  readonly number: number;
  readonly pid: number | undefined;
  readonly state: string;
  readonly servedMs: number;
  stackOf(loop: number): Promise<string | undefined>;
  kill(why: string): void;
}

/** The scoreboard and its clock. */
type Board = Pick<SupervisorSystem, 'rows' | 'nowMs'>;

interface SilentLoop<Process> {
  readonly process: Process;
  readonly loop: number;
  readonly ms: number;
}

/** A loop without an answer, since its last one. */
interface Watched {
  /** Time of the silence for which its process was stopped, in ms. */
  stoppedMs: number;
  /** Time of silence at which the next report is due, in ms. */
  dueMs: number;
  isReported: boolean;
  /** True: its stack is being taken. */
  isStackPending: boolean;
}

export class Liveness<Process extends WatchedProcess> {
  readonly #board: Board;
  /** Maximum silence of a loop, or of a stopped process. */
  #limitMs: number;
  readonly #watched = new Map<Row | undefined, Watched>();
  readonly #onStopped: (process: Process) => void;
  /** Processes that were stopped at the last check. */
  readonly #stopped = new WeakSet<Process>();

  /** `onStopped` is called once for each time that a process is stopped. */
  constructor(
    board: Board,
    { blockedTimeoutMs }: Pick<FilledServeOptions, 'blockedTimeoutMs'>,
    onStopped: (process: Process) => void = () => {},
  ) {
    this.#board = board;
    this.#limitMs = blockedTimeoutMs;
    this.#onStopped = onStopped;
  }

  renew({ blockedTimeoutMs }: Pick<FilledServeOptions, 'blockedTimeoutMs'>): void {
    this.#limitMs = blockedTimeoutMs;
  }

  /** Reports blocked loops; returns those that were reported and are blocked for too long. */
  reportBlocked(processes: readonly (Process | undefined)[]): SilentLoop<Process>[] {
    const overdue: SilentLoop<Process>[] = [];
    const blocked = this.#blocked(processes);
    for (const row of this.#watched.keys()) if (!blocked.has(row)) this.#watched.delete(row);
    for (const [row, { process, loop, ms: silentMs }] of blocked) {
      if (process.state !== 'ready') continue;
      const watched = this.#watchedAt(row);
      const stoppedMs = this.#stoppedMs(process);
      if (stoppedMs > stoppedAfterMs) watched.stoppedMs = silentMs;
      if (stoppedMs > lateAfterMs) continue;
      const ms = silentMs - watched.stoppedMs;
      if (watched.isReported && ms >= this.#limitMs) overdue.push({ process, loop, ms });
      else if (ms >= watched.dueMs && !watched.isStackPending)
        this.#report(row, watched, { process, loop, ms });
    }
    return overdue;
  }

  #watchedAt(row: Row | undefined): Watched {
    const found = this.#watched.get(row);
    if (found !== undefined) return found;
    const dueMs = Math.min(firstReportMs, this.#limitMs);
    const watched = { stoppedMs: 0, dueMs, isReported: false, isStackPending: false };
    this.#watched.set(row, watched);
    return watched;
  }

  #blocked(processes: readonly (Process | undefined)[]): Map<Row | undefined, SilentLoop<Process>> {
    const { rows } = this.#board;
    const found = blockedLoops(rows, this.#board.nowMs(), Math.min(firstReportMs, this.#limitMs));
    return new Map(
      found.flatMap(({ process: number, index, blockedMs }) => {
        const process = processes[number];
        const loop = { loop: index, ms: blockedMs };
        return process === undefined ? [] : [[rows[number]?.[index], { process, ...loop }]];
      }),
    );
  }

  #report(row: Row | undefined, watched: Watched, silent: SilentLoop<Process>): void {
    watched.isReported = true;
    watched.isStackPending = true;
    watched.dueMs = silent.ms < secondReportMs ? secondReportMs : 2 * silent.ms;
    void silent.process.stackOf(silent.loop).then((stack) => {
      watched.isStackPending = false;
      this.#announce(row, watched, silent, stack);
    });
  }

  /** Omits the stack of a loop that has come back meanwhile: it shows what ran afterwards. */
  #announce(
    row: Row | undefined,
    watched: Watched,
    { process, loop, ms }: SilentLoop<Process>,
    stack: string | undefined,
  ): void {
    const nowMs = row === undefined ? 0 : silentMs(row, this.#board.nowMs());
    const isBack = nowMs - watched.stoppedMs < ms;
    const details = isBack
      ? { blockedMs: ms, place: undefined, stack: undefined }
      : { blockedMs: nowMs - watched.stoppedMs, place: placeIn(stack), stack };
    announcements.serverBlocked.publish({ pid: process.pid, loop, ...details });
  }

  /**
   * Notes processes that are stopped (SIGSTOP, a debugger). Kills those that are for too long: nothing runs that
   * could drain.
   */
  checkStopped(processes: readonly (Process | undefined)[]): void {
    for (const each of processes) {
      if (each?.state !== 'ready' && each?.state !== 'draining') continue;
      const ms = this.#stoppedMs(each);
      const isStopped = ms > stoppedAfterMs;
      this.#noteStopped(each, isStopped);
      // A limit below that is one for callbacks: a running process may answer a ring late.
      if (isStopped && ms >= this.#limitMs) each.kill(`it was stopped for ${Math.round(ms)} ms`);
    }
  }

  #noteStopped(process: Process, isStopped: boolean): void {
    if (!isStopped) this.#stopped.delete(process);
    else if (!this.#stopped.has(process)) {
      this.#stopped.add(process);
      this.#onStopped(process);
    }
  }

  #stoppedMs({ number, servedMs }: Process): number {
    return stoppedMs(this.#board.rows[number] ?? [], this.#board.nowMs(), servedMs);
  }
}
