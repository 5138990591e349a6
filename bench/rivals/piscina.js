// piscina, threads: its defaults, and with the settings that its README names for speed (several
// tasks per worker, no timing records). Atomics and the faster queue are on in both.
import { fileURLToPath } from 'node:url';
import { FixedQueue, move, Piscina } from 'piscina';

const filename = fileURLToPath(new URL('./workers/piscina.js', import.meta.url));

/** `kind`: 'piscina' (one task per worker) or 'piscina-ahead' (eight). */
export function open(kind, { workers }) {
  const ahead = kind === 'piscina-ahead';
  const pool = new Piscina({
    filename,
    minThreads: workers,
    maxThreads: workers,
    atomics: 'sync',
    taskQueue: new FixedQueue(),
    ...(ahead ? { concurrentTasksPerWorker: 8, recordTiming: false } : {}),
  });
  return {
    theirs: pool,
    caller(name) {
      const options = { name };
      return (argument) => pool.run(argument, options);
    },
    mover() {
      const options = { name: 'touchAndMove' };
      return (bytes) => pool.run(move(bytes), options);
    },
    close: () => pool.destroy(),
  };
}
