// Which processes are to be replaced because of what they did or became, while they still serve well:
// after so many connections (Apache's MaxConnectionsPerChild), or above so much memory. Both mend leaks
// of programs that cannot be mended.

import { rssBytesOf } from '../proc/index.js';
import { boardAt, type Row } from './board.js';
import type { FilledServeOptions } from './options.js';
import type { ServerProcess } from './server-process.js';

/** Processes that were started together are not to be replaced together. */
const jitter = 0.1;

type Worn = Pick<ServerProcess, 'state' | 'pid'>;

export class Wear {
  readonly #options: Pick<FilledServeOptions, 'maxConnectionsPerWorker' | 'maxRssBytes'>;
  readonly #mostConnections = new WeakMap<Worn, number>();

  constructor(options: Pick<FilledServeOptions, 'maxConnectionsPerWorker' | 'maxRssBytes'>) {
    this.#options = options;
  }

  isWorn(process: Worn, rows: readonly Row[]): boolean {
    if (process.state !== 'ready') return false;
    const { maxRssBytes } = this.#options;
    if (maxRssBytes !== Infinity && rssBytesOf(process.pid) > maxRssBytes) return true;
    const connections = rows.reduce((sum, row) => sum + row.get(boardAt.placed), 0);
    return connections > this.#mostConnectionsOf(process);
  }

  #mostConnectionsOf(process: Worn): number {
    const known = this.#mostConnections.get(process);
    if (known !== undefined) return known;
    const share = 1 - jitter + 2 * jitter * Math.random();
    const most = Math.round(this.#options.maxConnectionsPerWorker * share);
    this.#mostConnections.set(process, most);
    return most;
  }
}
