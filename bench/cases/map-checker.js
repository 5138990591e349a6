// How near does the map of a whole program, the plagiarism checker, come to two processes that need no pool?
// `bare` are two processes, each with every second item, without messages while they work.
import { perSecond, runsOf } from '../lib/figures.js';
import { openMapper } from '../scaling/contenders.js';
import { measureAlone, measureContender } from '../scaling/measure.js';
import { fetchWorkloads } from '../scaling/workloads/fetch.js';

const setting = 'checker';
const workers = 2;
const figure = 'perSecond';

export default {
  figures: { perSecond: perSecond('items') },
  rounds: 9,
  deadlineMs: 120_000,
  plan() {
    const { checker } = fetchWorkloads();
    if (checker === undefined) return { settings: {}, runs: [], bars: [] };
    const of = { setting, contender: 'manycore' };
    const bar = {
      says: 'the checker on 2 workers against two bare processes',
      figure,
      of,
      against: [{ setting, contender: 'bare' }],
      atLeast: 0.97,
    };
    return {
      settings: { [setting]: { says: checker.says, cores: workers } },
      runs: runsOf(setting, ['manycore', 'bare']),
      bars: [bar],
    };
  },
  async measure({ contender, scale }) {
    // Whole maps: in the first seconds what runs around the items is compiled, in every process.
    const windows = { warmMs: 2500 * scale, windowMs: 2400 * scale };
    const figures =
      contender === 'bare'
        ? await measureAlone(setting, workers, windows)
        : await measureContender(await openMapper('shm', setting, workers), windows);
    return { perSecond: figures.perSecond };
  },
};
