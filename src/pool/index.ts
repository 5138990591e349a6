export { parallel, poolFor, poolOption, type RunOptions, run, warm } from './calls/default.js';
export { parallelEvents } from './calls/parallel-events.js';
export { type ChunkCall, ChunkFailure, type PinnedFunction } from './calls/pinned.js';
export {
  runSource,
  type SandboxedFunction,
  type SandboxedOptions,
  type SourceOptions,
  type SourceValues,
  sandboxed,
} from './calls/sandboxed.js';
export type { HistogramSummary } from './histogram.js';
export { type CallOptions, callDefaults, type OnReport, type PoolOptions } from './options.js';
export { type Caller, type CloseOptions, Pool, type PoolEvents, type TaskResult } from './pool.js';
export { inlineError } from './refusals.js';
export type { PartitionLimits, PoolSample, PoolStats, WorkerSample, WorkerStats } from './stats.js';
export type { TaskStream } from './tasks/stream.js';
export { type CallTrace, traceCalls, traceMap } from './trace.js';
export { WorkerExitedError } from './workers/exit-error.js';
export type { ByPlace } from './workers/options-by-place.js';
export type { PoolHealth } from './workers/starts.js';
