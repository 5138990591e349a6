// Does transactional memory stay as it was while workers are killed in the middle of what they do to it?
// Workers change variables and collections without a pause: for a minute as they are, then for ten minutes in which one
// of them is killed each 100 ms. One more is never killed: it does most of the work, because young ones are not
// optimized yet. Each thread keeps free memory for itself, so that the memory grows for a while without any death.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'manycore';
import {
  atomically,
  stmStats,
  tcounter,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from 'manycore/stm';
import { counted, millis, runsOf } from '../lib/figures.js';
import { descendants } from '../lib/processes.js';

const setting = 'killed';
const minutes = 10;
const killEveryMs = 100;
const victims = 3;
/** Age from which on a worker is killed: the pool restarts one later that has done nothing yet. */
const leastAgeMs = 300;
const moments = ['calm', 'killed'];
const accountCount = 20;
const itemCount = 300;
/** Codes of a call whose worker was killed, at work or at its start. */
const deaths = new Set(['WORKER_EXITED', 'WORKER_START_FAILED']);

const bar = (contender, figure, says, limit) => ({
  says,
  figure,
  of: { setting, contender },
  ...limit,
});

export default {
  figures: {
    memoryMiB: counted('memory of variables and collections', 'MiB'),
    commits: counted('transactions that set something', 'millions'),
    kills: counted('workers killed', 'workers'),
    wrong: counted('sums and items that are wrong', 'faults'),
    longestMs: millis('longest transaction of the worker that lives, with the waits for a core'),
  },
  settings: {
    [setting]: {
      says: `${victims + 1} workers change variables, maps, a list, a queue and a counter for a minute; then, of all but one, one is killed each ${killEveryMs} ms for ${minutes} minutes`,
    },
  },
  rounds: 1,
  isTogether: true,
  deadlineMs: (minutes + 2) * 60_000,
  runs: runsOf(setting, moments),
  bars: [
    bar(
      moments[1],
      'memoryMiB',
      `memory after ${minutes} minutes of deaths against a minute without`,
      {
        against: [{ setting, contender: moments[0] }],
        atMost: 1.05,
      },
    ),
    bar(moments[1], 'commits', `millions of transactions in ${minutes + 1} minutes`, {
      atLeast: 100,
    }),
    bar(moments[1], 'wrong', 'sums and items that are wrong', { atMost: 0 }),
  ],
  async measure({ scale }) {
    const shared = {
      accounts: Array.from({ length: accountCount }, () => tvar(100)),
      // An item is in one of the three.
      map: tmap(),
      sorted: tsortedMap(),
      list: tlist(),
      queue: tqueue(),
      counter: tcounter(),
    };
    for (let item = 0; item < itemCount; item++) shared.map.set(item, 'x'.repeat(item));
    atomically(() => {
      for (let item = 0; item < 10; item++) shared.queue.put(item);
    });
    const pool = new Pool({ size: victims });
    const steadyPool = new Pool({ size: 1 });
    const steadyPid = await steadyPool.run(() => process.pid);
    let isOver = false;
    const faults = [];
    const keepWorking = async () => {
      // A killed worker rejects its call: the next one goes to its successor.
      while (!isOver) {
        await pool.run(work, shared, 1000).catch(({ code, message }) => {
          if (!deaths.has(code)) faults.push(message);
        });
      }
    };
    const working = Array.from({ length: victims }, keepWorking);
    let longestMs = 0;
    const keepSteady = async () => {
      while (!isOver) longestMs = Math.max(longestMs, await steadyPool.run(work, shared, 1000));
    };
    const steady = keepSteady();
    const first = stmStats().commits;
    let kills = 0;
    const firstSeen = new Map();
    const killFor = async (ms) => {
      for (const end = performance.now() + ms; performance.now() < end; ) {
        const now = performance.now();
        const pids = descendants(process.pid);
        for (const pid of pids) if (!firstSeen.has(pid)) firstSeen.set(pid, now);
        const isOld = (pid) => now - firstSeen.get(pid) >= leastAgeMs;
        const old = pids.filter((pid) => pid !== steadyPid && isOld(pid));
        if (old.length > 0) {
          process.kill(old[Math.floor(Math.random() * old.length)], 'SIGKILL');
          kills++;
        }
        await sleep(killEveryMs);
      }
    };
    const figures = () => ({
      memoryMiB: stmStats().memoryBytes / 1024 ** 2,
      commits: ((stmStats().commits - first) >>> 0) / 1e6,
      kills,
      longestMs,
      wrong: faultsIn(shared) + faults.length,
    });
    await sleep(60_000 * scale);
    const found = { [moments[0]]: figures() };
    await killFor(minutes * 60_000 * scale);
    found[moments[1]] = figures();
    isOver = true;
    await Promise.all([...working, steady]);
    await Promise.all([pool.close(), steadyPool.close()]);
    for (const fault of faults.slice(0, 10)) console.error(fault);
    return found;
  },
};

/** Sums that are not those of the beginning, and items that are nowhere or twice. */
function faultsIn({ accounts, map, sorted, list, queue }) {
  return atomically(() => {
    const sum = accounts.reduce((total, account) => total + account.get(), 0);
    const items = [...map.keys(), ...sorted.keys(), ...list.keys()].sort(
      (one, other) => one - other,
    );
    const wrong = items.filter((item, at) => item !== at).length;
    const isCounted = items.length === itemCount && queue.size === 10;
    return wrong + (sum === 100 * accountCount ? 0 : 1) + (isCounted ? 0 : 1);
  });
}

/** Changes what is shared for so long; returns the time of the longest transaction, in ms. */
function work({ accounts, map, sorted, list, queue, counter }, ms) {
  const below = (count) => Math.floor(Math.random() * count);
  const moveItem = () => {
    const item = below(itemCount);
    if (map.delete(item)) sorted.set(item, 'x'.repeat(below(200)));
    else if (sorted.delete(item)) list.add(item);
    else if (list.delete(item)) map.set(item, 'x'.repeat(below(200)));
    else throw new Error(`the item ${item} is nowhere`);
  };
  const transfer = () => {
    const [from, to] = [accounts[below(accountCount)], accounts[below(accountCount)]];
    from.update((value) => value - 1);
    to.update((value) => value + 1);
  };
  const turn = () => queue.put(queue.take());
  const ways = [transfer, transfer, transfer, moveItem, moveItem, turn, () => counter.add()];
  let longestMs = 0;
  for (let now = performance.now(), end = now + ms; now < end; ) {
    atomically(ways[below(ways.length)]);
    const then = performance.now();
    longestMs = Math.max(longestMs, then - now);
    now = then;
  }
  return longestMs;
}
