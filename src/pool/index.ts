export { parallel, poolFor, type RunOptions, run, warm } from './default.js';
export { HostExitedError } from './exit-error.js';
export type { HistogramSummary } from './histogram.js';
export type { CallOptions, PoolOptions } from './options.js';
export { parallelEvents } from './parallel-events.js';
export { type ChunkCall, ChunkFailure, type PinnedFunction } from './pinned.js';
export { type Caller, Pool, type TaskResult } from './pool.js';
export type { HostFigures, HostStats, PoolFigures, PoolStats } from './stats.js';
export { type CallTrace, traceCalls, traceMap } from './trace.js';
