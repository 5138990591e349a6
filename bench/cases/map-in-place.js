// 256 MiB of numbers mapped in place: what does a second core give at the limit of memory bandwidth?
// Also measures the memory that it takes. The baseline is the plain loop, on one core.
import { shared } from 'manycore';
import { counted, perSecond, runsOf } from '../lib/figures.js';
import { timeMap, warmPool } from '../lib/maps.js';
import { expectSame } from '../lib/measure.js';
import { treePssMiB } from '../lib/processes.js';

const workers = 2;
const sizeMiB = 256;
const light = (value) => Math.sqrt(value * value + 1);
const heavy = (value) => Math.sin(value) * Math.cos(value) + Math.sqrt(value + 1);
const mappers = { light, heavy };
const contenders = ['loop', 'manycore'];
const side = (setting, contender) => ({ setting, contender });

export default {
  figures: {
    itemsPerSecond: perSecond('items'),
    peak: counted('memory at the peak, in arrays', '×'),
  },
  settings: {
    heavy: { says: '256 MiB Float64Array, two sines and a root each', cores: 2 },
    light: { says: '256 MiB Float64Array, one root each: the memory is the limit', cores: 2 },
    memory: { says: 'the same as heavy, with an eye on memory', cores: 2 },
  },
  runs: [
    ...runsOf('heavy', contenders),
    ...runsOf('light', contenders),
    ...runsOf('memory', ['manycore']),
  ],
  deadlineMs: 120_000,
  bars: [
    {
      says: '256 MiB mapped in place, against a loop on one core',
      figure: 'itemsPerSecond',
      of: side('heavy', 'manycore'),
      against: [side('heavy', 'loop')],
      atLeast: 1.7,
    },
    {
      says: '256 MiB mapped in place, where memory is the limit',
      figure: 'itemsPerSecond',
      of: side('light', 'manycore'),
      against: [side('light', 'loop')],
      atLeast: 1.7,
    },
    {
      says: 'memory at the peak of a map in place, beyond the idle program, in arrays',
      figure: 'peak',
      of: side('memory', 'manycore'),
      atMost: 1.15,
    },
  ],
  async measure({ contender, setting, scale }) {
    const mapper = mappers[setting] ?? heavy;
    const pool = contender === 'loop' ? undefined : await warmPool({ workers });
    const idleMiB = treePssMiB();
    const items = new Float64Array(shared(Math.round(sizeMiB * scale) * 2 ** 20).buffer);
    for (let at = 0; at < items.length; at++) items[at] = at;
    const map = async () => {
      if (pool !== undefined) return timeMap(items, mapper, { pool, into: items });
      const start = performance.now();
      for (let at = 0; at < items.length; at++) items[at] = mapper(items[at]);
      return { tookMs: performance.now() - start };
    };
    await map(); // the code is compiled, and every page is there
    const [before, last] = [items[7], items.length - 1];
    const watch = setting === 'memory' ? watchMemory() : undefined;
    const { tookMs } = await map();
    const peakMiB = watch?.();
    expectSame(items[7], mapper(before));
    expectSame(Number.isFinite(items[last]), true);
    const peak =
      peakMiB === undefined ? undefined : (peakMiB - idleMiB) / Math.round(sizeMiB * scale);
    return { itemsPerSecond: (items.length / tookMs) * 1000, peak };
  },
};

/** Samples the memory of the process tree; the returned function stops that and returns the maximum. */
function watchMemory() {
  let mostMiB = treePssMiB();
  const sample = () => {
    mostMiB = Math.max(mostMiB, treePssMiB());
  };
  const timer = setInterval(sample, 20);
  return () => {
    clearInterval(timer);
    sample();
    return mostMiB;
  };
}
