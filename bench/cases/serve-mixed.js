// How long do heavy requests, which compute for 100 ms, delay light ones?
import { counted, millis, runsOf } from '../lib/figures.js';
import { keptConnections, openLoop, quantile } from '../serve/open-loop.js';
import { startServer } from '../serve/servers.js';

const perSecond = 60;
const seconds = 10;
const contenders = ['manycore-1x2', 'cluster-2'];
/** One of so many is heavy. */
const heavyEvery = { mixed: 20, light: Infinity };

export default {
  figures: {
    p50: millis('light p50'),
    p99: millis('light p99'),
    heavyP50: millis('heavy p50'),
    failed: counted('failed', 'requests'),
  },
  settings: {
    mixed: {
      says: `${perSecond} requests a second over 32 connections, 5 % of them compute 100 ms`,
    },
    light: { says: `${perSecond} requests a second, none of them heavy` },
  },
  rounds: 5,
  deadlineMs: 60_000,
  runs: [...runsOf('mixed', contenders), ...runsOf('light', contenders)],
  bars: [
    {
      says: 'p99 of light requests beside heavy ones, against none',
      figure: 'p99',
      of: { setting: 'mixed', contender: 'manycore-1x2' },
      against: runsOf('light', ['manycore-1x2']),
      atMost: 2,
    },
  ],
  async measure({ contender, setting, scale }) {
    const env = { HEAVY: contender.startsWith('manycore') ? 'parallel' : 'inline' };
    const { port } = await startServer(contender, 'mixed.js', env);
    const connections = keptConnections(32);
    const load = { port, perSecond, agentOf: connections.agentOf };
    // Workers start, and everything is compiled.
    await openLoop({ ...load, seconds: 2, pathOf: (index) => (index % 10 === 0 ? '/heavy' : '/') });
    const every = heavyEvery[setting];
    const pathOf = (index) => ((index + 1) % every === 0 ? '/heavy' : '/');
    const { answers, failed } = await openLoop({ ...load, seconds: seconds * scale, pathOf });
    connections.close();
    const of = (path) => answers.filter((answer) => answer.path === path).map(({ ms }) => ms);
    const light = of('/');
    return {
      p50: quantile(light, 0.5),
      p99: quantile(light, 0.99),
      heavyP50: quantile(of('/heavy'), 0.5) ?? 0,
      failed,
    };
  },
};
