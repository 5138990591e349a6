// Recycling: processes that serve well are replaced after a number of connections (Apache's
// MaxConnectionsPerChild) or requests, at an age, or above a memory limit. All of them contain leaks of programs
// that cannot be fixed.

import { rssBytesOf } from '../../proc/index.js';
import type { FilledServeOptions } from '../options.js';
import { boardAt, type Row } from '../shared/board.js';
import type { ServerProcess } from './server-process.js';

/** Largest share of a limit that a process does without, so that those of one start do not end together. */
const jitter = 0.1;

type RecycledProcess = Pick<ServerProcess, 'state' | 'pid' | 'ageMs'>;
type Limits = Pick<
  FilledServeOptions,
  'maxConnectionsPerProcess' | 'maxRequestsPerProcess' | 'maxAgeMs' | 'maxRssBytes'
>;

export class Recycling {
  #limits: Limits;
  /** Share of each limit but that of memory, by process. */
  readonly #shares = new WeakMap<RecycledProcess, number>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  renew(limits: Limits): void {
    this.#limits = limits;
  }

  shouldRecycle(process: RecycledProcess, rows: readonly Row[]): boolean {
    if (process.state !== 'ready') return false;
    const { maxConnectionsPerProcess, maxRequestsPerProcess, maxAgeMs, maxRssBytes } = this.#limits;
    if (maxRssBytes !== Infinity && rssBytesOf(process.pid) > maxRssBytes) return true;
    const sum = (word: number): number => rows.reduce((total, row) => total + row.get(word), 0);
    const share = this.#shareOf(process);
    return (
      sum(boardAt.placed) >= maxConnectionsPerProcess * share ||
      sum(boardAt.requests) + sum(boardAt.filesSent) >= maxRequestsPerProcess * share ||
      process.ageMs >= maxAgeMs * share
    );
  }

  #shareOf(process: RecycledProcess): number {
    const known = this.#shares.get(process);
    if (known !== undefined) return known;
    const share = 1 - jitter * Math.random();
    this.#shares.set(process, share);
    return share;
  }
}
