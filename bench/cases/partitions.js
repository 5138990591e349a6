// What do partitions cost against a process worker: sandboxes, guests of User-mode Linux, guests of gVisor?
// A kind of worker that the machine does not have is left out, with the reason in the result. The environment
// variable MANYCORE_UML_KERNEL names the kernel for guests, where it is not the one that manycore finds.
// `fibonacci-N` is the figure of the source (docs/evidence.md), with the work of examples/partitions.
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, runSource } from 'manycore';
import { numbersUpTo, runFib, timeFibonacci } from '../../examples/partitions/fibonacci.js';
import { kinds, problemOf } from '../../examples/partitions/kinds.js';
import { micros, millis, perSecond, runsOf } from '../lib/figures.js';
import { countCalls, expectSame, timeCalls, warmUpMs } from '../lib/measure.js';
import { add, touch } from '../lib/tasks.js';
import { grantedWorkerCounts } from '../lib/worker-counts.js';

const kernel = process.env.MANYCORE_UML_KERNEL;
if (kernel !== undefined) Object.assign(kinds.uml.worker, { kernel });

/** Kinds that are compared with a process in each setting; threads are in the figure of the source alone. */
const partitions = ['sandbox', 'uml', 'gvisor'];
const compared = ['process', ...partitions];
/** Contenders of `spare` beside pools, and the kind that each needs. */
const spareCalls = { 'run-source': 'sandbox' };
const spares = ['process', ...Object.keys(spareCalls), 'uml', 'gvisor'];
const kindOf = (contender) => spareCalls[contender] ?? contender;
const waitingCalls = 64;
const largeBytes = 2 ** 24;
/** For the large value: a guest has several copies of it. */
const largeMemoryMb = 512;
/** Calls from a spare in each process, and the time in which the next spare starts. */
const spareTurns = 5;
const sparePauseMs = 1500;
const fibOf = 32;
const largest = 34;
/** All numbers together last 2.6 times as long as the largest: so often, and each of the workers has work. */
const repeats = Math.max(8, availableParallelism());
const ofWorkers = (workers) => `fibonacci-${workers}`;

const against = (setting, contender) => ({ against: runsOf(setting, [contender]) });
const bar = (says, setting, contender, figure, limit) => ({
  says: `${says}, ${kinds[kindOf(contender)].says}${contender in spareCalls ? ` (${contender})` : ''}`,
  figure,
  of: { setting, contender },
  ...limit,
});
/** A bar as a ratio to the process worker. */
const ratio = (says, setting, contender, figure, limit) =>
  bar(`${says}, against a process`, setting, contender, figure, {
    ...against(setting, 'process'),
    ...limit,
  });
const roundTrip = (contender, atMost) =>
  ratio('round trip, p50', 'round-trip', contender, 'p50Us', { atMost });

const bars = [
  ratio('first result of a new pool', 'first', 'sandbox', 'firstMs', { atMost: 1.3 }),
  bar('first result of a new pool, in ms', 'first', 'uml', 'firstMs', { atMost: 1000 }),
  bar('first result of a new pool, in ms', 'first', 'gvisor', 'firstMs', { atMost: 800 }),
  bar('result from a spare, in ms', 'spare', 'run-source', 'spareMs', { atMost: 2 }),
  bar('result from a spare, in ms', 'spare', 'uml', 'spareMs', { atMost: 150 }),
  roundTrip('sandbox', 1.1),
  roundTrip('uml', 5),
  roundTrip('gvisor', 10),
  ratio(`calls/s, ${waitingCalls} waiting`, 'calls', 'sandbox', 'perSecond', { atLeast: 0.9 }),
  ...partitions.map((kind) => ratio(`fib(${fibOf}), p50`, 'fib', kind, 'fibMs', { atMost: 1.05 })),
  bar('Fibonacci numbers, two workers against one', ofWorkers(2), 'uml', 'totalMs', {
    ...against(ofWorkers(1), 'uml'),
    timesFaster: 1.9,
  }),
];

