// Nine items in ten are tiny and the tenth takes 100 times as long: does a worker end up last alone?
// `over ideal` is the time of the map over the work of all items divided by the workers. The workers report
// the work, so it leaves out the time that the machine takes away from both. No rivals: the case measures our
// chunks, and theirs depend on how fast V8 compiles a long loop in a thread.
import { counted, perSecond, runsOf } from '../lib/figures.js';
import { randomNumbers } from '../lib/inputs.js';
import { timeMap, warmPool } from '../lib/maps.js';
import { expectSame } from '../lib/measure.js';
import { spin } from '../lib/tasks.js';

const workers = 2;
const itemCount = 4000;
const heavyTurns = 3_000_000;
const side = (contender) => ({ setting: 'skewed', contender });

export default {
  figures: {
    itemsPerSecond: perSecond('items'),
    overIdeal: counted('time over ideal', '×'),
  },
  settings: {
    skewed: { says: '4,000 items, 10 % of them 100 times as long, 2 workers', cores: 2 },
  },
  runs: runsOf('skewed', ['manycore']),
  deadlineMs: 60_000,
  bars: [
    {
      says: 'skewed load, time against the ideal (work / workers)',
      figure: 'overIdeal',
      of: side('manycore'),
      atMost: 1.1,
    },
  ],
  async measure({ scale }) {
    const items = skewed(Math.round(itemCount * scale));
    const last = items.length - 1;
    const pool = await warmPool({ workers });
    await timeMap(items, spin, { pool });
    const { figures, stats, tookMs, results } = await timeMap(items, spin, { pool });
    expectSame(results[last], spin(items[last]));
    return { itemsPerSecond: figures.itemsPerSecond, overIdeal: tookMs / (stats.ranMs / workers) };
  },
};

/** Turns of `spin` for each item, the same in every process. */
function skewed(count) {
  const random = randomNumbers(20_260_101);
  return Array.from({ length: count }, () =>
    random() < 0.1 ? heavyTurns : Math.round(heavyTurns / 100),
  );
}
