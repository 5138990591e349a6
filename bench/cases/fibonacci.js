// Does a second core double the work, and do more hosts than cores do harm?
// `no-parent` is what the machine gives: as many processes that compute and talk to nobody.
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
const hostsOf = { one: 1, two: 2, three: 3, four: 4 };
const side = (setting) => ({ setting, contender: 'manycore-process' });

export default {
  figures: { perSecond: perSecond('fib(28)') },
  settings: {
    one: { says: '1 host; caller and host on one core', cores: 1 },
    two: { says: '2 hosts on 2 cores', cores: 2 },
    three: { says: '3 hosts on 2 cores', cores: 2 },
    four: { says: '4 hosts on 2 cores', cores: 2 },
  },
  runs: [
    ...runsOf('one', contenders),
    ...runsOf('two', contenders),
    ...runsOf('three', ['manycore-process', 'piscina']),
    ...runsOf('four', ['manycore-process', 'piscina']),
  ],
  bars: [
    {
      says: 'Fibonacci, 2 hosts on 2 cores against 1 host on 1 core',
      figure: 'perSecond',
      of: side('two'),
      against: [side('one')],
      atLeast: 1.9,
    },
    {
      says: 'Fibonacci, 3 hosts against 2 on 2 cores (2 % of noise allowed)',
      figure: 'perSecond',
      of: side('three'),
      against: [side('two')],
      atLeast: 0.98,
    },
    {
      says: 'Fibonacci, 4 hosts against 2 on 2 cores (2 % of noise allowed)',
      figure: 'perSecond',
      of: side('four'),
      against: [side('two')],
      atLeast: 0.98,
    },
  ],
  async measure({ contender, setting, scale }) {
    const hosts = hostsOf[setting];
    const windows = { warmMs: 500 * scale, windowMs: 2000 * scale };
    if (contender === 'no-parent') return { perSecond: await countAlone(hosts, windows) };
    const { caller } = await openContender(contender, { hosts });
    const fib = caller('fib');
    // Calls are counted when they are answered: short ones in a long window keep the edges small.
    const work = await countCalls(() => fib(28), 2 * hosts, windows);
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
