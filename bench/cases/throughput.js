// How many calls that do nothing do 2 workers answer per second, and what CPU does one cost?
import { bareWays, openContender, rivalPools, slowRivals } from '../lib/contenders.js';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { countCalls, warmUpMs } from '../lib/measure.js';

const mine = { setting: 'many', contender: 'manycore-process' };
const pools = runsOf('many', rivalPools);
const threads = runsOf('many', ['bare-thread']);

export default {
  figures: {
    with64: perSecond('64 waiting'),
    with1000: perSecond('1,000 waiting'),
    cpu64Us: micros('CPU per call, 64 waiting'),
    each: perSecond('one per worker'),
    cpuEachUs: micros('CPU per call, one per worker'),
  },
  quickSkips: slowRivals,
  settings: {
    many: { says: 'as many calls sent ahead as the contender likes' },
    each: { says: 'one task per worker at a time, 64 waiting in the pool' },
  },
  runs: [
    ...runsOf('many', ['manycore-process', 'manycore-thread', ...rivalPools, ...bareWays]),
    ...runsOf('each', ['manycore-process-each', 'manycore-thread-each', 'piscina', 'bare-thread']),
  ],
  bars: [
    {
      says: 'calls/s, 64 waiting, against the best pool',
      figure: 'with64',
      of: mine,
      against: pools,
      atLeast: 8,
    },
    {
      says: 'calls/s, 64 waiting, against the best pool',
      figure: 'with64',
      of: mine,
      against: pools,
      atLeast: 20,
      isAim: true,
    },
    {
      says: 'calls/s, 1,000 waiting, against the best pool',
      figure: 'with1000',
      of: mine,
      against: pools,
      atLeast: 8,
    },
    {
      says: 'calls/s, 64 waiting, against bare threads',
      figure: 'with64',
      of: mine,
      against: threads,
      atLeast: 4,
    },
    {
      says: 'calls/s, 1,000 waiting, against bare threads',
      figure: 'with1000',
      of: mine,
      against: threads,
      atLeast: 4,
    },
    {
      says: "calls/s, one task per worker at a time, against piscina's default",
      figure: 'each',
      of: { setting: 'each', contender: 'manycore-process-each' },
      against: [{ setting: 'each', contender: 'piscina' }],
      atLeast: 6,
    },
    {
      says: 'CPU per call, 64 waiting, against the best pool',
      figure: 'cpu64Us',
      of: mine,
      against: pools,
      atMost: 0.15,
    },
  ],
  async measure({ contender, setting, scale }) {
    const { caller } = await openContender(contender);
    const add = caller('add');
    const windows = { warmMs: warmUpMs * scale, windowMs: 250 * scale };
    if (setting === 'each') {
      // By hand nothing holds calls back, so 2 waiting calls are one per worker there.
      const one = await countCalls(add, contender === 'bare-thread' ? 2 : 64, windows);
      return { each: one.perSecond, cpuEachUs: one.cpuUsPerCall };
    }
    const some = await countCalls(add, 64, windows);
    const many = await countCalls(add, 1000, windows);
    return { with64: some.perSecond, cpu64Us: some.cpuUsPerCall, with1000: many.perSecond };
  },
};
