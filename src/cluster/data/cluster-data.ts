// The shared data of a cluster, for a program or one of its loops.

import { DataSpace } from '../../shared-data/index.js';
import { noServer } from '../errors.js';
import type { FilledClusterOptions } from '../options.js';
import type { KvLink } from './kv-link.js';
import { KvStore } from './kv-store.js';

/** `link` may resolve later: calls wait for it until their deadlines. */
export function clusterData(
  { name: cluster, secret }: Pick<FilledClusterOptions, 'name' | 'secret'>,
  link: Promise<KvLink>,
): DataSpace {
  link.catch(() => {}); // calls report it
  const hasSecret = secret !== undefined;
  return new DataSpace(
    (name, timeoutMs) => new KvStore({ link, cluster, hasSecret, name, timeoutMs }),
  );
}

/** That of a cluster without a server, which has none: a lock there would exclude no other program. */
export const noData = new DataSpace(() => {
  throw noServer('programs share data');
});
