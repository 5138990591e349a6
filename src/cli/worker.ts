// `manycore worker --nats URL`: lends hosts of this machine to the pools of a cluster, in the foreground.
// TERM and INT end it, with its hosts; a second one ends it at once.

import { pathToFileURL } from 'node:url';
import { bus, cluster } from '../units/index.js';
import { type ClusterFlags, clusterOptions, plural, tellCluster } from './cluster-flags.js';
import { tellLosses } from './tell-losses.js';

export interface WorkerFlags extends ClusterFlags {
  readonly hosts?: number | undefined;
  readonly durable?: boolean | undefined;
  /** Paths. */
  readonly module?: readonly string[] | undefined;
}

/** Resolves when it lends. Throws as `cluster` and `Cluster.lendHosts`. */
export async function runWorker(
  nats: string,
  { hosts, durable, module, ...flags }: WorkerFlags,
): Promise<void> {
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
    const modules = module?.map((file) => pathToFileURL(file));
    const worker = await joined.lendHosts(hosts, { durable, modules });
    await bus.drained(); // the servers know of them
    const tasks = durable || modules ? ', and takes durable tasks' : '';
    console.log(`lends ${plural(worker.hosts, 'host')}${tasks}`);
  } catch (error) {
    await joined.close();
    throw error;
  }
  tellCluster(joined);
  joined.closed.catch(() => process.exit(1)); // told by tellCluster
}
