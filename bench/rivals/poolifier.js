// poolifier: fixed pools of threads and of cluster processes. It has no way to transfer a result.
import { fileURLToPath } from 'node:url';
import { FixedClusterPool, FixedThreadPool } from 'poolifier';

const path = (name) => fileURLToPath(new URL(`./workers/${name}`, import.meta.url));

/** `kind`: 'poolifier-thread' or 'poolifier-cluster'. */
export function open(kind, { workers }) {
  const pool =
    kind === 'poolifier-cluster'
      ? new FixedClusterPool(workers, path('poolifier-cluster.cjs'), {
          settings: { serialization: 'advanced' },
        })
      : new FixedThreadPool(workers, path('poolifier-thread.js'));
  return {
    caller: (name) => (argument) => pool.execute(argument, name),
    mapper: (name) => (items) => pool.mapExecute(items, name),
    close: () => pool.destroy(),
  };
}
