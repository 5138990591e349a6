// Time limits, cancellation and full queues are errors with a code; nothing is left running.
import { hasCode, Pool } from 'manycore';

const pool = new Pool({ size: 1, maxWaitingTasks: 100, graceMs: 100 });

try {
  await pool.with({ timeoutMs: 200 }).run(() => {
    for (;;); // never ends by itself
  });
} catch (error) {
  console.log(hasCode(error, 'TASK_TIMED_OUT'), error.message);
}

const controller = new AbortController();
const waiting = pool.with({ signal: controller.signal }).run(() => 'never asked for');
controller.abort();
console.log(await waiting.catch((error) => error.code));

console.log(await pool.run((a, b) => a + b, 40, 2)); // the pool lives on
await pool.close();
