// How much throughput is left with a small nested object there and back (127 bytes as JSON)?
import { bareWays, openContender, rivalPools, slowRivals } from '../lib/contenders.js';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { makeOrder } from '../lib/inputs.js';
import { countCalls, expectSame, timeCalls, warmUpMs } from '../lib/measure.js';

const mine = { setting: 'free', contender: 'manycore-process' };

export default {
  figures: {
    with64: perSecond('64 waiting'),
    cpu64Us: micros('CPU per call'),
    p50Us: micros('one at a time, p50'),
    p99Us: micros('one at a time, p99'),
  },
  quickSkips: slowRivals,
  settings: { free: { says: 'caller and 2 workers on all cores' } },
  runs: runsOf('free', ['manycore-process', 'manycore-thread', ...rivalPools, ...bareWays]),
  bars: [
    {
      says: 'calls/s with a small object both ways, 64 waiting',
      figure: 'with64',
      of: mine,
      against: runsOf('free', rivalPools),
      atLeast: 4,
    },
  ],
  async measure({ contender, scale }) {
    const { caller } = await openContender(contender);
    const answer = caller('answerObject');
    const windows = { warmMs: warmUpMs * scale, windowMs: 200 * scale };
    const many = await countCalls((turn) => answer(makeOrder(turn % 9)), 64, windows);
    const single = await timeCalls(
      (turn) => answer(makeOrder(turn % 9)),
      (got, turn) => {
        expectSame(got.id, (turn % 9) + 1);
        expectSame(got.address.city, 'Utrecht');
      },
      { warmMs: (warmUpMs / 4) * scale, windowMs: 150 * scale },
    );
    return { ...single, with64: many.perSecond, cpu64Us: many.cpuUsPerCall };
  },
};
