// Experiments from the sources of manycore's ideas, measured again. Each has the source's figure, ours from
// the stored results, a picture, and the differences with their reasons.
// Not here: the experiments with transactions (transactions.ts) and with partitions (partitions.ts).

import type { BarValue } from './chart.js';
import { partitions } from './partitions.js';
import type { Stored } from './results.js';
import type { Section } from './section.js';
import { largeSet, smallSet } from './transactions.js';

const smartTv: Section = {
  name: 'smart-tv',
  title: 'Smart TV: the answer to a button while pictures are decoded',
  from: 'smart-tv',
  source:
    'The paper on event callback parallelization, on an embedded board: 697 ms while pictures are decoded in the event loop, 11 ms with the callbacks in other processes.',
  ours: (stored) => {
    const p50 = (mode: string) => stored.text('smart-tv', 'free', mode, 'p50Ms');
    const p95 = (mode: string) => stored.text('smart-tv', 'free', mode, 'p95Ms');
    return `Median of the response, in ms: ${p50('serialized')} with decoding in the event loop, ${p50('parallel')} with \`parallel\`, ${p50('idle')} on the idle server; 95th percentile ${p95('serialized')}, ${p95('parallel')} and ${p95('idle')}. The shape is the source's, and the factor of the medians is ${stored.times('smart-tv', 'p50Ms', ['free', 'parallel'], ['free', 'serialized'])} where it was 63 there. Our cores decode a picture several times faster than that board, so all times are shorter.`;
  },
  chart: (stored) => ({
    title: 'Response to a button while pictures are decoded',
    unit: 'ms',
    scale: 'log',
    series: ['p50', 'p95'],
    groups: ['idle', 'serialized', 'threads', 'parallel'].map((mode) => ({
      label: mode,
      bars: ['p50Ms', 'p95Ms'].map((figure) => stored.spread('smart-tv', 'free', mode, figure)),
    })),
    notes: [
      'serialized: in the event loop; threads: a worker thread by hand; parallel: manycore, with `niceIncrement: 10`.',
    ],
  }),
};

const workerCounts = [1, 2, 3, 4, 5, 6, 7, 8];
const parts = ['startMs', 'computeMs', 'overheadMs'];

/** Fibonacci, or the mixed load. */
function workers(load: string, title: string, why: (stored: Stored) => string): Section {
  const partsOf = (stored: Stored, count: number): BarValue => {
    const spreads = parts.map((figure) =>
      stored.spread('workers', `${load}-${count}`, 'manycore-process', figure),
    );
    const known = spreads.filter((spread) => spread !== undefined);
    return known.length === parts.length ? known : undefined;
  };
  return {
    name: `workers-${load}`,
    title,
    from: 'workers',
    source:
      'The same paper: best with as many child processes as there are cores; the time is shown as start, compute and overhead.',
    ours: why,
    chart: (stored) => ({
      title,
      unit: 'ms of a fixed amount of work, in a program that has just begun',
      scale: 'linear',
      series: ['start of the workers', 'compute', 'overhead'],
      groups: workerCounts.map((count) => ({
        label: `${count}`,
        bars: [partsOf(stored, count)],
      })),
      notes: [
        'Compute: what the tasks used of a CPU, shared among the cores that could work on it. Overhead: the rest.',
      ],
    }),
  };
}

/** Figures that appear in the sentence of each load. */
function workerSentence(stored: Stored, load: string): string {
  const text = (count: number, figure = 'totalMs'): string =>
    stored.text('workers', `${load}-${count}`, 'manycore-process', figure);
  const total = (count: number): number =>
    stored.median('workers', `${load}-${count}`, 'manycore-process', 'totalMs');
  const best = workerCounts.reduce((one, other) => (total(other) < total(one) ? other : one));
  const all = `${text(1)} ms with one worker, ${text(2)} with two, ${text(4)} with four, ${text(8)} with eight`;
  const cores = stored.cores('workers');
  const share = Number((total(best) / total(Math.min(cores, 8))).toPrecision(2));
  const parts = `From one worker to eight the starts grow from ${text(1, 'startMs')} ms to ${text(8, 'startMs')}: each is a Node process, and those beyond the cores take turns with the others`;
  return `on ${cores} cores ${all}; the shortest is with ${best}, ${share} times that of as many workers as cores. ${parts}.`;
}

const fibonacci = workers(
  'fibonacci',
  'Fibonacci by number of workers',
  (stored) => `Tasks that only compute, ${workerSentence(stored, 'fibonacci')}`,
);

