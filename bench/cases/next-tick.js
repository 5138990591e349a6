// What does process.nextTick cost after V8 has collected an idle program, and after it with manycore in it?
// V8 collects twice eight seconds after a program has grown a little; here `gc` does it. Before, nextTick was
// called often enough to have notes on the shape of its objects, and not often enough to be optimised.
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Pool } from 'manycore';
import { micros, runsOf } from '../lib/figures.js';

const callsBefore = 1000;
const calls = 300_000;
const contenders = ['plain', 'plain-not-collected', 'manycore'];

export default {
  figures: { perCallUs: micros('per call') },
  settings: { chain: { says: 'each callback makes the next call' } },
  rounds: 7,
  runs: runsOf('chain', contenders),
  bars: [
    {
      says: 'nextTick after a collection, with manycore against plain',
      figure: 'perCallUs',
      of: { setting: 'chain', contender: 'manycore' },
      against: runsOf('chain', ['plain']),
      timesFaster: 3,
    },
  ],
  async measure({ contender }) {
    const pool = contender === 'manycore' ? new Pool({ size: { min: 0, max: 1 } }) : undefined;
    await chain(callsBefore);
    await sleep(20);
    if (contender !== 'plain-not-collected') await collect();
    await chain(calls); // compiled here
    const perCallUs = (await chain(calls)) / calls;
    await pool?.close();
    return { perCallUs };
  },
};

async function collect() {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  for (let round = 0; round < 3; round += 1) {
    gc();
    await sleep(20);
  }
}

/** Resolves to the time of `count` calls, in µs. */
function chain(count) {
  return new Promise((resolve) => {
    let left = count;
    const start = performance.now();
    const next = () => {
      left -= 1;
      if (left > 0) process.nextTick(next);
      else resolve((performance.now() - start) * 1000);
    };
    next();
  });
}
