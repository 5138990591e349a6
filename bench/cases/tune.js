// Does `manycore tune` find what a program lacks within its 10 minutes, and leave a well-set one alone?
//
// Three programs are set badly, each in one way, and one is not. Each setting is one whole search, so a round
// of this case takes some 40 minutes. `wanted` is the right answer, within 10 minutes.
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { runsOf } from '../lib/figures.js';
import { ensureWrk } from '../serve/wrk.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const main = here('../../dist/bundle/main.js');
const load = 'wrk -t1 -c16 -d{seconds}s --latency {url}';
const minutes = 10;
const cores = availableParallelism();

/** A command, what is in its environment, and whether the advice is right. */
const programs = {
  'pool-too-small': {
    says: 'eight hashes a request, UV_THREADPOOL_SIZE=1',
    command: ['node', here('../tune/hash.js')],
    env: { UV_THREADPOOL_SIZE: '1' },
    isRight: ({ blockingThreads = 1 }) => blockingThreads >= cores,
  },
  'heap-too-near': {
    says: '45 MiB alive, --max-old-space-size=60',
    command: ['node', '--max-old-space-size=60', here('../tune/hoard.js')],
    isRight: ({ heapLimit = 60 }) => heapLimit >= 120,
  },
  'loops-too-many': {
    says: 'work in every loop, eight processes with four loops each',
    command: ['manycore', 'serve', '--processes', '8', '--loops', '4', here('../tune/hello.js')],
    isRight: ({ loops }) => loops !== undefined && loops.processes * loops.loops <= 2 * cores,
  },
  'well-set': {
    says: 'eight hashes a request, a thread for each core',
    command: ['node', here('../tune/hash.js')],
    env: { UV_THREADPOOL_SIZE: String(Math.max(4, cores)) },
    // A search without time gives no advice either, and is not counted as right.
    isRight: (advice, { configurations, skipped }) =>
      Object.keys(advice).length === 0 && configurations.length > 1 && skipped.length === 0,
  },
};
const names = Object.keys(programs);
const contenders = ['found', 'wanted'];

export default {
  figures: {
    right: { says: 'whether the advice was right', unit: '', better: 'higher' },
    minutes: { says: 'how long it took', unit: 'min', better: 'lower' },
  },
  settings: Object.fromEntries(names.map((name) => [name, { says: programs[name].says }])),
  rounds: 1,
  isTogether: true,
  deadlineMs: 15 * 60_000,
  runs: names.flatMap((name) => runsOf(name, contenders)),
  bars: names.flatMap((setting) => [
    {
      says: `${setting}: the advice is right`,
      figure: 'right',
      of: { setting, contender: 'found' },
      against: runsOf(setting, ['wanted']),
      atLeast: 1,
    },
    {
      says: `${setting}: within ${minutes} minutes`,
      figure: 'minutes',
      of: { setting, contender: 'found' },
      against: runsOf(setting, ['wanted']),
      atMost: 1,
    },
  ]),
  measure: async ({ setting, scale }) => {
    ensureWrk();
    const report = await search(programs[setting], minutes * scale);
    process.stderr.write(`\n${setting}: ${report.verdict}\n`);
    const right = programs[setting].isRight(report.advice, report) ? 1 : 0;
    return {
      found: { right, minutes: report.tookSeconds / 60 },
      wanted: { right: 1, minutes },
    };
  },
};

function search({ command, env }, limitMinutes) {
  const flags = ['--load', load, '--minutes', String(limitMinutes), '--json', '--no-write'];
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [main, 'tune', ...flags, '--', ...command],
      { env: { ...process.env, ...env }, maxBuffer: 2 ** 24 },
      (error, stdout) => (error === null ? resolve(JSON.parse(stdout)) : reject(error)),
    );
  });
}
