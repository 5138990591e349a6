// From which duration on does a callback gain by leaving its loop, and where do we lose?
import { openContender } from '../lib/contenders.js';
import { micros, runsOf } from '../lib/figures.js';
import { countCalls, expectSame } from '../lib/measure.js';
import { spin } from '../lib/tasks.js';

// Turns of the loop in `spin`: about a nanosecond each; what they really take is the inline figure.
const turnsOf = { empty: 0, '1us': 1_000, '10us': 10_000, '100us': 100_000, '1ms': 1_000_000 };
const contenders = ['inline', 'manycore-process', 'manycore-process+one', 'piscina'];

export default {
  figures: { perCallUs: micros('per call') },
  settings: Object.fromEntries(
    Object.keys(turnsOf).map((name) => [
      name,
      { says: `work of ${name}; "+one": awaited one by one, else 64 waiting on 2 workers` },
    ]),
  ),
  runs: Object.keys(turnsOf).flatMap((setting) => runsOf(setting, contenders)),
  bars: [],
  async measure({ contender, setting, scale }) {
    const turns = turnsOf[setting];
    const windows = { warmMs: 500 * scale, windowMs: 200 * scale };
    if (contender === 'inline') return { perCallUs: timeInline(turns, windows) };
    const { caller } = await openContender(contender);
    const call = caller('spin');
    expectSame(await call(turns), spin(turns));
    const waiting = contender.endsWith('+one') ? 1 : 64;
    const { perSecond } = await countCalls(() => call(turns), waiting, windows);
    return { perCallUs: 1e6 / perSecond };
  },
};

/** The plain way: the callback runs where it arrived. */
function timeInline(turns, { warmMs, windowMs }) {
  let calls = 0;
  let sum = 0;
  let start = performance.now();
  const warmEnd = start + warmMs;
  while (performance.now() < warmEnd) sum += spin(turns);
  start = performance.now();
  const end = start + windowMs;
  let now = start;
  do {
    for (let repeat = 0; repeat < 16; repeat++) sum += spin(turns);
    calls += 16;
    now = performance.now();
  } while (now < end);
  if (Number.isNaN(sum)) throw new Error('not a number'); // the sum must be used
  return ((now - start) / calls) * 1000;
}
