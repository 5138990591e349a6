// What does each further worker add to a map, on each channel, and what would more cores add?
// One map of a fixed number of items, again and again, on n workers and n cores. `loop` is the plain loop on
// one core, `no-parent` the limit of the machine: n processes that map their share without messages.
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { grantedWorkerCounts } from '../lib/worker-counts.js';
import { channelNames, openMapper } from '../scaling/contenders.js';
import { measureAlone, measureContender } from '../scaling/measure.js';
import { fetchWorkloads } from '../scaling/workloads/fetch.js';

/** Least efficiency of two workers: items per second, as a part of twice those of a plain loop. */
const leastEfficiency = { fibonacci: 0.95, checker: 0.95, allocation: 0.9 };

const report = () => import('../../dist/bench/report/index.js');

export default {
  figures: {
    perSecond: perSecond('items'),
    cpuUsPerItem: micros('CPU per item'),
    gcUsPerItem: micros('GC per item'),
  },
  rounds: 10,
  deadlineMs: 120_000,
  async plan() {
    const workloads = fetchWorkloads();
    const counts = await grantedWorkerCounts();
    const settings = {};
    const runs = [];
    for (const [workload, { says }] of Object.entries(workloads)) {
      for (const workers of counts) {
        const setting = `${workload}-${workers}`;
        settings[setting] = { workload, workers, says, cores: workers };
        const alone = workers === 1 ? ['loop', 'no-parent'] : ['no-parent'];
        runs.push(...runsOf(setting, [...channelNames, ...alone]));
      }
    }
    const bars = counts.includes(2) ? barsOf(Object.keys(workloads)) : [];
    return { settings, runs, bars };
  },
  async measure({ contender, setting, scale }) {
    const [, workload, workers] = /^(.*)-(\d+)$/.exec(setting);
    // Whole maps: in the first seconds what runs around the items is compiled, in every process.
    const windows = { warmMs: 2500 * scale, windowMs: 1200 * scale };
    if (contender === 'no-parent') return await measureAlone(workload, Number(workers), windows);
    const mapper = await openMapper(contender, workload, Number(workers));
    return await measureContender(mapper, windows);
  },
  async report(result) {
    const { scalingReport } = await report();
    return scalingReport(result);
  },
};

/** Compares with a loop, and with the limit of the machine: two cores may share caches and memory. */
function barsOf(workloads) {
  const names = workloads.filter((workload) => workload in leastEfficiency);
  return names.flatMap((workload) => {
    const least = leastEfficiency[workload];
    const figure = 'perSecond';
    const of = { setting: `${workload}-2`, contender: 'shm' };
    return [
      {
        says: `${workload}: 2 workers against a plain loop on one core, an efficiency of ${least}`,
        figure,
        of,
        against: [{ setting: `${workload}-1`, contender: 'loop' }],
        atLeast: 2 * least,
      },
      {
        says: `${workload}: 2 workers against 2 processes that talk to nobody`,
        figure,
        of,
        against: [{ setting: `${workload}-2`, contender: 'no-parent' }],
        atLeast: least,
      },
    ];
  });
}
