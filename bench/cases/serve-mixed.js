// How long do heavy requests delay light ones: some that compute for 100 ms, and one client that always has one?
import { Agent, get } from 'node:http';
import { counted, millis, runsOf } from '../lib/figures.js';
import { keptConnections, openLoop, quantile } from '../serve/open-loop.js';
import { startServer } from '../serve/servers.js';

const perSecond = 60;
const seconds = 10;
const contenders = ['manycore-1x2', 'cluster-2'];
/** Ours beside a rival with as many loops. */
const busyLoops = {
  'cluster-2': ['manycore-1x2', 'manycore-2x1'],
  'cluster-4': ['manycore-1x4', 'manycore-2x2'],
};
/** Durations of the heavy requests of one client, each after the answer to the one before, in ms. */
const busyMs = [200, 600, 1000, 400, 800];
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
    busy: {
      says: `${perSecond} requests a second over 32 connections, and one client whose requests compute 200 ms to 1 s in the loop, one after the other`,
    },
  },
  rounds: 5,
  deadlineMs: 60_000,
  runs: [
    ...runsOf('mixed', contenders),
    ...runsOf('light', contenders),
    ...runsOf('busy', Object.entries(busyLoops).flat(2)),
  ],
  bars: [
    {
      says: 'p99 of light requests beside heavy ones, against none',
      figure: 'p99',
      of: { setting: 'mixed', contender: 'manycore-1x2' },
      against: runsOf('light', ['manycore-1x2']),
      atMost: 2,
    },
    ...Object.entries(busyLoops).flatMap(([rival, ours]) =>
      ours.flatMap((contender) => [
        {
          says: `one loop busy, p99 of light requests, ${contender}`,
          figure: 'p99',
          of: { setting: 'busy', contender },
          atMost: 25,
        },
        {
          says: `one loop busy, p99 of light requests, ${contender} against ${rival}`,
          figure: 'p99',
          of: { setting: 'busy', contender },
          against: runsOf('busy', [rival]),
          atMost: 0.05,
        },
      ]),
    ),
  ],
  async measure({ contender, setting, scale }) {
    const isParallel = contender.startsWith('manycore') && setting !== 'busy';
    const env = { HEAVY: isParallel ? 'parallel' : 'inline' };
    const { port } = await startServer(contender, 'mixed.js', env);
    const connections = keptConnections(32);
    const load = { port, perSecond, agentOf: connections.agentOf };
    // Workers start, and everything is compiled.
    await openLoop({ ...load, seconds: 2, pathOf: (index) => (index % 10 === 0 ? '/heavy' : '/') });
    const every = heavyEvery[setting] ?? Infinity;
    const busy = setting === 'busy' ? busyClient(port) : undefined;
    const pathOf = (index) => ((index + 1) % every === 0 ? '/heavy' : '/');
    const { answers, failed } = await openLoop({ ...load, seconds: seconds * scale, pathOf });
    connections.close();
    const heavyFailed = (await busy?.end()) ?? 0;
    const of = (path) => answers.filter((answer) => answer.path === path).map(({ ms }) => ms);
    const light = of('/');
    return {
      p50: quantile(light, 0.5),
      p99: quantile(light, 0.99),
      heavyP50: quantile(of('/heavy'), 0.5) ?? 0,
      failed: failed + heavyFailed,
    };
  },
};

/** A client with one heavy request after the other. `end` resolves to the number of those that failed. */
function busyClient(port) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let [isOver, failed] = [false, 0];
  const request = (ms) =>
    new Promise((resolve) => {
      const fail = () => {
        failed += 1;
        resolve();
      };
      get({ port, host: '127.0.0.1', path: `/busy?${ms}`, agent }, (response) => {
        response.resume();
        response.on('error', fail);
        response.on('end', () => (response.statusCode === 200 ? resolve() : fail()));
      }).on('error', fail);
    });
  const all = async () => {
    for (let at = 0; !isOver; at += 1) await request(busyMs[at % busyMs.length]);
  };
  const done = all();
  return {
    end: async () => {
      isOver = true;
      await done;
      agent.destroy();
      return failed;
    },
  };
}
