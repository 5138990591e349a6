// Recycling: processes that serve well are replaced after a number of connections (Apache's
// MaxConnectionsPerChild), or above a memory limit. Both contain leaks of programs that cannot be fixed.

import { rssBytesOf } from '../../proc/index.js';
import type { FilledServeOptions } from '../options.js';
import { boardAt, type Row } from '../shared/board.js';
import type { ServerProcess } from './server-process.js';

/** Spreads the limit, so that processes which started together are not replaced together. */
const jitter = 0.1;

type RecycledProcess = Pick<ServerProcess, 'state' | 'pid'>;

export class Recycling {
  readonly #options: Pick<FilledServeOptions, 'maxConnectionsPerProcess' | 'maxRssBytes'>;
  readonly #maxConnections = new WeakMap<RecycledProcess, number>();

  constructor(options: Pick<FilledServeOptions, 'maxConnectionsPerProcess' | 'maxRssBytes'>) {
    this.#options = options;
  }

  shouldRecycle(process: RecycledProcess, rows: readonly Row[]): boolean {
    if (process.state !== 'ready') return false;
    const { maxRssBytes } = this.#options;
    if (maxRssBytes !== Infinity && rssBytesOf(process.pid) > maxRssBytes) return true;
    const connections = rows.reduce((sum, row) => sum + row.get(boardAt.placed), 0);
    return connections > this.#maxConnectionsOf(process);
  }

  #maxConnectionsOf(process: RecycledProcess): number {
    const known = this.#maxConnections.get(process);
    if (known !== undefined) return known;
    const share = 1 - jitter + 2 * jitter * Math.random();
    const max = Math.round(this.#options.maxConnectionsPerProcess * share);
    this.#maxConnections.set(process, max);
    return max;
  }
}
