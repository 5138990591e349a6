// A generator that runs in a worker: its items arrive as they are made, never far ahead of the reader.
import { run } from 'manycore';

const fibonacci = await run(function* (count) {
  let [a, b] = [0n, 1n];
  for (let made = 0; made < count; made += 1) {
    yield a;
    [a, b] = [b, a + b];
  }
}, 90);

for await (const number of fibonacci) {
  if (number > 1_000n) break; // ends the generator in its worker as well
  console.log(number);
}
