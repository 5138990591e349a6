// The work: all Fibonacci numbers up to one, several times, divided over the workers of a pool.
import { Pool } from 'manycore';

// Not exported: it travels as its text. An export is imported again, from a file that no partition can read.
const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));

/** Resolves to the number `n`, computed in a worker. */
export const runFib = (pool, n) => pool.run(fib, n);

/** Returns the same without recursion. */
export function fibFast(n) {
  let [last, next] = [0, 1];
  for (let at = 0; at < n; at++) [last, next] = [next, last + next];
  return last;
}

/** Returns 1 … `largest`, `times` times, the long tasks first, so that no worker is last alone with one. */
export function numbersUpTo(largest, times) {
  return Array.from({ length: largest * times }, (_, at) => largest - Math.floor(at / times));
}

/** Resolves to the time of all numbers on `workers` workers that run already, in ms. */
export async function timeFibonacci(worker, workers, numbers) {
  // The next task goes to the first worker that is free; none waits behind a long one.
  const pool = new Pool({ worker, size: workers, maxTasksAhead: 1 });
  try {
    await pool.warm();
    await Promise.all(Array.from({ length: workers }, () => runFib(pool, numbers[0])));
    const begun = performance.now();
    const answers = await Promise.all(numbers.map((n) => runFib(pool, n)));
    const tookMs = performance.now() - begun;
    const wrong = numbers.find((n, at) => answers[at] !== fibFast(n));
    if (wrong !== undefined) throw new Error(`fib(${wrong}) is wrong`);
    return tookMs;
  } finally {
    await pool.close();
  }
}