export default {
  figures: {
    firstMs: millis('first result'),
    spareMs: millis('result from a spare'),
    p50Us: micros('p50'),
    p99Us: micros('p99'),
    perSecond: perSecond('calls'),
    cpuUs: micros('CPU per call'),
    largeMs: millis('large value there and back'),
    fibMs: millis(`fib(${fibOf}), p50`),
    totalMs: millis('all numbers'),
  },
  rounds: 7,
  deadlineMs: 60_000,
  async plan() {
    const problems = new Map();
    for (const kind of Object.keys(kinds)) problems.set(kind, await problemOf(kind));
    const isThere = ({ contender }) => problems.get(kindOf(contender)) === undefined;
    const counts = await grantedWorkerCounts();
    const settings = settingsFor(counts);
    const runs = [
      ...runsOf('first', compared),
      ...runsOf('spare', spares),
      ...['round-trip', 'calls', 'large', 'fib'].flatMap((setting) => runsOf(setting, compared)),
      ...counts.flatMap((workers) => runsOf(ofWorkers(workers), Object.keys(kinds))),
    ];
    return {
      settings,
      runs: runs.filter(isThere),
      bars: bars.filter(({ of }) => isThere(of) && of.setting in settings),
      skipped: [...problems].flatMap(([contender, says]) =>
        says === undefined ? [] : [{ contender, says }],
      ),
    };
  },
  async measure({ contender, setting, scale }) {
    const worker = kinds[contender]?.worker;
    if (setting === 'first') return await timeFirst(worker);
    if (setting === 'spare') return { spareMs: await timeSpares(contender, scale) };
    if (setting.startsWith('fibonacci')) {
      const workers = Number(setting.slice(ofWorkers('').length));
      const numbers = numbersUpTo(largest, Math.ceil(repeats * scale));
      return { totalMs: await timeFibonacci(worker, workers, numbers) };
    }
    const windows = { warmMs: warmUpMs * scale, windowMs: 1000 * scale };
    if (setting === 'large') return await timeLarge(worker, windows);
    const pool = new Pool({ worker, size: 1 });
    const call = (n) => pool.run(add, n);
    if (setting === 'calls') {
      const { perSecond, cpuUsPerCall } = await countCalls(call, waitingCalls, windows);
      return { perSecond, cpuUs: cpuUsPerCall };
    }
    if (setting === 'round-trip') {
      return await timeCalls(call, (got, turn) => expectSame(got, turn + 1), windows);
    }
    const check = (got) => expectSame(got, 2_178_309);
    const times = await timeCalls(() => runFib(pool, fibOf), check, windows);
    return { fibMs: times.p50Us / 1000 };
  },
};

function settingsFor(counts) {
  return {
    first: { says: 'a call to a new pool of one worker, the library imported' },
    spare: { says: 'a call while a worker that was not used yet waits' },
    'round-trip': { says: 'a number there and back, one worker, one call after the other' },
    calls: { says: `the same, ${waitingCalls} waiting` },
    large: { says: `a buffer of ${largeBytes / 2 ** 20} MiB there and back, one after the other` },
    fib: { says: `fib(${fibOf}), one worker, one call after the other` },
    ...Object.fromEntries(counts.map((workers) => [ofWorkers(workers), { says: saysOf(workers) }])),
  };
}

function saysOf(workers) {
  const numbers = `${repeats} times fib(1) … fib(${largest})`;
  return `${numbers}, ${workers} worker${workers === 1 ? '' : 's'}`;
}

async function timeFirst(worker) {
  const start = performance.now();
  const pool = new Pool({ worker, size: 1 });
  const got = await pool.run(add, 1);
  const firstMs = performance.now() - start;
  expectSame(got, 2);
  return { firstMs };
}

async function timeLarge(worker, windows) {
  const roomy = worker?.kind === undefined ? worker : { ...worker, memoryMb: largeMemoryMb };
  const pool = new Pool({ worker: roomy, size: 1 });
  const bytes = Buffer.alloc(largeBytes, 1);
  const call = async () => {
    const got = await pool.run(touch, bytes);
    expectSame(`${got.length} ${got[0]} ${got[1]}`, `${largeBytes} 2 1`);
  };
  const { perSecond, cpuUsPerCall } = await countCalls(call, 1, windows);
  return { largeMs: 1000 / perSecond, cpuUs: cpuUsPerCall };
}

/** Returns the median of some calls, each in a worker of its own that was started ahead. */
async function timeSpares(contender, scale) {
  const call = spareCaller(contender);
  expectSame(await call(1), 2);
  const times = [];
  for (let turn = 0; turn < Math.ceil(spareTurns * scale); turn++) {
    await sleep(sparePauseMs);
    const start = performance.now();
    const got = await call(turn);
    times.push(performance.now() - start);
    expectSame(got, turn + 1);
  }
  return times.sort((one, other) => one - other)[Math.floor(times.length / 2)];
}

function spareCaller(contender) {
  if (contender === 'run-source') return (n) => runSource('n + 1', { args: { n } });
  const pool = new Pool({
    worker: kinds[contender].worker,
    size: { min: 0, max: 2 },
    maxTasksPerWorker: 1,
    minSpareWorkers: 1,
    graceMs: 0,
  });
  return (n) => pool.run(add, n);
}
