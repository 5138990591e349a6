// tinypool in threads and in child processes: its defaults, and with several tasks per worker.
// Processes get `serialization: 'advanced'`, without which a buffer arrives as an object.
import { fileURLToPath } from 'node:url';
import { Tinypool } from 'tinypool';

const filename = fileURLToPath(new URL('./workers/tinypool.js', import.meta.url));

/** `kind`: 'tinypool-thread', 'tinypool-thread-ahead' or 'tinypool-process'. */
export function open(kind, { workers }) {
  const pool = new Tinypool({
    filename,
    minThreads: workers,
    maxThreads: workers,
    runtime: kind === 'tinypool-process' ? 'child_process' : 'worker_threads',
    ...(kind === 'tinypool-process' ? { serialization: 'advanced' } : {}),
    ...(kind === 'tinypool-thread-ahead' ? { concurrentTasksPerWorker: 8 } : {}),
  });
  return {
    theirs: pool,
    caller(name) {
      const options = { name };
      return (argument) => pool.run(argument, options);
    },
    ...(kind === 'tinypool-process' ? {} : { mover }),
    close: () => pool.destroy(),
  };

  function mover() {
    const options = { name: 'touchAndMove' };
    return (bytes) => pool.run(Tinypool.move(bytes), options);
  }
}
