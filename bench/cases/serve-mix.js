// What do files and CGI programs in one server cost, against Apache's process models?
import { counted, micros, perSecond, runsOf } from '../lib/figures.js';
import { machineTicks } from '../lib/processes.js';
import { models } from '../serve/apache.js';
import { connections, settingOf, shares, withMix } from '../serve/mix.js';

const seconds = 3;
const contenders = [
  ...Object.keys(models).map((model) => `apache-${model}`),
  'manycore-2x1',
  'manycore-1x2',
];

export default {
  figures: {
    perSecond: perSecond('requests'),
    cpuUs: micros('CPU per request without the programs'),
    p50Us: micros('p50'),
    p99Us: micros('p99'),
    userShare: counted('user', '%'),
    systemShare: counted('system', '%'),
    softirqShare: counted('soft interrupts', '%'),
  },
  settings: Object.fromEntries(
    shares.map((share) => [
      settingOf(share),
      {
        says: `a file of 10 KiB, and so often a shell script instead, ${connections} connections that are kept`,
      },
    ]),
  ),
  rounds: 5,
  deadlineMs: 60_000,
  runs: shares.flatMap((share) => runsOf(settingOf(share), contenders)),
  async measure({ contender, setting, scale }) {
    return await withMix(contender, setting, async ({ cpuUs: totalCpuUs, load }) => {
      const before = totalCpuUs();
      const ticksBefore = machineTicks();
      const window = Math.max(1, Math.round(seconds * scale));
      const { requests, p50Us, p99Us } = await load(window);
      const cpuUs = (totalCpuUs() - before) / requests;
      return { perSecond: requests / window, cpuUs, p50Us, p99Us, ...sharesSince(ticksBefore) };
    });
  },
};

/**
 * Returns shares of the whole machine, the load generator included. Programs that live for less than a tick
 * are booked as their parent's user time in figures of processes, and right in those of the machine.
 */
function sharesSince(before) {
  const now = machineTicks();
  const past = (kind) => now[kind] - before[kind];
  const all = Object.keys(now).reduce((sum, kind) => sum + past(kind), 0);
  return {
    userShare: (100 * past('user')) / all,
    systemShare: (100 * past('system')) / all,
    softirqShare: (100 * past('softirq')) / all,
  };
}
