// What does a small file cost, against Apache's event and nginx?
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { connections, settingOf, withMix } from '../serve/mix.js';

const seconds = 3;
const setting = '10 KiB';
const ours = ['manycore-2x1', 'manycore-1x2'];
/** CPU per request, as a share of a rival's. */
const limits = { 'apache-event': 1, nginx: 1.2 };

export default {
  figures: {
    perSecond: perSecond('requests'),
    cpuUs: micros('CPU per request'),
    p50Us: micros('p50'),
    p99Us: micros('p99'),
  },
  settings: { [setting]: { says: `a file of 10 KiB, ${connections} connections that are kept` } },
  rounds: 8,
  deadlineMs: 60_000,
  runs: runsOf(setting, [...Object.keys(limits), ...ours]),
  bars: ours.flatMap((contender) =>
    Object.entries(limits).map(([other, atMost]) => ({
      says: `static 10 KiB file, CPU per request, ${contender} against ${other}`,
      figure: 'cpuUs',
      of: { setting, contender },
      against: runsOf(setting, [other]),
      atMost,
    })),
  ),
  async measure({ contender, scale }) {
    return await withMix(contender, settingOf(0), async ({ cpuUs: totalCpuUs, load }) => {
      const before = totalCpuUs();
      const window = Math.max(1, Math.round(seconds * scale));
      const { requests, p50Us, p99Us } = await load(window);
      const cpuUs = (totalCpuUs() - before) / requests;
      return { perSecond: requests / window, cpuUs, p50Us, p99Us };
    });
  },
};
