// How fast does the smart TV answer a button while pictures are decoded for 90 % of one core?
// The worker of `parallel` has a higher nice value than the server, by an option of the pool; the thread by hand
// has that of its process, as threads of Node have by default.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { millis, runsOf } from '../lib/figures.js';

const example = fileURLToPath(new URL('../../examples/smart-tv/main.js', import.meta.url));
// Kept between runs, as the example keeps its picture there: drawing it takes seconds.
const folder = fileURLToPath(new URL('../results/quick/smart-tv/', import.meta.url));
const parallel = { setting: 'free', contender: 'parallel' };
const against = (contender) => [{ setting: 'free', contender }];

export default {
  figures: {
    p50Ms: millis('p50'),
    p95Ms: millis('p95'),
    p99Ms: millis('p99'),
    maxMs: millis('max'),
    decodes: { says: 'decoded', unit: '/s', better: 'higher' },
  },
  settings: {
    free: { says: 'the example itself, one mode a process; the presses come from outside it' },
  },
  runs: runsOf('free', ['idle', 'serialized', 'threads', 'parallel']),
  quickSkips: ['threads'],
  deadlineMs: 40_000,
  bars: [
    {
      says: 'smart TV, response p50 beside decoding, against the idle server',
      figure: 'p50Ms',
      of: parallel,
      against: against('idle'),
      atMost: 1.2,
    },
    {
      says: 'smart TV, response p95 beside decoding, against the idle server',
      figure: 'p95Ms',
      of: parallel,
      against: against('idle'),
      atMost: 1.5,
    },
    ...['p95Ms', 'p99Ms'].map((figure) => ({
      says: `smart TV, response ${figure.slice(0, 3)} beside decoding, against a worker thread`,
      figure,
      of: parallel,
      against: against('threads'),
      atMost: 0.5,
      // A thread by hand delays presses less in these lines than in 24 and 26.
      onLines: { 20: { atMost: 1 }, 22: { atMost: 1 } },
    })),
    {
      says: 'smart TV, response p95, against decoding in the event loop',
      figure: 'p95Ms',
      of: parallel,
      against: against('serialized'),
      timesFaster: 30,
    },
  ],
  async measure({ contender, scale }) {
    mkdirSync(folder, { recursive: true });
    rmSync(join(folder, 'results.json'), { force: true });
    const seconds = scale < 1 ? 1.5 : 3;
    const flags = ['--once', '--modes', contender, '--seconds', seconds, '--out', folder];
    await promisify(execFile)(process.execPath, [example, ...flags.map(String)]);
    const [result] = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8')).results;
    const { p50Ms, p95Ms, p99Ms, maxMs, decodesPerSecond, failed, failedDecodes } = result;
    if (failed + failedDecodes > 0) {
      throw new Error(`${failed} presses and ${failedDecodes} decodings failed`);
    }
    return { p50Ms, p95Ms, p99Ms, maxMs, decodes: decodesPerSecond };
  },
};
