// `manycore worker --nats URL`: lends workers of this machine to the pools of a cluster, in the foreground.
// TERM and INT end it when the running tasks have ended, or at a deadline; a second signal ends it at once.

import { pathToFileURL } from 'node:url';
import type { Cluster, WorkerProvider } from '../../../cluster/index.js';
import { bus, cluster } from '../../../units/index.js';
import { type ClusterFlags, clusterOptions, plural, printCluster } from '../../cluster-flags.js';
import { reportLosses } from '../../report-losses.js';

export interface WorkerFlags extends ClusterFlags {
  readonly workers?: number | undefined;
  readonly durable?: boolean | undefined;
  /** Paths of modules. */
  readonly module?: readonly string[] | undefined;
  readonly drainTimeoutMs?: number | undefined;
}

/** Resolves when workers are offered. Rejects with the errors of `cluster` and `Cluster.lendWorkers`. */
export async function runWorker(nats: string, given: WorkerFlags): Promise<void> {
  const { workers, durable, module, drainTimeoutMs, ...flags } = given;
  reportLosses('units');
  const joined = await cluster(clusterOptions(nats, flags));
  try {
    const modules = module?.map((file) => pathToFileURL(file));
    const provider = await joined.lendWorkers(workers, { durable, modules, drainTimeoutMs });
    installSignalHandlers(joined, provider);
    await bus.drained(); // the NATS servers have received the subscriptions
    const tasks = durable || modules ? ', and takes durable tasks' : '';
    console.log(`lends ${plural(provider.workers, 'worker')}${tasks}`);
  } catch (error) {
    await joined.close();
    throw error;
  }
  printCluster(joined);
  joined.closed.catch(() => process.exit(1)); // printCluster prints the reason
}

function installSignalHandlers(joined: Cluster, provider: WorkerProvider): void {
  let isEnding = false;
  const end = (): void => {
    if (isEnding) {
      void provider.destroy();
      process.exit(1);
    }
    isEnding = true;
    const busyWorkers = provider.lentWorkers + provider.runningTasks;
    if (busyWorkers > 0) {
      const what = plural(busyWorkers, 'worker');
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
