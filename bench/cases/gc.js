// How much do settings of V8's heap change what an allocating load does, and how evenly it does it?
// Workers beside each other make objects and strings (the scaling case's `allocation`), by number of workers.
// `unevenness` is the standard deviation of the work done in 50 ms, by its mean: the share that a pause takes
// out of such a slice. Warm-up takes whole seconds, in which a large young generation is only being paged in.
import { Pool } from 'manycore';
import { counted, perSecond } from '../lib/figures.js';
import { treePssMiB } from '../lib/processes.js';
import { grantedWorkerCounts } from '../lib/worker-counts.js';
import { allocateFor, evenness } from '../paper/allocate.js';

const flagsOf = {
  default: [],
  'semi-space 8 MiB': ['--max-semi-space-size=8'],
  'semi-space 32 MiB': ['--max-semi-space-size=32'],
  'semi-space 64 MiB': ['--max-semi-space-size=64'],
  'semi-space 128 MiB': ['--max-semi-space-size=128'],
  'one GC thread': ['--single-threaded-gc'],
  'heap near the live set': ['--max-old-space-size=56'],
};
const contenders = Object.keys(flagsOf);

export default {
  figures: {
    perSecond: perSecond('items'),
    unevenness: counted('unevenness', '%'),
    pssMiB: counted('memory', 'MiB'),
  },
  rounds: 6,
  deadlineMs: 60_000,
  async plan() {
    const counts = await grantedWorkerCounts();
    const settingOf = (workers) => `${workers} worker${workers === 1 ? '' : 's'}`;
    return {
      settings: Object.fromEntries(
        counts.map((workers) => [
          settingOf(workers),
          { workers, says: `objects and strings in ${workers} worker(s) at once`, cores: workers },
        ]),
      ),
      runs: counts.flatMap((workers) =>
        contenders.map((contender) => ({ setting: settingOf(workers), contender })),
      ),
      bars: [],
    };
  },
  async measure({ contender, setting, scale }) {
    const workers = Number.parseInt(setting, 10);
    const pool = new Pool({ size: workers, execArgv: flagsOf[contender] });
    await pool.warm();
    const windows = { warmMs: 3000 * scale, windowMs: 3000 * scale };
    const rates = await Promise.all(
      Array.from({ length: workers }, () => pool.run(allocateFor, windows)),
    );
    return { ...evenness(rates, windows.windowMs), pssMiB: treePssMiB() };
  },
};
