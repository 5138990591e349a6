// How many waiting tasks survive while workers are killed, and how long does it take to abort many?
import { loadContender } from '../lib/contenders.js';
import { counted, millis, runsOf } from '../lib/figures.js';
import { expectSame } from '../lib/measure.js';
import { descendants } from '../lib/processes.js';
import { sleepMs } from '../lib/tasks.js';

const retrying = 'manycore-process+retry';
const processes = [retrying, 'manycore-process', 'workerpool-process', 'tinypool-process'];
const manyTasks = 20_000;
/** Retries for a task whose worker is killed at each run. */
const retry = 1000;
const killEveryMs = 50;
const killForMs = 5000;
/** Time after the last kill; contenders that have not answered by then have lost their tasks. */
const waitMs = 15_000;

export default {
  figures: {
    rejected: counted('tasks rejected', 'tasks'),
    pending: counted('tasks that never settled', 'tasks'),
    kills: counted('workers killed', 'workers'),
    abortMs: millis('all aborted'),
  },
  settings: {
    killed: {
      says: `${manyTasks} tasks of 1 ms on 2 workers, the first child killed each ${killEveryMs} ms for ${killForMs / 1000} s`,
    },
    wave: { says: '1,000 tasks on 8 workers, each of which is killed once at its start' },
    aborted: { says: `${manyTasks} waiting tasks on one signal, which is aborted` },
  },
  runs: [
    ...runsOf('killed', processes),
    ...runsOf('wave', processes),
    ...runsOf('aborted', ['manycore-process', 'manycore-thread', 'piscina', 'tinypool-thread']),
  ],
  rounds: 3,
  deadlineMs: 60_000,
  bars: [
    ...['killed', 'wave'].map((setting) => ({
      says: `${setting === 'killed' ? '20,000 tasks, first child killed each 50 ms' : '1,000 tasks, each of 8 workers killed once'}: rejected, with retry`,
      figure: 'rejected',
      of: { setting, contender: retrying },
      atMost: 0,
    })),
    ...['manycore-process', 'manycore-thread'].map((contender) => ({
      says: `20,000 aborts on one signal, ${contender.slice(9)} workers, in ms`,
      figure: 'abortMs',
      of: { setting: 'aborted', contender },
      atMost: 100,
    })),
  ],
  measure: ({ setting, contender }) =>
    setting === 'aborted' ? measureAborts(contender) : measureKills(setting, contender),
};

async function measureKills(setting, contender) {
  const workers = setting === 'killed' ? 2 : 8;
  const count = setting === 'killed' ? manyTasks : 1000;
  // A failing pool may throw outside of any call: the case does not count that.
  process.on('uncaughtException', () => {});
  const open = await loadContender(contender);
  const { pool, caller } = open({ workers });
  const call =
    contender === retrying ? (ms) => pool.with({ retry }).run(sleepMs, ms) : caller('sleepMs');
  let [settled, rejected, kills] = [0, 0, 0];
  const calls = Array.from({ length: count }, () =>
    call(1).then(
      () => (settled += 1),
      () => (rejected += 1),
    ),
  );
  const killed = new Set();
  const kill = (pid) => {
    try {
      process.kill(pid, 'SIGKILL');
      killed.add(pid);
      kills += 1;
    } catch {
      // it has ended by itself
    }
  };
  const end = performance.now() + killForMs;
  while (performance.now() < end && settled + rejected < count) {
    const pids = descendants();
    if (setting === 'killed') pids.slice(0, 1).forEach(kill);
    else if (kills < workers) {
      for (const pid of pids) if (!killed.has(pid) && kills < workers) kill(pid);
    }
    await new Promise((resolve) => setTimeout(resolve, setting === 'killed' ? killEveryMs : 1));
  }
  const over = new Promise((resolve) => setTimeout(resolve, waitMs));
  await Promise.race([Promise.all(calls), over]);
  return { rejected, pending: count - settled - rejected, kills };
}

async function measureAborts(contender) {
  const open = await loadContender(contender);
  const { pool, theirs, caller } = open({ workers: 2 });
  expectSame(await caller('add')(1), 2);
  const controller = new AbortController();
  const { signal } = controller;
  const call = pool
    ? () => pool.with({ signal }).run(sleepMs, 60_000)
    : () => theirs.run(60_000, { name: 'sleepMs', signal });
  const calls = Array.from({ length: manyTasks }, call);
  const all = Promise.allSettled(calls);
  await new Promise((resolve) => setTimeout(resolve, 500)); // two of them run
  const start = performance.now();
  controller.abort();
  const results = await all;
  const abortMs = performance.now() - start;
  expectSame(results.filter(({ status }) => status === 'rejected').length, manyTasks);
  return { abortMs };
}
