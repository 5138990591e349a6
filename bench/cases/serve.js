// What does a request cost behind several event loops, against plain `http`, node:cluster, PM2 and Watt?
import { runsOf } from '../lib/figures.js';
import { connections, figures, measureInTurns } from '../serve/in-turns.js';
import { hasReusePort, hasWatt } from '../serve/servers.js';

const settings = {
  'kept-alive': { says: `hello world, ${connections} connections that are kept`, flags: [] },
  'new-connection': {
    says: 'a new connection for each request',
    flags: ['-H', 'Connection: close'],
  },
};
const ours = ['manycore-1x2', 'manycore-2x1'];
const others = ['cluster-2', 'pm2-2', ...(hasWatt ? ['watt-2'] : [])];
/**
 * Limit of two loops that share nothing: each has a socket of its own, and no process assigns connections.
 */
const apart = hasReusePort ? ['reuse-port-threads-2', 'reuse-port-processes-2'] : [];
/** With one loop each (plain and 1x1), the difference is our addition to a request. */
const contenders = ['plain', ...others, ...apart, ...ours, 'manycore-1x1'];

export default {
  figures,
  settings,
  rounds: 5,
  isTogether: true,
  deadlineMs: 240_000,
  runs: Object.keys(settings).flatMap((setting) => runsOf(setting, contenders)),
  bars: [...ours, 'manycore-1x1'].flatMap((contender) => [
    {
      says: `kept alive, CPU per request, ${contender} against plain http`,
      figure: 'cpuUs',
      of: { setting: 'kept-alive', contender },
      against: runsOf('kept-alive', ['plain']),
      atMost: 1.02,
    },
    // Two loops against two.
    ...(ours.includes(contender) ? others : []).map((other) => ({
      says: `kept alive, requests per second, ${contender} against ${other}`,
      figure: 'perSecond',
      of: { setting: 'kept-alive', contender },
      against: runsOf('kept-alive', [other]),
      atLeast: 1,
    })),
    {
      says: `new connections, requests per CPU second, ${contender} against cluster`,
      figure: 'cpuUs',
      of: { setting: 'new-connection', contender },
      against: runsOf('new-connection', ['cluster-2']),
      timesFaster: 1.6,
    },
    {
      says: `new connections, requests per second, ${contender} against plain http`,
      figure: 'perSecond',
      of: { setting: 'new-connection', contender },
      against: runsOf('new-connection', ['plain']),
      atLeast: 0.95,
    },
  ]),
  measure: ({ setting, scale }) =>
    measureInTurns(contenders, { scale, flags: settings[setting].flags }),
};
