// How late do light timers fire on the caller's loop beside heavy callbacks of 15 ms?
import { openContender } from '../lib/contenders.js';
import { micros, runsOf } from '../lib/figures.js';
import { summarize } from '../lib/measure.js';
import { fib } from '../lib/tasks.js';

const pools = ['manycore-process', 'manycore-thread', 'piscina', 'bare-fork-json'];
const heavy = 32;
const everyMs = 20;

export default {
  figures: {
    p50Us: micros('late, p50'),
    p99Us: micros('late, p99'),
    maxUs: micros('late, max'),
    done: { says: 'heavy calls', unit: '/s', better: 'higher' },
  },
  settings: {
    paced: {
      says: `a heavy callback every ${everyMs} ms; "inline" runs it on the loop, "none" not at all`,
    },
    full: { says: '2 workers always busy on all cores: three threads compete for two cores' },
  },
  runs: [...runsOf('paced', ['none', 'inline', ...pools]), ...runsOf('full', pools)],
  bars: [
    {
      says: 'lateness of light timers, p99, heavy work in the pool against on the loop',
      figure: 'p99Us',
      of: { setting: 'paced', contender: 'manycore-process' },
      against: [{ setting: 'paced', contender: 'inline' }],
      timesFaster: 5,
      isAim: true,
    },
    {
      says: 'lateness of light timers, p99, every worker busy, against piscina',
      figure: 'p99Us',
      of: { setting: 'full', contender: 'manycore-process' },
      against: [{ setting: 'full', contender: 'piscina' }],
      atMost: 1.1,
      isAim: true,
    },
  ],
  async measure({ contender, setting, scale }) {
    const work = await makeWork(contender);
    await Promise.all([work(), work()]);
    let isOver = false;
    let done = 0;
    const again = async () => {
      while (!isOver) {
        await work();
        done++;
      }
    };
    const lanes = setting === 'full' ? [again(), again()] : [];
    const pacer =
      setting === 'paced'
        ? setInterval(() => lanes.push(work().then(() => done++)), everyMs)
        : undefined;
    const start = performance.now();
    const late = await watchTimers(1000 * scale);
    const tookMs = performance.now() - start;
    const perSecond = (done / tookMs) * 1000;
    isOver = true;
    clearInterval(pacer);
    await Promise.all(lanes);
    const { p50Us, p99Us } = summarize(late);
    return { p50Us, p99Us, maxUs: Math.max(...late) * 1000, done: perSecond };
  },
};

/** A function that does one heavy callback and promises its end. */
async function makeWork(contender) {
  if (contender === 'none') return async () => {};
  if (contender === 'inline') return async () => void fib(heavy);
  const { caller } = await openContender(contender);
  const call = caller('fib');
  return () => call(heavy);
}

/** Records the lateness of each of a chain of 1 ms timers, in ms. */
function watchTimers(windowMs) {
  return new Promise((resolve) => {
    const late = [];
    const end = performance.now() + windowMs;
    let due = 0;
    const tick = () => {
      const now = performance.now();
      late.push(Math.max(0, now - due));
      if (now >= end) resolve(late);
      else arm();
    };
    const arm = () => {
      due = performance.now() + 1;
      setTimeout(tick, 1);
    };
    arm();
  });
}
