// How long do clients wait for answers when one of several loops is blocked?
// The load is new connections at a given rate.
import { counted, millis, runsOf } from '../lib/figures.js';
import { openLoop, quantile } from '../serve/open-loop.js';
import { hasReusePort, startServer } from '../serve/servers.js';

const perSecond = 300;
const seconds = 8;
const ours = 'manycore-1x4';
const contenders = [ours, 'cluster-4', ...(hasReusePort ? ['reuse-port-threads-4'] : [])];

export default {
  figures: {
    p50: millis('p50'),
    p99: millis('p99'),
    p999: millis('p99.9'),
    failed: counted('failed', 'requests'),
  },
  settings: {
    blocked: {
      says: `4 loops, one blocked 200 ms of every second, ${perSecond} new connections a second`,
    },
  },
  rounds: 5,
  deadlineMs: 60_000,
  runs: runsOf('blocked', contenders),
  bars: [
    {
      says: 'one of 4 loops blocked, p99 against node:cluster',
      figure: 'p99',
      of: { setting: 'blocked', contender: ours },
      against: runsOf('blocked', ['cluster-4']),
      atMost: 1,
    },
    ...(hasReusePort
      ? [
          {
            says: 'one of 4 loops blocked, p99 against SO_REUSEPORT',
            figure: 'p99',
            of: { setting: 'blocked', contender: ours },
            against: runsOf('blocked', ['reuse-port-threads-4']),
            atMost: 0.1,
          },
        ]
      : []),
  ],
  async measure({ contender, scale }) {
    const { port } = await startServer(contender, 'blocking.js');
    await openLoop({ port, perSecond, seconds: 1 });
    const { answers, failed } = await openLoop({ port, perSecond, seconds: seconds * scale });
    const times = answers.map(({ ms }) => ms);
    return {
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
      p999: quantile(times, 0.999),
      failed,
    };
  },
};
