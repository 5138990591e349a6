// What does a request cost a server that is a unit, by its instances, against the same program under `serve`?
// Vert.x, the model of units, is measured beside it where Java is installed.
import { runsOf } from '../lib/figures.js';
import { hasVertx } from '../loops/vertx.js';
import { figures, measureInTurns } from '../serve/in-turns.js';

const units = ['unit-1', 'unit-2', 'unit-4', 'unit-8'];
const javas = hasVertx() ? ['vertx-1', 'vertx-2', 'vertx-4', 'vertx-8'] : [];
const contenders = [...units, 'manycore-1x1', 'manycore-1x2', ...javas];

/** One instance works on one loop, more on both. */
const served = (unit) => (unit === 'unit-1' ? 'manycore-1x1' : 'manycore-1x2');

export default {
  figures,
  settings: {
    'kept-alive': { says: 'hello world by instances on two loops, 64 connections that are kept' },
  },
  rounds: 5,
  isTogether: true,
  deadlineMs: 400_000,
  runs: runsOf('kept-alive', contenders),
  bars: units.map((contender) => ({
    says: `CPU per request, ${contender} against ${served(contender)} (serve)`,
    figure: 'cpuUs',
    of: { setting: 'kept-alive', contender },
    against: runsOf('kept-alive', [served(contender)]),
    atMost: 1.05,
  })),
  measure: ({ scale }) => measureInTurns(contenders, { scale }),
};
