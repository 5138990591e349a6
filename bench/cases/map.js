// A million items of about 1 µs: does a second core still help when items are that small?
// Rivals send a message for each item: piscina and tinypool with Promise.all, poolifier's mapExecute.
import { openContender } from '../lib/contenders.js';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { timeMap, warmPool } from '../lib/maps.js';
import { expectSame } from '../lib/measure.js';
import { treeCpuUs } from '../lib/processes.js';
import { mix } from '../lib/tasks.js';

const workers = 2;
const itemCount = 1_000_000;
const warmCount = 50_000;
const rivals = ['piscina-ahead', 'tinypool-thread-ahead', 'poolifier-thread'];
const contenders = ['loop', 'manycore-typed', 'manycore-list', ...rivals];
const side = (contender) => ({ setting: 'million', contender });

export default {
  figures: { itemsPerSecond: perSecond('items'), cpuUsPerItem: micros('CPU per item') },
  settings: { million: { says: '1,000,000 numbers, about 1 µs each, 2 workers', cores: 2 } },
  runs: runsOf('million', contenders),
  deadlineMs: 180_000,
  quickSkips: ['tinypool-thread-ahead', 'poolifier-thread'],
  bars: [
    {
      says: '1,000,000 items of 1 µs, typed array, against a plain loop',
      figure: 'itemsPerSecond',
      of: side('manycore-typed'),
      against: [side('loop')],
      atLeast: 1.3,
    },
    {
      says: '1,000,000 items of 1 µs, typed array, against the best rival',
      figure: 'itemsPerSecond',
      of: side('manycore-typed'),
      against: rivals.map(side),
      atLeast: 20,
    },
    {
      says: 'the same with an ordinary array',
      figure: 'itemsPerSecond',
      of: side('manycore-list'),
      against: rivals.map(side),
      atLeast: 20,
    },
  ],
  async measure({ contender, scale }) {
    const count = Math.round(itemCount * scale);
    const { map, results } = await mapWith(contender, count);
    expectSame(results[count - 1], mix(count - 1));
    expectSame(results.length, count);
    return map;
  },
};

/** Fills `0 … count - 1` into a new array; a typed one for `Float64Array`. */
function numbers(count, Items) {
  return Items.from({ length: count }, (_, index) => index);
}

async function mapWith(contender, count) {
  if (contender === 'loop') return mapInLoop(count);
  if (contender.startsWith('manycore')) {
    const Items = contender === 'manycore-typed' ? Float64Array : Array;
    const pool = await warmPool({ workers });
    await timeMap(numbers(warmCount, Items), mix, { pool });
    const { figures, results } = await timeMap(numbers(count, Items), mix, { pool });
    return { map: figures, results };
  }
  return mapWithRival(contender, count);
}

async function mapInLoop(count) {
  const loop = (items) => {
    const results = new Float64Array(items.length);
    for (let at = 0; at < items.length; at++) results[at] = mix(items[at]);
    return results;
  };
  loop(numbers(warmCount, Float64Array));
  return timed(numbers(count, Float64Array), async (items) => loop(items));
}

async function mapWithRival(contender, count) {
  const { caller, mapper } = await openContender(contender, { workers });
  const call = caller('mix');
  const map = mapper?.('mix') ?? ((items) => Promise.all(items.map(call)));
  await map(numbers(warmCount, Array));
  return timed(numbers(count, Array), map);
}

async function timed(items, map) {
  const cpuBefore = treeCpuUs();
  const start = performance.now();
  const results = await map(items);
  const itemsPerSecond = (items.length / (performance.now() - start)) * 1000;
  return {
    map: { itemsPerSecond, cpuUsPerItem: (treeCpuUs() - cpuBefore) / items.length },
    results,
  };
}
