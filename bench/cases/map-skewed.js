// Nine items in ten are tiny and the tenth takes 100 times as long: does a host end up last alone?
// `over ideal` is the time of the map over the work of all items divided by the hosts. The work is
// what the hosts say they ran, so it leaves out what the machine takes away from both.
import { openContender } from '../lib/contenders.js';
import { counted, perSecond, runsOf } from '../lib/figures.js';
import { randomNumbers } from '../lib/inputs.js';
import { timeMap, warmPool } from '../lib/maps.js';
import { expectSame } from '../lib/measure.js';
import { spin } from '../lib/tasks.js';

const hosts = 2;
const itemCount = 4000;
const heavyTurns = 3_000_000;
const rivals = ['piscina', 'piscina-ahead'];
const side = (contender) => ({ setting: 'skewed', contender });

export default {
  figures: {
    itemsPerSecond: perSecond('items'),
    overIdeal: counted('time over ideal', '×'),
  },
  settings: { skewed: { says: '4,000 items, 10 % of them 100 times as long, 2 hosts', cores: 2 } },
  runs: runsOf('skewed', ['manycore', ...rivals]),
  deadlineMs: 60_000,
  bars: [
    {
      says: 'skewed load, time against the ideal (work / hosts)',
      figure: 'overIdeal',
      of: side('manycore'),
      atMost: 1.1,
    },
    {
      says: 'skewed load, against the best rival',
      figure: 'itemsPerSecond',
      of: side('manycore'),
      against: rivals.map(side),
      atLeast: 1,
    },
  ],
  async measure({ contender, scale }) {
    const items = skewed(Math.round(itemCount * scale));
    const last = items.length - 1;
    if (contender === 'manycore') {
      const pool = await warmPool({ hosts });
      await timeMap(items, spin, { pool }); // once for V8, as for rivals: theirs takes longer
      const { figures, stats, tookMs, results } = await timeMap(items, spin, { pool });
      expectSame(results[last], spin(items[last]));
      return { itemsPerSecond: figures.itemsPerSecond, overIdeal: tookMs / (stats.ranMs / hosts) };
    }
    const { caller } = await openContender(contender, { hosts });
    const call = caller('spin');
    await Promise.all(items.map(call));
    const start = performance.now();
    const results = await Promise.all(items.map(call));
    const tookMs = performance.now() - start;
    expectSame(results[last], spin(items[last]));
    return { itemsPerSecond: (items.length / tookMs) * 1000 };
  },
};

/** Turns of `spin` for each item, the same in every process. */
function skewed(count) {
  const random = randomNumbers(20_260_101);
  return Array.from({ length: count }, () =>
    random() < 0.1 ? heavyTurns : Math.round(heavyTurns / 100),
  );
}
