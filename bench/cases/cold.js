// How long from nothing to the first result of a pool of 2, library imported, no worker started?
import { loadContender, rivalPoolsOneAtATime, slowRivals } from '../lib/contenders.js';
import { millis, runsOf } from '../lib/figures.js';
import { expectSame } from '../lib/measure.js';

const forks = ['bare-fork-json', 'bare-fork-advanced'];

export default {
  figures: {
    firstMs: millis('first result'),
    bothMs: millis('two results'),
    importMs: millis('import before'),
  },
  quickSkips: slowRivals,
  settings: { free: { says: '2 calls at once on 2 workers that do not run yet' } },
  runs: runsOf('free', [
    'manycore-process',
    ...forks,
    'manycore-thread',
    'bare-thread',
    ...rivalPoolsOneAtATime,
  ]),
  rounds: 9,
  bars: [
    {
      says: 'first result from a cold pool of 2 processes, against bare fork',
      figure: 'firstMs',
      of: { setting: 'free', contender: 'manycore-process' },
      against: runsOf('free', forks),
      atMost: 1.3,
    },
    {
      says: 'first result from a cold pool of 2 threads, against bare worker_threads',
      figure: 'firstMs',
      of: { setting: 'free', contender: 'manycore-thread' },
      against: runsOf('free', ['bare-thread']),
      atMost: 1.2,
    },
  ],
  async measure({ contender }) {
    const importing = performance.now();
    const open = await loadContender(contender);
    const start = performance.now();
    const add = open({ workers: 2 }).caller('add');
    const calls = [add(1), add(2)];
    const first = await Promise.race(calls);
    const firstMs = performance.now() - start;
    const [one, two] = await Promise.all(calls);
    const bothMs = performance.now() - start;
    expectSame(one + two, 5);
    expectSame(first === 2 || first === 3, true);
    return { firstMs, bothMs, importMs: start - importing };
  },
};
