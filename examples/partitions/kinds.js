// Kinds of workers, from the least to the most separated, and the reason why a machine has none of a kind.
import { Pool, partitionProblem } from 'manycore';

export const kinds = {
  thread: { says: 'threads', worker: 'thread' },
  process: { says: 'processes', worker: 'process' },
  sandbox: { says: 'sandboxes', worker: { kind: 'sandbox' }, problem: partitionProblem },
  uml: { says: 'guests of User-mode Linux', worker: { kind: 'vm', engine: 'uml' } },
  gvisor: { says: 'guests of gVisor', worker: { kind: 'vm', engine: 'gvisor' } },
};

/** Resolves to the reason why there can be no such worker; to `undefined` where one has answered. */
export async function problemOf(kind) {
  const { worker, problem } = kinds[kind];
  const known = problem?.();
  if (known !== undefined) return known.message;
  let pool;
  try {
    pool = new Pool({ worker, size: 1, startRetryMs: 0 });
    await pool.run(() => true);
    return undefined;
  } catch (error) {
    if (error.code === 'PARTITION_UNAVAILABLE') return error.message;
    throw error;
  } finally {
    await pool?.destroy();
  }
}
