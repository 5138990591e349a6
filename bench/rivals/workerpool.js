// workerpool in threads and in processes; processes with `serialization: 'advanced'`, which it needs
// for buffers and which its README leaves to `forkOpts`.
import { fileURLToPath } from 'node:url';
import workerpool from 'workerpool';

const script = fileURLToPath(new URL('./workers/workerpool.js', import.meta.url));

/** `kind`: 'workerpool-thread' or 'workerpool-process'. */
export function open(kind, { workers }) {
  const pool = workerpool.pool(script, {
    minWorkers: workers,
    maxWorkers: workers,
    workerType: kind === 'workerpool-process' ? 'process' : 'thread',
    forkOpts: { serialization: 'advanced' },
  });
  return {
    caller: (name) => (argument) => pool.exec(name, [argument]),
    ...(kind === 'workerpool-process' ? {} : { mover }),
    close: () => pool.terminate(true),
  };

  function mover() {
    return (bytes) => pool.exec('touchAndMove', [bytes], { transfer: [bytes.buffer] });
  }
}
