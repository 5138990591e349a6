// What does a transaction cost, against a call to the process that owns the data, and what does a second process add?
// GHC's STM, the model, is measured beside it where it is installed: with its own threads in one heap.
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Pool, perWorker } from 'manycore';
import { atomically, atomicallyWhen, check, tvar } from 'manycore/stm';
import { fill, work } from '../../examples/stm-structures/structures.js';
import { counted, micros, perSecond } from '../lib/figures.js';
import { countCalls, expectSame, summarize, timeCalls, warmUpMs } from '../lib/measure.js';
import { hasGhc, runGhc } from '../rivals/ghc.js';

/** Structures with the numbers in them, and the bar of two processes against one. */
const structures = {
  'list-100': 1.7,
  'list-10000': undefined,
  'elastic-list-100': 1.7,
  'tree-100': undefined,
  'tree-10000': 1.7,
  'map-100': undefined,
  'map-10000': 1.7,
};
const alone = fileURLToPath(new URL('../lib/structure-alone.js', import.meta.url));
/** Two programs that share nothing: what the machine gives to two processes. */
const apart = 'two-programs';
/** More processes than cores, too: a transaction must not wait for one that has no core. */
const processCounts = [1, 2, 4];
const ofProcesses = (count) => `${count}-process${count === 1 ? '' : 'es'}`;
/** Structures that exist in Haskell, too. */
const inGhc = ['list-100', 'list-10000', 'tree-100', 'tree-10000'];
const ofGhc = (count) => `ghc-${count}`;
/** Calls that wait at the owner of a Map. */
const waitingCalls = 64;
/** Time between two round trips: long enough for both sides to sleep. */
const pauseMs = 3;

const of = (setting, contender) => ({ setting, contender });

const structureRuns = (withGhc) =>
  Object.keys(structures).flatMap((name) => [
    ...processCounts.map((count) => of(name, ofProcesses(count))),
    ...(structures[name] === undefined ? [] : [of(name, apart)]),
    ...(withGhc && inGhc.includes(name)
      ? processCounts.map((count) => of(name, ofGhc(count)))
      : []),
  ]);

/** A structure of two processes, against what two capabilities of GHC do with the same or a similar one. */
const againstGhc = (says, name, other, atLeast) => ({
  says: `${says}, two processes, against two capabilities of GHC`,
  figure: 'perSecond',
  of: of(name, ofProcesses(2)),
  against: [of(other, ofGhc(2))],
  atLeast,
});

const ghcBars = [
  againstGhc('list of 100', 'list-100', 'list-100', 1.3),
  againstGhc('list of 10,000', 'list-10000', 'list-10000', 50),
  againstGhc('sorted map of 10,000 against its tree', 'map-10000', 'tree-10000', 1.2),
];

const bars = [
  {
    says: 'read-only transaction of one variable',
    figure: 'eachNs',
    of: of('read', 'transaction'),
    atMost: 150,
  },
  {
    says: 'the same, against a call to the owner of a Map',
    figure: 'eachNs',
    of: of('read', 'transaction'),
    against: [of('read', 'call')],
    atMost: 1 / 60,
  },
  ...Object.entries(structures)
    .filter(([, atLeast]) => atLeast !== undefined)
    .map(([name, atLeast]) => ({
      says: `${name}, two processes against one`,
      figure: 'perSecond',
      of: of(name, '2-processes'),
      against: [of(name, '1-process')],
      atLeast,
    })),
  ...Object.keys(structures)
    .filter((name) => structures[name] !== undefined)
    .map((name) => ({
      says: `${name}, two processes, against two programs that share nothing`,
      figure: 'perSecond',
      of: of(name, ofProcesses(2)),
      against: [of(name, apart)],
      atLeast: 0.9,
    })),
  {
    says: 'sorted map of 10,000, two processes, against calls to the owner of a Map',
    figure: 'perSecond',
    of: of('map-10000', ofProcesses(2)),
    against: [of('owner', 'calls')],
    atLeast: 2.5,
  },
  {
    says: 'sorted map of 10,000, one process, against calls to the owner of a Map',
    figure: 'perSecond',
    of: of('map-10000', '1-process'),
    against: [of('owner', 'calls')],
    atLeast: 3,
  },
  {
    says: 'blocking retry there and back, against a call that sleeps on both sides',
    figure: 'p50Us',
    of: of('wake', 'retry'),
    against: [of('wake', 'call')],
    atMost: 1.2,
  },
];

