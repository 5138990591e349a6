// A function that runs in idle processes, many calls at a time; results may be instances of your classes.
import { parallel } from 'manycore';

class Score {
  constructor(name, value) {
    this.name = name;
    this.value = value;
  }
  toString() {
    return `${this.name}: ${this.value}`;
  }
}

const countPrimes = parallel((limit) => {
  let count = 0;
  for (let n = 2; n < limit; n += 1) {
    let divisor = 2;
    while (divisor * divisor <= n && n % divisor !== 0) divisor += 1;
    if (divisor * divisor > n) count += 1;
  }
  return new Score(`primes below ${limit}`, count);
});

const scores = await Promise.all([10_000, 20_000, 40_000, 80_000].map((n) => countPrimes(n)));
for (const score of scores) console.log(score instanceof Score, `${score}`);
