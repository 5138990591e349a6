// The front door: re-exports only.

export { perHost, propagate, task } from './context/index.js';
export { CodedError, type ErrorCode, errorCodes, hasCode } from './errors.js';
export { shared, taskSignal } from './host/index.js';
export {
  type Caller,
  type CallOptions,
  type HistogramSummary,
  HostExitedError,
  type HostStats,
  Pool,
  type PoolOptions,
  type PoolStats,
  parallel,
  parallelEvents,
  type RunOptions,
  run,
  type TaskResult,
  warm,
} from './pool/index.js';
