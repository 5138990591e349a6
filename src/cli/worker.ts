// `manycore worker --nats URL`: lends hosts of this machine to the pools of a cluster, in the foreground.
// TERM and INT end it, once the tasks that run have ended or at a deadline; a second one ends it at once.

import type { Cluster, Worker } from '../cluster/index.js';
import { bus, cluster } from '../units/index.js';
import { type ClusterFlags, clusterOptions, plural, tellCluster } from './cluster-flags.js';
import { tellLosses } from './tell-losses.js';

export interface WorkerFlags extends ClusterFlags {
  readonly hosts?: number | undefined;
  readonly drainTimeoutMs?: number | undefined;
}

/** Resolves when it lends. Throws as `cluster` and `Cluster.lendHosts`. */
export async function runWorker(nats: string, given: WorkerFlags): Promise<void> {
  const { hosts, drainTimeoutMs, ...flags } = given;
  tellLosses('units');
  const joined = await cluster(clusterOptions(nats, flags));
  try {
    const worker = joined.lendHosts(hosts, { drainTimeoutMs });
    endAtSignals(joined, worker);
    await bus.drained(); // the servers know of them
    console.log(`lends ${plural(worker.hosts, 'host')}`);
  } catch (error) {
    await joined.close();
    throw error;
  }
  tellCluster(joined);
  joined.closed.catch(() => process.exit(1)); // told by tellCluster
}

function endAtSignals(joined: Cluster, worker: Worker): void {
  let isEnding = false;
  const end = (): void => {
    if (isEnding) {
      void worker.destroy();
      process.exit(1);
    }
    isEnding = true;
    if (worker.lentHosts > 0) {
      const what = plural(worker.lentHosts, 'host');
      console.log(`lets the tasks of ${what} end; once more ends them at once`);
    }
    joined.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
}
