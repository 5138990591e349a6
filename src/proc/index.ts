// Readers of /proc: text and numbers of processes. Not here: changes over time (observe/usage.ts).

export { programPath } from './program.js';
export {
  type CpuTimes,
  hasEnded,
  isAlive,
  msPerTick,
  parseStat,
  readStat,
  runningStat,
} from './stat.js';
export { bytesIn, descriptorLimitOf, missingTraceRights, rssBytesOf } from './status.js';
export { findProcess, processGone, processRefused, type SeenProcess } from './target.js';
export { namesIn, readText, textOf } from './text.js';
export { byStart, childrenOf, readTree, threadsOf } from './tree.js';
