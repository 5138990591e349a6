// manycore as one of the contenders: the same interface as bench/rivals/*.js.
// Not here: closures and shared memory, which no rival has; their cases use `pool` directly.
import { Pool } from 'manycore';
import * as tasks from './tasks.js';

/** `kind`: 'manycore-process' or 'manycore-thread', then '-each' for one task per worker at a time. */
export function open(kind, { workers }) {
  const pool = new Pool({
    worker: kind.startsWith('manycore-thread') ? 'thread' : 'process',
    size: workers,
    ...(kind.endsWith('-each') ? { maxTasksAhead: 1 } : {}),
  });
  return {
    pool,
    caller(name) {
      const task = tasks[name];
      return (argument) => pool.run(task, argument);
    },
    close: () => pool.destroy(),
  };
}
