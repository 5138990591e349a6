// Does the memory of caller and worker grow with the number of closures that were called?
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openContender } from '../lib/contenders.js';
import { counted, runsOf } from '../lib/figures.js';
import { add } from '../lib/tasks.js';

const contenders = ['manycore-process+let', 'manycore-process+constants'];
const waitingCalls = 64;
const fewCalls = 1_000_000;
const manyCalls = 10_000_000;

const bar = (figure, contender, says) => ({
  says: `${says}, 10⁷ closures against 10⁶ (${contender})`,
  figure,
  of: { setting: 'many', contender },
  against: [{ setting: 'few', contender }],
  atMost: 1.05,
});

export default {
  figures: {
    callerMiB: counted('heap of the caller after a collection', 'MiB'),
    workerMiB: counted('heap of the worker after a collection', 'MiB'),
    callerRssMiB: counted('resident memory of the caller', 'MiB'),
    workerRssMiB: counted('resident memory of the worker', 'MiB'),
  },
  settings: {
    few: { says: `${fewCalls} calls of new function objects, ${waitingCalls} waiting` },
    many: { says: `${manyCalls} of them` },
  },
  rounds: 3,
  deadlineMs: 600_000,
  runs: [...runsOf('few', contenders), ...runsOf('many', contenders)],
  bars: contenders.flatMap((contender) => [
    bar('callerMiB', contender, 'heap of the caller'),
    bar('workerMiB', contender, 'heap of the worker'),
  ]),
  async measure({ contender, setting, scale }) {
    const { pool } = await openContender(contender, { workers: 1 });
    const make = makers[contender.split('+')[1]]();
    const calls = (setting === 'few' ? fewCalls : manyCalls) * scale;
    let begun = 0;
    const keepCalling = async () => {
      while (begun < calls) await pool.run(make(begun++), 1);
    };
    await Promise.all(Array.from({ length: waitingCalls }, keepCalling));
    const worker = await pool.run(memoryAfterCollection);
    const caller = memoryAfterCollection();
    return {
      callerMiB: caller.heapMiB,
      workerMiB: worker.heapMiB,
      callerRssMiB: caller.rssMiB,
      workerRssMiB: worker.rssMiB,
    };
  },
};

const makers = {
  let() {
    const scale = 3;
    let count = 0;
    return (turn) => {
      count = turn;
      return (n) => n * scale + count;
    };
  },
  constants() {
    return (turn) => {
      const label = `lamp ${turn % 100}`;
      return (n) => add(n) + label.length;
    };
  },
};

function memoryAfterCollection() {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  for (let round = 0; round < 3; round++) collect();
  const { heapUsed, rss } = process.memoryUsage();
  return { heapMiB: heapUsed / 1024 ** 2, rssMiB: rss / 1024 ** 2 };
}
