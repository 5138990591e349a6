// Ends of processes, by pid, and of single loops in them: their supervisor and the channels of their loops report
// it in any order.

import { beforeDeadline, type Deferred, defer, setTimeout } from '../../lib/index.js';
import type { LostProcess } from '../../serve/index.js';

/** Time for the supervisor's report, in ms; without one nothing from outside is known. */
const reportMs = 2000;
/** A report is forgotten after this time, in ms: pids are used again. */
const keptMs = 10_000;

export interface ProcessEnd {
  readonly what: 'process' | 'loop';
  readonly why: string;
  readonly isFromOutside: boolean;
}

const unknownEnd: ProcessEnd = { what: 'process', why: 'it ended', isFromOutside: false };

export class ProcessEnds {
  readonly #reports = new Map<string, Deferred<ProcessEnd>>();

  /** Takes the report of a supervisor. */
  note({ pid, loop, why, isFromOutside }: LostProcess): void {
    if (pid === undefined) return;
    const what = loop === undefined ? 'process' : 'loop';
    this.#reportOf(pid, loop).resolve({ what, why, isFromOutside });
  }

  /** Resolves with the end of a process, or with that of this loop alone. Never rejects. */
  async of(pid: number, loop: number): Promise<ProcessEnd> {
    const onDeadline = (): Error => new Error('no report');
    const either = [this.#reportOf(pid).promise, this.#reportOf(pid, loop).promise];
    const options = { deadlineMs: reportMs, onDeadline };
    const end = await beforeDeadline(Promise.race(either), options).catch(() => unknownEnd);
    this.#reports.delete(nameOf(pid, loop)); // the loop that replaces it may end as well
    return end;
  }

  /** The end of this loop alone concerns nobody: its report must not count for the loop that replaces it. */
  drop(pid: number, loop: number): void {
    const name = nameOf(pid, loop);
    const report = this.#reportOf(pid, loop);
    void report.promise.then(() => {
      if (this.#reports.get(name) === report) this.#reports.delete(name);
    });
  }

  #reportOf(pid: number, loop?: number): Deferred<ProcessEnd> {
    const name = nameOf(pid, loop);
    const known = this.#reports.get(name);
    if (known !== undefined) return known;
    const report = defer<ProcessEnd>();
    this.#reports.set(name, report);
    const forget = (): void => {
      if (this.#reports.get(name) === report) this.#reports.delete(name);
    };
    setTimeout(forget, keptMs).unref();
    return report;
  }
}

function nameOf(pid: number, loop: number | undefined): string {
  return loop === undefined ? `${pid}` : `${pid}.${loop}`;
}
