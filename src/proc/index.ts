// The proc part: what /proc says of processes, as text and numbers. Not here: what they mean over time.

export { programPath } from './program.js';
export {
  type CpuTimes,
  isAlive,
  msPerTick,
  parseStat,
  readStat,
  runningStat,
} from './stat.js';
export { bytesIn, missingTraceRights, rssBytesOf } from './status.js';
export { findProcess, processGone, processRefused, type SeenProcess } from './target.js';
export { namesIn, readText, textOf } from './text.js';
export { readTree, threadsOf } from './tree.js';
