// libuv's thread pool, which runs fs, crypto, zlib and dns.lookup: readings of its load, and its size.

export { type NodeProcess, nodeProcess } from './node-process.js';
export { PoolProbe } from './probe.js';
export { type BlockingPoolReading, canCountJobs, readBlockingPool } from './read.js';
export {
  blockingThreads,
  minBlockingThreads,
  setBlockingThreads,
  withBlockingThreads,
} from './size.js';
