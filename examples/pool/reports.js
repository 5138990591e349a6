// A task that reports while it runs: the caller shows progress, and the task waits for a slow caller.
import { report, run } from 'manycore';

async function countPrimes(below) {
  let count = 0;
  for (let number = 2; number < below; number += 1) {
    if (isPrime(number)) count += 1;
    if (number % 5_000 === 0) await report({ number, count });
  }
  return count;
}

function isPrime(number) {
  for (let by = 2; by * by <= number; by += 1) if (number % by === 0) return false;
  return true;
}

const onReport = ({ number, count }) => console.log(`up to ${number}: ${count}`);
console.log('in all', await run.with({ onReport })(countPrimes, 20_001));
