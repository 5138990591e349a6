// What does a request between two programs cost, over NATS and without a server, against a plain client of NATS?

import { openEnds } from '../cluster/ends.js';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { treeCpuUs } from '../lib/processes.js';
import { timeRequests } from '../loops/measure.js';

const mine = ['manycore', 'manycore-signed'];
const local = 'manycore-local';
const contenders = [...mine, local, 'nats'];
const warmMs = 2000;
const windowMs = 2000;
const inFlight = 64;

export default {
  figures: {
    p50Us: micros('p50'),
    p99Us: micros('p99'),
    perSecond: perSecond('requests'),
    cpuUs: micros('CPU each'),
  },
  settings: {
    request: { says: 'a number there and back, one after the other, two programs on one machine' },
    concurrent: { says: `the same, ${inFlight} at a time` },
  },
  deadlineMs: 60_000,
  runs: [...runsOf('request', contenders), ...runsOf('concurrent', contenders)],
  bars: [
    {
      says: 'request between two programs without a server, p50, against the same over NATS',
      figure: 'p50Us',
      of: { setting: 'request', contender: local },
      against: [{ setting: 'request', contender: 'manycore' }],
      atMost: 0.3,
    },
    ...mine.flatMap((contender) => [
      {
        says: `request in a cluster, p50, against the client of NATS (${contender})`,
        figure: 'p50Us',
        of: { setting: 'request', contender },
        against: [{ setting: 'request', contender: 'nats' }],
        atMost: 1.25,
      },
      {
        says: `requests at a time in a cluster, against the client of NATS (${contender})`,
        figure: 'perSecond',
        of: { setting: 'concurrent', contender },
        against: [{ setting: 'concurrent', contender: 'nats' }],
        atLeast: 0.85,
      },
    ]),
  ],
  async measure({ contender, setting, scale }) {
    const { ask, end } = await openEnds(contender);
    const measure = setting === 'request' ? timeRequests : countRequests;
    try {
      await measure(ask, warmMs * scale);
      const before = treeCpuUs();
      const { calls, ...figures } = await measure(ask, windowMs * scale);
      return { ...figures, cpuUs: (treeCpuUs() - before) / calls };
    } finally {
      end();
    }
  },
};

/** Keeps this many requests in flight, each lane one after the other. */
async function countRequests(ask, ms) {
  const start = performance.now();
  let calls = 0;
  const lane = async () => {
    while (performance.now() - start < ms) {
      await ask(calls);
      calls += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return { calls, perSecond: (calls / (performance.now() - start)) * 1000 };
}