export default {
  figures: {
    eachNs: counted('each', 'ns'),
    p50Us: micros('p50'),
    perSecond: perSecond('operations'),
  },
  settings: {
    read: { says: 'one variable is read; a call asks the worker that owns a Map, one at a time' },
    increment: { says: 'one variable is read and set; a call does so in the Map of a worker' },
    ...Object.fromEntries(
      Object.keys(structures).map((name) => [
        name,
        { says: `${name.replace('-', ' of ')} numbers: half searches, half changes` },
      ]),
    ),
    owner: {
      says: `the same by calls to a worker that owns a Map of 10,000, ${waitingCalls} waiting`,
    },
    wake: { says: `both sides sleep ${pauseMs} ms, then one wakes the other, which answers` },
  },
  plan: () => ({
    bars: [...bars, ...(hasGhc() ? ghcBars : [])],
    runs: [
      of('read', 'transaction'),
      of('read', 'call'),
      of('increment', 'transaction'),
      of('increment', 'call'),
      ...structureRuns(hasGhc()),
      of('owner', 'calls'),
      of('wake', 'retry'),
      of('wake', 'call'),
    ],
  }),
  async measure({ contender, setting, scale }) {
    const windows = { warmMs: warmUpMs * scale, windowMs: 1000 * scale };
    if (setting in structures) {
      const [, name, count] = /^(.*)-(\d+)$/.exec(setting);
      if (contender === apart) return { perSecond: await runApart(name, Number(count), windows) };
      const [, processes] = /(\d+)/.exec(contender);
      const run = contender.startsWith('ghc') ? runGhc : runStructure;
      return { perSecond: await run(name, Number(count), Number(processes), windows) };
    }
    if (setting === 'owner') return await countOwned(windows);
    if (setting === 'wake') return await timeWakes[contender](Math.ceil(300 * scale));
    if (contender === 'transaction') return timeTransactions(setting, windows);
    const pool = new Pool({ size: 1 });
    const map = perWorker(() => new Map([['key', 0]]));
    const calls = {
      read: () => map().get('key'),
      increment: () => {
        map().set('key', map().get('key') + 1);
        return map().get('key');
      },
    };
    const wanted = (turn) => (setting === 'read' ? 0 : turn + 1);
    const call = () => pool.run(calls[setting]);
    const times = await timeCalls(call, (got, turn) => expectSame(got, wanted(turn)), windows);
    return { ...times, eachNs: times.p50Us * 1000 };
  },
};

function timeTransactions(setting, { warmMs, windowMs }) {
  const value = tvar(0);
  const ways = {
    read: () => atomically(() => value.get()),
    increment: () => atomically(() => value.update((count) => count + 1)),
  };
  const batch = 1000;
  let count = 0;
  const repeat = (forMs) => {
    const start = performance.now();
    let turns = 0;
    let tookMs = 0;
    for (; tookMs < forMs; tookMs = performance.now() - start) {
      for (let turn = 0; turn < batch; turn += 1) ways[setting]();
      turns += batch;
    }
    count += turns;
    return (tookMs * 1e6) / turns;
  };
  repeat(warmMs);
  const eachNs = repeat(windowMs);
  expectSame(value.peek(), setting === 'read' ? 0 : count);
  return { eachNs };
}

async function runStructure(name, count, processes, windows) {
  const set = fill(name, count);
  const pool = new Pool({ size: processes });
  const counts = await Promise.all(
    Array.from({ length: processes }, () => pool.run(work, name, set, count, windows)),
  );
  const total = counts.reduce((sum, turns) => sum + turns, 0);
  return (total / windows.windowMs) * 1000;
}

async function runApart(name, count, { warmMs, windowMs }) {
  const args = [alone, name, count, warmMs, windowMs].map(String);
  const runs = await Promise.all([1, 2].map(() => promisify(execFile)(process.execPath, args)));
  const total = runs.reduce((sum, { stdout }) => sum + Number(stdout), 0);
  return (total / windowMs) * 1000;
}

async function countOwned(windows) {
  const pool = new Pool({ size: 1 });
  const owned = perWorker(() => {
    const numbers = Array.from({ length: 10_000 }, (_, at) => [2 * at, true]);
    return new Map(numbers);
  });
  const operate = (what, key) => {
    if (what === 0) return owned().has(key);
    if (what === 1) return owned().set(key, true) !== undefined;
    return owned().delete(key);
  };
  const call = () => {
    const what = Math.random();
    return pool.run(
      operate,
      what < 0.5 ? 0 : what < 0.75 ? 1 : 2,
      Math.floor(Math.random() * 20_000),
    );
  };
  return await countCalls(call, waitingCalls, windows);
}

const timeWakes = {
  async retry(rounds) {
    const [question, answer] = [tvar(0), tvar(0)];
    const pool = new Pool({ size: 1 });
    const answers = pool.run(async () => {
      for (let round = 1; round <= rounds; round += 1) {
        await atomicallyWhen(() => {
          check(question.get() === round);
          answer.set(round);
        });
      }
    });
    let round = 0;
    const times = await timeEach(rounds, async () => {
      round += 1;
      atomically(() => question.set(round));
      await atomicallyWhen(() => check(answer.get() === round));
    });
    await answers;
    return times;
  },
  async call(rounds) {
    const pool = new Pool({ size: 1 });
    const one = () => 1;
    const call = () => pool.run(one);
    await call();
    return await timeEach(rounds, call);
  },
};

async function timeEach(rounds, body) {
  const times = [];
  for (let round = 0; round < rounds; round += 1) {
    await sleep(pauseMs);
    const start = performance.now();
    await body();
    times.push(performance.now() - start);
  }
  return summarize(times);
}
