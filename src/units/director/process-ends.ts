// Ends of processes, by pid: their supervisor and the channels of their loops report it in any order.

import { beforeDeadline, type Deferred, defer, setTimeout } from '../../lib/index.js';

/** Time for the supervisor's report, in ms; without one nothing from outside is known. */
const reportMs = 2000;
/** A report is forgotten after this time, in ms: pids are used again. */
const keptMs = 10_000;

export interface ProcessEnd {
  readonly why: string;
  readonly isFromOutside: boolean;
}

const unknownEnd: ProcessEnd = { why: 'it ended', isFromOutside: false };

export class ProcessEnds {
  readonly #reports = new Map<number, Deferred<ProcessEnd>>();

  note(pid: number, end: ProcessEnd): void {
    this.#reportOf(pid).resolve(end);
  }

  /** Never rejects. */
  async of(pid: number): Promise<ProcessEnd> {
    const onDeadline = (): Error => new Error('no report');
    const report = this.#reportOf(pid).promise;
    return await beforeDeadline(report, { deadlineMs: reportMs, onDeadline }).catch(
      () => unknownEnd,
    );
  }

  #reportOf(pid: number): Deferred<ProcessEnd> {
    const known = this.#reports.get(pid);
    if (known !== undefined) return known;
    const report = defer<ProcessEnd>();
    this.#reports.set(pid, report);
    setTimeout(() => this.#reports.delete(pid), keptMs).unref();
    return report;
  }
}
