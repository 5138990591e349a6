// How much memory does one more idle worker cost, shared pages counted by share?
import { loadContender } from '../lib/contenders.js';
import { counted, runsOf } from '../lib/figures.js';
import { countCalls } from '../lib/measure.js';
import { descendants, pssMiB } from '../lib/processes.js';

const workers = 4;
const forks = ['bare-fork-json', 'bare-fork-advanced'];

export default {
  figures: {
    netMiB: counted('net PSS per worker', 'MiB'),
    mainMiB: { says: 'growth of the caller', unit: 'MiB', better: 'neither' },
  },
  settings: { free: { says: `${workers} workers, idle after some calls` } },
  runs: runsOf('free', ['manycore-process', ...forks, 'manycore-thread', 'bare-thread', 'piscina']),
  nodeFlags: ['--expose-gc'],
  bars: [
    {
      says: 'memory per idle process worker, net PSS, against bare fork',
      figure: 'netMiB',
      of: { setting: 'free', contender: 'manycore-process' },
      against: runsOf('free', forks),
      atMost: 1.25,
    },
  ],
  // Net: what the children hold, less what the caller's own share shrinks because they map the same
  // pages. RSS would count Node's text once per process.
  async measure({ contender }) {
    const open = await loadContender(contender);
    globalThis.gc();
    const before = pssMiB(process.pid);
    const add = open({ workers }).caller('add');
    await countCalls(add, 4 * workers, { warmMs: 100, windowMs: 50 });
    await new Promise((resolve) => setTimeout(resolve, 300));
    globalThis.gc();
    const mainMiB = pssMiB(process.pid) - before;
    const childrenMiB = descendants().reduce((sum, pid) => sum + pssMiB(pid), 0);
    return { netMiB: (childrenMiB + mainMiB) / workers, mainMiB };
  },
};
