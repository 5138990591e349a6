// How long does a buffer of 1 or 16 MiB take there and back: copied, transferred, and shared?
import { openContender } from '../lib/contenders.js';
import { millis, runsOf } from '../lib/figures.js';
import { expectSame, timeCalls, warmUpMs } from '../lib/measure.js';

const copyingThreads = [
  'piscina',
  'tinypool-thread',
  'workerpool-thread',
  'poolifier-thread',
  'bare-thread',
];
const copyingProcesses = [
  'tinypool-process',
  'workerpool-process',
  'poolifier-cluster',
  'bare-fork-advanced',
];
const moving = [
  'piscina+move',
  'tinypool-thread+move',
  'workerpool-thread+move',
  'bare-thread+move',
];
const own = ['manycore-process', 'manycore-thread', 'manycore-process+shared'];
const everybody = [...own, ...copyingThreads, ...copyingProcesses, ...moving];
const sizes = { mib1: 1 << 20, mib16: 16 << 20 };
const at16 = (contenders) => runsOf('mib16', contenders);

export default {
  figures: { p50Ms: millis('p50'), p99Ms: millis('p99') },
  settings: { mib1: { says: '1 MiB' }, mib16: { says: '16 MiB' } },
  runs: [...runsOf('mib1', everybody), ...at16(everybody)],
  deadlineMs: 30_000,
  quickSkips: [
    'tinypool-thread',
    'tinypool-thread+move',
    'poolifier-thread',
    'tinypool-process',
    'poolifier-cluster',
  ],
  bars: [
    {
      says: '16 MiB there and back, plain, against the best that copies',
      figure: 'p50Ms',
      of: { setting: 'mib16', contender: 'manycore-process' },
      against: at16([...copyingThreads, ...copyingProcesses]),
      atMost: 0.2,
    },
    {
      says: '16 MiB `shared()`, against the best between processes',
      figure: 'p50Ms',
      of: { setting: 'mib16', contender: 'manycore-process+shared' },
      against: at16(copyingProcesses),
      timesFaster: 1000,
    },
    {
      says: '16 MiB `shared()` between processes, against the best transfer between threads',
      figure: 'p50Ms',
      of: { setting: 'mib16', contender: 'manycore-process+shared' },
      against: at16(moving),
      timesFaster: 5,
    },
  ],
  async measure({ contender, setting, scale }) {
    const opened = await openContender(contender);
    const [, way] = contender.split('+');
    const sent =
      way === 'shared' ? await sharedBytes(sizes[setting]) : new Uint8Array(sizes[setting]);
    sent.fill(7); // every page is there before the clock runs
    const touch = way === 'move' ? opened.mover() : opened.caller('touch');
    let bytes = sent;
    let wanted = 0;
    const call = () => {
      wanted = (bytes[0] + 1) & 255;
      return touch(bytes);
    };
    const check = (got) => {
      expectSame(got[0], wanted);
      expectSame(got.length, sizes[setting]);
      // A buffer that was transferred or shared goes on; a copy is dropped, and the next call sends
      // the sender's own again.
      if (way !== undefined) bytes = got;
    };
    const times = await timeCalls(call, check, {
      warmMs: (warmUpMs / 2) * scale,
      windowMs: 250 * scale,
    });
    return { p50Ms: times.p50Us / 1000, p99Ms: times.p99Us / 1000 };
  },
};

async function sharedBytes(sizeBytes) {
  const { shared } = await import('manycore');
  return shared(sizeBytes);
}
