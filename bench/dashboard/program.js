// A program that reports a pool with busy workers, as many as its argument, which end 10,000 tasks a second.
// The agent and its slices are those of every program; tasks are made up, since real ones would take all
// cores from the measured page. Each worker is a sleeping process, so that readers of the system's figures
// find one.
import { spawn } from 'node:child_process';
import { addSource } from '../../dist/src/agent/index.js';
import { announcements } from '../../dist/src/lib/index.js';

const workers = Number(process.argv[2] ?? 64);
const tasksPerSecond = 10_000;
const tickMs = 10;
/** Mean duration by which all workers are busy all the time. */
const meanMs = (1000 * workers) / tasksPerSecond;

const sleepers = Array.from({ length: workers }, () =>
  spawn('sleep', ['300'], { stdio: 'ignore' }),
);
const end = () => {
  for (const sleeper of sleepers) sleeper.kill('SIGKILL');
};
process.once('exit', end);
process.once('disconnect', () => process.exit());

const began = performance.now();

const durations = { count: 0, meanMs, p50Ms: meanMs, p95Ms: meanMs, p99Ms: 2 * meanMs, maxMs: 20 };
/** The source stays registered while it is referenced: the timer below does that. */
const pool = { done: 0 };
addSource('pool', pool, ({ done }) => ({
  channel: 'shm',
  workers: Array.from({ length: workers }, (_, at) => ({
    id: at + 1,
    kind: 'process',
    pid: sleepers[at].pid,
    state: 'ready',
    tasksInFlight: 1,
    tasksDone: Math.floor(done / workers),
  })),
  startedWorkers: workers,
  exitedWorkers: 0,
  waitingTasks: 0,
  runningTasks: workers,
  completedTasks: done,
  failedTasks: 0,
  waited: durations,
  ran: durations,
}));

setInterval(() => {
  const due = Math.floor(((performance.now() - began) / 1000) * tasksPerSecond);
  for (; pool.done < due; pool.done += 1) {
    const { done } = pool;
    // Short and long ones, `meanMs` in the mean.
    const ranMs = meanMs * (0.5 + ((done * 7919) % 1000) / 1000);
    const task = { pool: 1, task: done, worker: (done % workers) + 1, name: 'work' };
    announcements.taskStart.publish({ ...task, waitedMs: 0 });
    announcements.taskEnd.publish({ ...task, ranMs });
  }
}, tickMs);
