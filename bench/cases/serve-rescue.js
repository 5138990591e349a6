// What does rescue cost where no loop is blocked?
import { runsOf } from '../lib/figures.js';
import { connections, figures, measureInTurns } from '../serve/in-turns.js';

const setting = 'kept-alive';
/** With rescue, beside the same without. */
const pairs = ['manycore-1x2', 'manycore-2x1'].map((name) => [name, `${name}-no-rescue`]);
/** A difference of one percent needs more of them than other cases have. */
const windows = 12;

export default {
  figures,
  settings: { [setting]: { says: `hello world, ${connections} connections that are kept` } },
  rounds: 6,
  isTogether: true,
  deadlineMs: 240_000,
  runs: runsOf(setting, pairs.flat()),
  bars: pairs.flatMap(([contender, without]) => [
    {
      says: `rescue, no loop is blocked: CPU per request, ${contender} against without`,
      figure: 'cpuUs',
      of: { setting, contender },
      against: runsOf(setting, [without]),
      atMost: 1.01,
    },
    {
      says: `rescue, no loop is blocked: requests per second, ${contender} against without`,
      figure: 'perSecond',
      of: { setting, contender },
      against: runsOf(setting, [without]),
      atLeast: 0.99,
    },
  ]),
  measure: ({ scale }) => measureInTurns(pairs.flat(), { scale, windows }),
};
