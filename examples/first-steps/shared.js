// 64 MiB that every worker uses in place: nothing is copied, in either direction.
import { Pool, shared } from 'manycore';

const pool = new Pool({ size: 2 });
const pixels = shared(64 * 1024 * 1024);
const half = pixels.length / 2;

await Promise.all(
  [0, half].map((start) =>
    pool.run(
      (from, to) => {
        pixels.fill(from === 0 ? 1 : 2, from, to);
      },
      start,
      start + half,
    ),
  ),
);

console.log(pixels[0], pixels[half - 1], pixels[half], pixels[pixels.length - 1]);
await pool.close();
