// Measures how long the collector held up this isolate.
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

/** Watches from now on; the function it returns promises the pauses so far, in ms. */
export function watchGc() {
  let totalMs = 0;
  const add = (entries) => {
    for (const { duration } of entries) totalMs += duration;
  };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: 'gc' });
  return async () => {
    // Node reports a pause in a later turn of the loop, and calls the observer in one after that.
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    add(observer.takeRecords());
    return totalMs;
  };
}