const mixed = workers(
  'mixed',
  'A mixed load by number of workers',
  (stored) =>
    `A third of these tasks waits for 20 ms, as for a disk: ${workerSentence(stored, 'mixed')} A worker has one task at a time here, as by default, so that one that waits holds it; \`concurrentTasksPerWorker\` lets others run meanwhile.`,
);

const sizes = [1, 2, 4, 6];
const jobs = [1, 2, 3, 4, 5, 6];
const poolOf = (size: number): string => `${size} thread${size === 1 ? '' : 's'}`;

const staircase: Section = {
  name: 'staircase',
  title: 'The staircase of pbkdf2 by the size of the thread pool',
  from: 'staircase',
  source:
    'Notes on libuv: with too few threads calls of `crypto.pbkdf2` queue and end one after the other, with too many they slow each other down. No figure is given.',
  ours: (stored) => {
    const done = (size: number, job: number) =>
      stored.text('staircase', poolOf(size), 'node', `done${job}Ms`);
    return `With one thread the first is done after ${done(1, 1)} ms and the last after ${done(1, 6)}; with two ${done(2, 1)} and ${done(2, 6)}; with four ${done(4, 1)} and ${done(4, 6)}; with six ${done(6, 1)} and ${done(6, 6)}. The machine has ${stored.cores('staircase')} cores: up to so many threads a step is done in the time of one, and more of them take turns. So manycore gives what it starts as many threads as cores, and at least the four that Node has, because work on files waits more than it computes.`;
  },
  chart: (stored) => ({
    title: 'Six pbkdf2 begun together: when each is done',
    unit: 'ms',
    scale: 'linear',
    series: jobs.map((job) => `done ${job}`),
    groups: sizes.map((size) => ({
      label: poolOf(size),
      bars: jobs.map((job) => stored.spread('staircase', poolOf(size), 'node', `done${job}Ms`)),
    })),
    notes: ['100,000 turns each, UV_THREADPOOL_SIZE set where the process is started.'],
  }),
};

const channels = { shm: 'shared memory', socket: 'sockets', memory: 'threads' };

const checker: Section = {
  name: 'checker',
  title: 'The plagiarism checker by channel',
  from: 'scaling',
  source:
    'The study of Haskell on many cores: on 72 cores the checker is 20 times as fast over shared memory between processes, 13 times over sockets, 5 times with threads that share a collector.',
  ours: (stored) => {
    const most = mostWorkers(stored);
    const gain = (channel: string): string =>
      stored.times('scaling', 'perSecond', ['checker-1', 'loop'], [`checker-${most}`, channel]);
    return `Against a plain loop, on ${most} cores: ${gain('shm')} times over shared memory, ${gain('socket')} over sockets, ${gain('memory')} with threads. What splits the three at 72 cores does not yet show here: pairs of files are large tasks, so a channel is used seldom, and threads of Node have heaps of their own, so there is no shared collector that could stop them all. The curves with the laws fitted to them are in [bench/results/scaling](../bench/results/scaling/checker.svg); what they say beyond the cores that were measured is a guess, and drawn as one.`;
  },
  chart: (stored) => ({
    title: 'The checker: pairs of files compared',
    unit: 'items per second',
    scale: 'linear',
    series: Object.values(channels),
    groups: workersOf(stored).map((count) => ({
      label: `${count} worker${count === 1 ? '' : 's'}`,
      bars: Object.keys(channels).map((channel) =>
        stored.spread('scaling', `checker-${count}`, channel, 'perSecond'),
      ),
    })),
    notes: [],
  }),
};

function workersOf(stored: Stored): number[] {
  return stored
    .settings('scaling')
    .flatMap((setting) => /^checker-(\d+)$/.exec(setting)?.[1] ?? [])
    .map(Number);
}

function mostWorkers(stored: Stored): number {
  return Math.max(...workersOf(stored), 1);
}

const gc: Section = {
  name: 'gc',
  title: 'Settings of the collector against fluctuation',
  from: 'gc',
  source:
    'The same study: a young area and a heap fitted to the number of cores make the run times fluctuate 34 % less.',
  ours: (stored) => {
    const settings = stored.settings('gc');
    const last = settings.at(-1) ?? '';
    const uneven = (contender: string): string => stored.text('gc', last, contender, 'unevenness');
    return `Unevenness of the work done in slices of 50 ms, with ${last}, in percent: ${uneven('default')} with nothing set, ${uneven('semi-space 8 MiB')} and ${uneven('semi-space 128 MiB')} with a small and a large young area, ${uneven('one GC thread')} with one thread that collects, ${uneven('heap near the live set')} with a heap near what lives in it. V8 grows its young area by itself, so there is less to set than in the Haskell runtime of the study. \`manycore tune\` tries these under a program's own load, and says when none of them is worth setting.`;
  },
  chart: (stored) => ({
    title: 'How unevenly an allocating load gets on',
    unit: '% of the mean of what is done in 50 ms',
    scale: 'linear',
    series: stored.contenders('gc', stored.settings('gc')[0] ?? ''),
    groups: stored.settings('gc').map((setting) => ({
      label: setting,
      bars: stored
        .contenders('gc', setting)
        .map((contender) => stored.spread('gc', setting, contender, 'unevenness')),
    })),
    notes: ['Lower is more even. Ranges are those of the rounds.'],
  }),
};

