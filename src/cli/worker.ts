// `manycore worker --nats URL`: lends hosts of this machine to the pools of a cluster, in the foreground.
// TERM and INT end it, with its hosts; a second one ends it at once.

import { bus, cluster } from '../units/index.js';
import { type ClusterFlags, clusterOptions, plural, tellCluster } from './cluster-flags.js';
import { tellLosses } from './tell-losses.js';

export interface WorkerFlags extends ClusterFlags {
  readonly hosts?: number | undefined;
}

/** Resolves when it lends. Throws as `cluster` and `Cluster.lendHosts`. */
export async function runWorker(nats: string, { hosts, ...flags }: WorkerFlags): Promise<void> {
  tellLosses('units');
  const joined = await cluster(clusterOptions(nats, flags));
  let isEnding = false;
  const end = (): void => {
    if (isEnding) process.exit(1);
    isEnding = true;
    joined.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  try {
    const worker = joined.lendHosts(hosts);
    await bus.drained(); // the servers know of them
    console.log(`lends ${plural(worker.hosts, 'host')}`);
  } catch (error) {
    await joined.close();
    throw error;
  }
  tellCluster(joined);
  joined.closed.catch(() => process.exit(1)); // told by tellCluster
}
