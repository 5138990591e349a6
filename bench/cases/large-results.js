// Does a stream of large results make V8 collect the caller's whole heap?
// 300 results of 8 MB in 8 seconds, each dropped once it is read, beside objects that live and some that do not.
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { openContender } from '../lib/contenders.js';
import { counted, millis, runsOf } from '../lib/figures.js';
import { expectSame } from '../lib/measure.js';

const resultBytes = 8_000_000;
const resultCount = 300;
const windowMs = 8000;
const keptObjects = 200_000;
const droppedObjects = 2_000;
const ours = ['manycore-process', 'manycore-thread'];

export default {
  figures: {
    fullCollections: counted('full collections of the caller', ''),
    fullMs: millis('time of these'),
    youngCollections: counted('young collections of the caller', ''),
  },
  settings: {
    results: { says: `${resultCount} results of 8 MB in ${windowMs / 1000} s, 1 worker` },
  },
  runs: runsOf('results', [...ours, 'bare-thread']),
  rounds: 3,
  deadlineMs: 60_000,
  bars: ours.map((contender) => ({
    says: `300 results of 8 MB from a ${contender.replace('manycore-', '')}: full collections`,
    figure: 'fullCollections',
    of: { setting: 'results', contender },
    atMost: 5,
  })),
  async measure({ contender, scale }) {
    const { caller } = await openContender(contender, { workers: 1 });
    const call = caller('filled'); // transferred by `bare-thread`
    const kept = Array.from({ length: keptObjects }, (_, index) => ({ index }));
    expectSame((await call(0))[7], 0);
    const watch = watchCollections();
    const startMs = performance.now();
    for (let turn = 1; turn <= resultCount * scale; turn++) {
      const result = await call(turn);
      expectSame(result.length, resultBytes);
      expectSame(result[7], turn & 255);
      Array.from({ length: droppedObjects }, (_, index) => ({ index }));
      const dueMs = startMs + (turn * windowMs) / resultCount;
      await sleep(Math.max(0, dueMs - performance.now()));
    }
    const figures = await watch();
    expectSame(kept.length, keptObjects);
    return figures;
  },
};

/** Counts collections from now on; the function that it returns ends that, and promises them. */
function watchCollections() {
  const figures = { fullCollections: 0, fullMs: 0, youngCollections: 0 };
  const add = (entries) => {
    for (const { detail, duration } of entries) {
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) {
        figures.fullCollections++;
        figures.fullMs += duration;
      }
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) figures.youngCollections++;
    }
  };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  return async () => {
    await sleep(50); // Node reports a collection in a later turn of the loop
    add(observer.takeRecords());
    observer.disconnect();
    return figures;
  };
}
