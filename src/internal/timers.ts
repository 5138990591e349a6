// Timers and the clock as they were when this library was loaded. Test frameworks replace the global ones
// (and the clock) with fakes that nobody advances: waits of ours on another process would never end.

import { performance } from 'node:perf_hooks';
import timers from 'node:timers';

export const {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  clearImmediate,
} = timers;
export const nextTick: typeof process.nextTick = process.nextTick.bind(process);

/** The method of the class: a fake is a property of the object. */
const { now } = Object.getPrototypeOf(performance);

/** `performance.now()`, in ms. */
export const nowMs: () => number = (typeof now === 'function' ? now : performance.now).bind(
  performance,
);
