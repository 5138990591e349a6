// The same with piscina, the most used pool of worker threads.
import { Piscina } from 'piscina';

export async function compareAll(pairs) {
  const pool = new Piscina({ filename: new URL('./worker-pool-worker.js', import.meta.url).href });
  try {
    return await Promise.all(pairs.map((pair) => pool.run(pair)));
  } finally {
    await pool.destroy();
  }
}
