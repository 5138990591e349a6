// A pool with workers that open and close something, a producer that waits for room, and an end in time.
import { Pool, perWorker } from 'manycore';

const log = perWorker(() => ({
  lines: 0,
  [Symbol.dispose]() {
    console.log('a worker leaves');
  },
}));

const pool = new Pool({ size: { min: 1, max: 2 }, maxWaitingTasks: 4 });
pool.on('error', (error) => console.error(error.message)); // a worker that ended between tasks

const results = [];
for (let number = 0; number < 20; number += 1) {
  await pool.hasRoom();
  results.push(
    pool.run((value) => {
      log().lines += 1;
      return value * 2;
    }, number),
  );
}
console.log((await Promise.all(results)).at(-1));

pool.resize(1);
await pool.recycle();
console.log(await pool.run((a, b) => a + b, 40, 2));
await pool.close({ timeoutMs: 10_000 });