const shares = [0, 25, 50, 75, 100].map((share) => `${share} % CGI`);

const mix: Section = {
  name: 'mix',
  title: 'Files and CGI programs in one server',
  from: 'serve-mix',
  source:
    'The analysis of Apache 2.0: 75 to 78 % of the CPU time are spent in the kernel, and with CGI over half of that is `read()` on pipes.',
  ours: (stored) => {
    const [files, programs] = ['0 % CGI', '100 % CGI'];
    const of = (contender: string, figure: string, setting: string): string =>
      stored.text('serve-mix', setting, contender, figure);
    const timesOf = (contender: string): string =>
      `${of(contender, 'systemShare', files)} percent system and ${of(contender, 'userShare', files)} user time with files alone, ${of(contender, 'systemShare', programs)} and ${of(contender, 'userShare', programs)} with programs alone`;
    const ratesOf = (contender: string): string =>
      `${of(contender, 'perSecond', files)} requests per second with files, ${of(contender, 'perSecond', programs)} with programs`;
    const ours = `Of the whole machine, the load generator with it, manycore: ${timesOf('manycore-2x1')}; ${ratesOf('manycore-2x1')}. Starting a process is most of a request to a program, and that is work of the kernel.`;
    const apache = stored.where('serve-mix', 'apache-worker', () => {
      const cpu = stored.times(
        'serve-mix',
        'cpuUs',
        [files, 'apache-worker'],
        [files, 'manycore-2x1'],
      );
      return ` Apache's worker model: ${timesOf('apache-worker')}; ${ratesOf('apache-worker')}. It is written in C: for a file ours takes ${cpu} times its CPU.`;
    });
    return `${ours}${apache}`;
  },
  chart: (stored) => ({
    title: 'System and user time by the share of CGI programs',
    unit: '% of all cores, the load generator with them',
    scale: 'linear',
    series: ['system', 'user'],
    groups: shares.map((setting) => ({
      label: setting,
      bars: mixServers(stored).map((contender) => sharesOf(stored, setting, contender)),
    })),
    notes: [
      `From the left in each group: ${mixServers(stored).join(', ')}. manycore-2x1: two processes with a loop each.`,
    ],
  }),
};

function mixServers(stored: Stored): string[] {
  const all = stored.contenders('serve-mix', shares[0] ?? '');
  return all.filter((contender) => contender !== 'manycore-1x2');
}

function sharesOf(stored: Stored, setting: string, contender: string): BarValue {
  const spreads = ['systemShare', 'userShare'].map((figure) =>
    stored.spread('serve-mix', setting, contender, figure),
  );
  const known = spreads.filter((spread) => spread !== undefined);
  return known.length === spreads.length ? known : undefined;
}

const callGroups = {
  programs: 'fork, exec, wait',
  memory: 'mmap, brk',
  read: 'read',
  write: 'write, sendfile',
  files: 'open, stat, close',
  pipes: 'pipe, dup, fcntl',
  events: 'epoll, futex',
  others: 'others',
};
const callServers = (stored: Stored): string[] => stored.contenders('mix-calls', shares[0] ?? '');

const mixCalls: Section = {
  name: 'mix-calls',
  title: 'The calls that dominate there',
  from: 'mix-calls',
  source: 'The same analysis: with CGI over half of the kernel time is `read()` on pipes.',
  ours: (stored) => {
    const share = (contender: string, group: string): string =>
      stored.text('mix-calls', '100 % CGI', contender, group);
    const sharesIn = (contender: string): string =>
      `\`read\` has ${share(contender, 'read')} percent, starting programs and waiting for their end ${share(contender, 'programs')}, memory ${share(contender, 'memory')}`;
    const apache = stored.where(
      'mix-calls',
      'apache-worker',
      () => ` In Apache's worker model ${sharesIn('apache-worker')}.`,
    );
    return `Shares of the time that system calls were on a core, counted by \`manycore trace\`, with programs alone: ${sharesIn('manycore-2x1')}.${apache} Twenty years after the source a read from a pipe is cheap, and time that a read only waits is not counted here; what a small program costs is its start. Page faults and interrupts, which are system time too, are no calls and are not in these shares.`;
  },
  chart: (stored) => ({
    title: 'System calls by the share of CGI programs',
    unit: '% of the time that calls were on a core',
    scale: 'linear',
    series: Object.values(callGroups),
    groups: shares.map((setting) => ({
      label: setting,
      bars: callServers(stored).map((contender) => partsOf(stored, setting, contender)),
    })),
    notes: [`From the left in each group: ${callServers(stored).join(', ')}.`],
  }),
};

