// What does a transaction cost, against a call to the process that owns the data, and what does a second process add?
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, perWorker } from 'manycore';
import { atomically, atomicallyWhen, check, tvar } from 'manycore/stm';
import { counted, micros, perSecond } from '../lib/figures.js';
import { expectSame, summarize, timeCalls, warmUpMs } from '../lib/measure.js';
import { makeList, work } from '../lib/stm-list.js';

const listKeys = 100;
/** Time between two round trips: long enough for both sides to sleep. */
const pauseMs = 3;

const of = (setting, contender) => ({ setting, contender });

export default {
  figures: {
    eachNs: counted('each', 'ns'),
    p50Us: micros('p50'),
    perSecond: perSecond('operations'),
  },
  settings: {
    read: { says: 'one variable is read; a call asks the worker that owns a Map, one at a time' },
    increment: { says: 'one variable is read and set; a call does so in the Map of a worker' },
    list: { says: `sorted linked list of ${listKeys} keys, half of the operations change it` },
    wake: { says: `both sides sleep ${pauseMs} ms, then one wakes the other, which answers` },
  },
  runs: [
    of('read', 'transaction'),
    of('read', 'call'),
    of('increment', 'transaction'),
    of('increment', 'call'),
    of('list', '1-process'),
    of('list', '2-processes'),
    of('wake', 'retry'),
    of('wake', 'call'),
  ],
  bars: [
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
    {
      says: 'linked list, two processes against one',
      figure: 'perSecond',
      of: of('list', '2-processes'),
      against: [of('list', '1-process')],
      atLeast: 1.7,
    },
    {
      says: 'blocking retry there and back, against a call that sleeps on both sides',
      figure: 'p50Us',
      of: of('wake', 'retry'),
      against: [of('wake', 'call')],
      atMost: 1.2,
    },
  ],
  async measure({ contender, setting, scale }) {
    const windows = { warmMs: warmUpMs * scale, windowMs: 1000 * scale };
    if (setting === 'list') return await runList(contender === '1-process' ? 1 : 2, windows);
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

async function runList(processes, windows) {
  const list = makeList(Array.from({ length: listKeys / 2 }, (_, at) => 2 * at));
  const pool = new Pool({ size: processes });
  const counts = await Promise.all(
    Array.from({ length: processes }, () => pool.run(work, list, listKeys, windows)),
  );
  const total = counts.reduce((sum, count) => sum + count, 0);
  return { perSecond: (total / windows.windowMs) * 1000 };
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
    const call = () => pool.run(() => 1);
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
