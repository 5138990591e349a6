// What does a message between two event loops cost, against a MessagePort and Vert.x's bus; and a unit?
import { counted, micros, millis, perSecond, runsOf } from '../lib/figures.js';
import { descendants, pssMiB, treeCpuUs } from '../lib/processes.js';
import { openLoops } from '../loops/contenders.js';

const mine = ['manycore-process', 'manycore-thread'];
const contenders = [...mine, 'message-port', 'vertx'];
const largeContenders = ['manycore-process', 'message-port'];
const warmMs = 3000;
const windowMs = 1500;
const units = 1000;

const against = (setting, contender) => ({ against: [{ setting, contender }] });

export default {
  figures: {
    p50Us: micros('p50'),
    p99Us: micros('p99'),
    perSecond: perSecond('messages'),
    cpuUs: micros('CPU each'),
    deployMs: millis('to deploy'),
    kibPerUnit: counted('memory of a unit', 'KiB'),
  },
  settings: {
    request: { says: 'a number there and back, one after the other' },
    'one-way': { says: 'numbers, in batches of 10,000' },
    'large-shared': { says: '16 MiB of shared() there, a number back; a MessagePort copies' },
    'large-copied': { says: '16 MiB of an ordinary Buffer there, a number back' },
    units: { says: `${units} instances of a unit with one consumer, on two loops` },
  },
  deadlineMs: 60_000,
  runs: [
    ...runsOf('request', contenders),
    ...runsOf('one-way', contenders),
    ...runsOf('large-shared', largeContenders),
    ...runsOf('large-copied', largeContenders),
    ...runsOf('units', mine),
  ],
  bars: [
    ...mine.flatMap((contender) => [
      {
        says: `request between two loops, p50, against a MessagePort (${contender})`,
        figure: 'p50Us',
        of: { setting: 'request', contender },
        ...against('request', 'message-port'),
        atMost: 0.2,
      },
      {
        says: `request between two loops, CPU, against a MessagePort (${contender})`,
        figure: 'cpuUs',
        of: { setting: 'request', contender },
        ...against('request', 'message-port'),
        atMost: 0.3,
      },
      {
        says: `messages one way, against a MessagePort (${contender})`,
        figure: 'perSecond',
        of: { setting: 'one-way', contender },
        ...against('one-way', 'message-port'),
        atLeast: 8,
      },
      {
        says: `messages one way, against Vert.x (${contender})`,
        figure: 'perSecond',
        of: { setting: 'one-way', contender },
        ...against('one-way', 'vertx'),
        atLeast: 1,
      },
    ]),
    {
      says: '16 MiB of shared() to a loop in another process, p50, against a MessagePort that copies',
      figure: 'p50Us',
      of: { setting: 'large-shared', contender: 'manycore-process' },
      ...against('large-shared', 'message-port'),
      timesFaster: 100,
    },
    {
      says: '16 MiB of an ordinary Buffer to a loop in another process, p50, against a MessagePort',
      figure: 'p50Us',
      of: { setting: 'large-copied', contender: 'manycore-process' },
      ...against('large-copied', 'message-port'),
      atMost: 1,
    },
    ...mine.map((contender) => ({
      says: `${units} units deployed, in ms (${contender})`,
      figure: 'deployMs',
      of: { setting: 'units', contender },
      atMost: 3000,
    })),
  ],
  async measure({ contender, setting, scale }) {
    const { loops, measure } = await openLoops(contender);
    if (setting === 'units') return await deployMany(loops);
    await measure(setting, warmMs * scale);
    const before = treeCpuUs();
    const { calls, ...figures } = await measure(setting, windowMs * scale);
    return { ...figures, cpuUs: (treeCpuUs() - before) / calls };
  },
};

async function deployMany(loops) {
  const unit = ({ bus, instance }) => {
    bus.consumer(`unit ${instance}`, (message) => message.reply(instance));
  };
  const warm = await loops.deploy(unit, { instances: 10 });
  await warm.undeploy();
  const memory = () => descendants().reduce((sum, pid) => sum + pssMiB(pid), 0);
  const memoryBefore = memory();
  const start = performance.now();
  await loops.deploy(unit, { instances: units });
  const deployMs = performance.now() - start;
  return { deployMs, kibPerUnit: ((memory() - memoryBefore) * 1024) / units };
}