function partsOf(stored: Stored, setting: string, contender: string): BarValue {
  const spreads = Object.keys(callGroups).map((group) =>
    stored.spread('mix-calls', setting, contender, group),
  );
  const known = spreads.filter((spread) => spread !== undefined);
  return known.length === spreads.length ? known : undefined;
}

const instances = [1, 2, 4, 8];

const hello: Section = {
  name: 'hello',
  title: 'Hello world by instances',
  from: 'hello-units',
  source:
    'Vert.x: each instance of a verticle is pinned to one of several event loops, so that as many as there are cores use them all. No figure is given.',
  ours: (stored) => {
    const rate = (contender: string): string =>
      stored.text('hello-units', 'kept-alive', contender, 'perSecond');
    const cpu = (contender: string): string =>
      stored.text('hello-units', 'kept-alive', contender, 'cpuUs');
    const ratesOf = (kind: string): string =>
      instances.map((count) => rate(`${kind}-${count}`)).join(', ');
    const gain = (kind: string): string => {
      const from = ['kept-alive', `${kind}-1`] as const;
      return stored.times('hello-units', 'perSecond', from, ['kept-alive', `${kind}-2`]);
    };
    const vertx = stored.where(
      'hello-units',
      'vertx-1',
      () =>
        ` Vert.x itself: ${ratesOf('vertx')}, ${gain('vertx')} times as many with two as with one; ${cpu('vertx-2')} µs of CPU for a request with two.`,
    );
    return `Requests per second of units with 1, 2, 4 and 8 instances on two loops: ${ratesOf('unit')}, ${gain('unit')} times as many with two as with one; ${cpu('unit-2')} µs of CPU for a request with two.${vertx} The load generator shares the ${stored.cores('hello-units')} cores with the server.`;
  },
  chart: (stored) => ({
    title: 'Hello world by instances, 64 connections that are kept',
    unit: 'requests per second',
    scale: 'linear',
    series: helloKinds(stored).map((kind) => (kind === 'unit' ? 'units of manycore' : 'Vert.x')),
    groups: instances.map((count) => ({
      label: `${count} instance${count === 1 ? '' : 's'}`,
      bars: helloKinds(stored).map((kind) =>
        stored.spread('hello-units', 'kept-alive', `${kind}-${count}`, 'perSecond'),
      ),
    })),
    notes: [],
  }),
};

function helloKinds(stored: Stored): string[] {
  const measured = stored.contenders('hello-units', 'kept-alive');
  return ['unit', 'vertx'].filter((kind) => measured.includes(`${kind}-1`));
}

const models = ['one process', 'pmap', 'worker pool', 'master and slaves'];

const lines: Section = {
  name: 'lines',
  title: 'Lines of code by model',
  from: 'lines',
  source:
    'The study of Haskell: a parallel map in 65 % fewer lines than the same with a master and its slaves.',
  ours: (stored) => {
    const count = (contender: string): string =>
      stored.text('lines', 'compare', contender, 'lines');
    return `Lines that are neither empty nor only a comment: ${count('one process')} for the plain program, ${count('pmap')} with \`pmap\`, ${count('worker pool')} with piscina, ${count('master and slaves')} for a master with slaves by hand, which still has no limit of time, no restart of a slave and no stream of results. The programs are in [bench/paper/lines](../bench/paper/lines) and [bench/rivals/lines](../bench/rivals/lines), and each is run and its answer checked before its lines are counted. The study counted a whole application and we a small one, where the fixed part of the master weighs more.`;
  },
  chart: (stored) => ({
    title: 'The same parallel map, by model',
    unit: 'lines',
    scale: 'linear',
    series: ['lines'],
    groups: models.map((model) => ({
      label: model,
      bars: [stored.spread('lines', 'compare', model, 'lines')],
    })),
    notes: [],
  }),
};

export const sections: readonly Section[] = [
  smartTv,
  fibonacci,
  mixed,
  staircase,
  checker,
  gc,
  mix,
  mixCalls,
  hello,
  smallSet,
  largeSet,
  partitions,
  lines,
];
