// Fibonacci numbers in a loop, without messages: the limit of a core of this machine while the others do the
// same. Prints how many it made per second. Arguments: warm-up and window in ms.
import { fib } from './tasks.js';

const [warmMs, windowMs] = process.argv.slice(2).map(Number);

function countUntil(endMs) {
  let count = 0;
  for (; performance.now() < endMs; count++) fib(28);
  return count;
}

countUntil(performance.now() + warmMs);
const startMs = performance.now();
const count = countUntil(startMs + windowMs);
process.stdout.write(`${(count / (performance.now() - startMs)) * 1000}\n`);
