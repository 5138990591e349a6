// How much does the channel change a parallel map: items of 64 KiB there and back?
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { timeMap, warmPool } from '../lib/maps.js';
import { expectSame } from '../lib/measure.js';
import { invert } from '../lib/tasks.js';

const workers = 2;
const itemBytes = 64 * 1024;
const itemCount = 4000;
const side = (contender) => ({ setting: 'kib64', contender });

export default {
  figures: { itemsPerSecond: perSecond('items'), cpuUsPerItem: micros('CPU per item') },
  settings: { kib64: { says: '4,000 buffers of 64 KiB there and back, 2 workers', cores: 2 } },
  runs: runsOf('kib64', ['shm', 'socket', 'memory', 'inline']),
  deadlineMs: 60_000,
  bars: [
    {
      says: 'a map of 64 KiB items, shared memory against sockets',
      figure: 'itemsPerSecond',
      of: side('shm'),
      against: [side('socket')],
      atLeast: 2,
    },
    {
      says: 'CPU per item of it, shared memory against sockets',
      figure: 'cpuUsPerItem',
      of: side('shm'),
      against: [side('socket')],
      atMost: 1,
    },
  ],
  async measure({ contender, scale }) {
    const items = Array.from({ length: Math.round(itemCount * scale) }, (_, index) =>
      new Uint8Array(itemBytes).fill(index),
    );
    const options =
      contender === 'inline'
        ? { channel: contender }
        : { pool: await warmPool({ workers, channel: contender }) };
    await timeMap(items.slice(0, 1000), invert, options);
    const { figures, results } = await timeMap(items, invert, options);
    const last = items.length - 1;
    expectSame(results[last][itemBytes - 1], (last & 255) ^ 255);
    return figures;
  },
};
