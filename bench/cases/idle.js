// What does a pool cost when it is idle after use?
import { openContender } from '../lib/contenders.js';
import { counted, runsOf } from '../lib/figures.js';
import { countCalls } from '../lib/measure.js';
import { cpuTicks, descendants, treeCpuUs, wakeups } from '../lib/processes.js';

const idleMs = 10_000;
const settleMs = 2_000;
const ours = ['manycore-process', 'manycore-thread'];

export default {
  figures: {
    ticks: counted('CPU in 10 s', 'ticks'),
    cpuUs: counted('CPU in 10 s', 'µs'),
    wakeups: counted('wake-ups in 10 s', 'wake-ups'),
    timers: counted('timers armed', 'timers'),
  },
  settings: { free: { says: 'caller and 2 workers, from 2 s after the last call' } },
  runs: runsOf('free', [...ours, 'piscina', 'poolifier-thread', 'bare-thread', 'bare-fork-json']),
  // V8 collects an idle heap up to three times more, 8 s apart, in every Node process, with a pool or
  // without. That is off here, because it would hide everything else.
  nodeFlags: ['--no-memory-reducer'],
  // Contenders wait more than they work: all run at the same time, or the case would take minutes.
  atOnce: true,
  deadlineMs: 40_000,
  bars: ours.flatMap((contender) => {
    const of = { setting: 'free', contender };
    const kind = contender === 'manycore-process' ? 'processes' : 'threads';
    return [
      { says: `idle pool of 2 ${kind}, CPU in 10 s`, figure: 'ticks', of, atMost: 0 },
      { says: `idle pool of 2 ${kind}, timers`, figure: 'timers', of, atMost: 0 },
    ];
  }),
  async measure({ contender }) {
    const { caller } = await openContender(contender);
    await countCalls(caller('add'), 64, { warmMs: 100, windowMs: 200 });
    const countTimers = caller('countTimers');
    const inWorkers = await Promise.all([countTimers(), countTimers()]);
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const inCaller = process
      .getActiveResourcesInfo()
      .filter((kind) => kind === 'Timeout' || kind === 'Immediate').length;
    const pids = [process.pid, ...descendants()];
    const sum = (read) => pids.reduce((total, pid) => total + read(pid), 0);
    // The ticks are read last before and first after: the other readings would be counted.
    const before = { wakeups: sum(wakeups), cpuUs: treeCpuUs(), ticks: sum(cpuTicks) };
    await new Promise((resolve) => setTimeout(resolve, idleMs));
    return {
      ticks: sum(cpuTicks) - before.ticks,
      cpuUs: treeCpuUs() - before.cpuUs,
      wakeups: sum(wakeups) - before.wakeups,
      timers: Math.max(...inWorkers) + inCaller,
    };
  },
};
