// Does a second core double the work, and do more workers than cores do harm?
// `no-parent` is the limit of the machine: as many processes that compute without messages.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { openContender } from '../lib/contenders.js';
import { perSecond, runsOf } from '../lib/figures.js';
import { countCalls } from '../lib/measure.js';

const contenders = [
  'manycore-process',
  'manycore-thread',
  'piscina',
  'bare-fork-json',
  'no-parent',
];
const alone = fileURLToPath(new URL('../lib/fib-alone.js', import.meta.url));
const workersOf = { one: 1, two: 2, three: 3, four: 4 };
const side = (setting) => ({ setting, contender: 'manycore-process' });

export default {
  figures: { perSecond: perSecond('fib(28)') },
  settings: {
    one: { says: '1 worker; caller and worker on one core', cores: 1 },
    two: { says: '2 workers on 2 cores', cores: 2 },
    three: { says: '3 workers on 2 cores', cores: 2 },
    four: { says: '4 workers on 2 cores', cores: 2 },
  },
  runs: [
    ...runsOf('one', contenders),
    ...runsOf('two', contenders),
    ...runsOf('three', ['manycore-process', 'piscina']),
    ...runsOf('four', ['manycore-process', 'piscina']),
  ],
  bars: [
    {
      says: 'Fibonacci, 2 workers on 2 cores against 1 worker on 1 core',
      figure: 'perSecond',
      of: side('two'),
      against: [side('one')],
      atLeast: 1.9,
    },
    {
      says: 'Fibonacci, 3 workers against 2 on 2 cores (2 % of noise allowed)',
      figure: 'perSecond',
      of: side('three'),
      against: [side('two')],
      atLeast: 0.98,
    },
    {
      says: 'Fibonacci, 4 workers against 2 on 2 cores (2 % of noise allowed)',
      figure: 'perSecond',
      of: side('four'),
      against: [side('two')],
      atLeast: 0.98,
    },
  ],
  async measure({ contender, setting, scale }) {
    const workers = workersOf[setting];
    const windows = { warmMs: 500 * scale, windowMs: 2000 * scale };
    if (contender === 'no-parent') return { perSecond: await countAlone(workers, windows) };
    const { caller } = await openContender(contender, { workers });
    const fib = caller('fib');
    // Calls are counted when they are answered: short ones in a long window keep the edges small.
    const work = await countCalls(() => fib(28), 2 * workers, windows);
    return { perSecond: work.perSecond };
  },
};

async function countAlone(processes, { warmMs, windowMs }) {
  const each = Array.from({ length: processes }, () => {
    const child = spawn(process.execPath, [alone, String(warmMs), String(windowMs)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return text(child.stdout);
  });
  return (await Promise.all(each)).reduce((sum, line) => sum + Number(line), 0);
}
