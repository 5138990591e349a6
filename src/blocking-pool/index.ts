// libuv's thread pool, on which fs, crypto, zlib and dns.lookup of a process run: seen and sized.
export { PoolProbe } from './probe.js';
export { type BlockingPoolReading, canCountJobs, readBlockingPool } from './read.js';
export {
  blockingThreads,
  fewestBlockingThreads,
  setBlockingThreads,
  withBlockingThreads,
} from './size.js';
export { type NodeProcess, nodeProcess } from './target.js';
