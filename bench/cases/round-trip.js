// How long does one call take that does nothing: a number there, a number back?
import { bareWays, openContender, rivalPoolsOneAtATime, slowRivals } from '../lib/contenders.js';
import { micros, runsOf } from '../lib/figures.js';
import { expectSame, timeCalls, warmUpMs } from '../lib/measure.js';

const mine = { setting: 'free', contender: 'manycore-process' };
const pools = runsOf('free', rivalPoolsOneAtATime);

export default {
  figures: { p50Us: micros('p50'), p99Us: micros('p99') },
  quickSkips: slowRivals,
  settings: {
    free: { says: 'caller and 2 workers on all cores' },
    pinned: { says: 'caller and 2 workers on one core: what the software costs', cores: 1 },
  },
  runs: [
    ...runsOf('free', [
      'manycore-process',
      'manycore-thread',
      ...rivalPoolsOneAtATime,
      ...bareWays,
    ]),
    ...runsOf('pinned', [
      'manycore-process',
      'manycore-thread',
      'piscina',
      'workerpool-thread',
      'bare-thread',
      'bare-fork-json',
    ]),
  ],
  bars: [
    {
      says: 'round trip, p50, against the best pool',
      figure: 'p50Us',
      of: mine,
      against: pools,
      atMost: 0.2,
    },
    {
      says: 'round trip, p99, against the best pool',
      figure: 'p99Us',
      of: mine,
      against: pools,
      atMost: 0.5,
    },
    {
      says: 'round trip on one core, p50, against piscina',
      figure: 'p50Us',
      of: { setting: 'pinned', contender: 'manycore-process' },
      against: [{ setting: 'pinned', contender: 'piscina' }],
      atMost: 0.9,
    },
  ],
  async measure({ contender, scale }) {
    const { caller } = await openContender(contender);
    return timeCalls(caller('add'), (got, turn) => expectSame(got, turn + 1), {
      warmMs: warmUpMs * scale,
      windowMs: 250 * scale,
    });
  },
};
