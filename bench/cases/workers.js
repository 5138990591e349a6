// How long does a fixed amount of work take on 1 … 8 workers, and where does the time go?
// One cold program a run: it starts the workers, gives them all tasks at once, and waits for the last answer.
// The total is the sum of three parts. `start`: until the workers have started. `compute`: the CPU time of
// the tasks, shared among as many cores as could work on it. `overhead`: the rest. That is tasks and answers
// on their way, workers that wait for the last, and workers beyond the cores that take turns.
import { availableParallelism } from 'node:os';
import { Pool } from 'manycore';
import { millis } from '../lib/figures.js';
import { answersOf, loads } from '../paper/loads.js';

const workerCounts = [1, 2, 3, 4, 5, 6, 7, 8];
const settingOf = (load, workers) => `${load}-${workers}`;
const all = Object.keys(loads).flatMap((load) =>
  workerCounts.map((workers) => ({ load, workers })),
);

export default {
  figures: {
    totalMs: millis('whole'),
    startMs: millis('start'),
    computeMs: millis('compute'),
    overheadMs: millis('overhead'),
  },
  settings: Object.fromEntries(
    all.map(({ load, workers }) => [
      settingOf(load, workers),
      { load, workers, says: `${loads[load].says}, ${workers} worker${workers === 1 ? '' : 's'}` },
    ]),
  ),
  runs: all.map(({ load, workers }) => ({
    setting: settingOf(load, workers),
    contender: 'manycore-process',
  })),
  deadlineMs: 60_000,
  bars: [],
  async measure({ setting, scale }) {
    const [, load, workers] = /^(.*)-(\d+)$/.exec(setting);
    const { tasks } = loads[load];
    const began = performance.now();
    const pool = new Pool({ size: Number(workers) });
    await pool.warm();
    const startMs = performance.now() - began;
    const given = tasks.slice(0, Math.ceil(tasks.length * scale));
    const { cpuMs } = await answersOf(given, pool);
    const totalMs = performance.now() - began;
    const computeMs = cpuMs / Math.min(Number(workers), availableParallelism());
    return { totalMs, startMs, computeMs, overheadMs: totalMs - startMs - computeMs };
  },
};
