// The public names of the package 'manycore'. Re-exports only; api/manycore.d.ts has their types.

/**
 * Calls, pools, maps, units, the bus and clusters.
 *
 * @module manycore
 */

export type {
  Bus,
  BusAddress,
  BusCodec,
  BusHeaders,
  BusMessage,
  BusStats,
  Consumer,
  ConsumerOptions,
  Handler,
  InterceptedChange,
  InterceptedMessage,
  Interceptor,
  Interceptors,
  Locality,
  Registration,
  ReplyOptions,
  ReplyRequestOptions,
  SendOptions,
  StreamHandler,
  StreamOptions,
} from './bus/index.js';
export type { ChannelKind } from './channels/index.js';
export type {
  Cluster,
  ClusterEvents,
  ClusterNode,
  ClusterOptions,
  LendOptions,
  NatsOptions,
  WorkerProvider,
} from './cluster/index.js';
export { perWorker, propagate, task } from './context/index.js';
export { CodedError, type CodedErrorOf, type ErrorCode, errorCodes, hasCode } from './errors.js';
export type {
  PoolDegradedMessage,
  PoolMessage,
  PoolRecoveredMessage,
  PoolResizeMessage,
  TaskEndMessage,
  TaskErrorMessage,
  TaskMessage,
  TaskQueuedMessage,
  TaskStartMessage,
  WorkerExitMessage,
  WorkerMessage,
  WorkerReadyMessage,
  WorkerRestartMessage,
} from './lib/index.js';
export {
  type FillOptions,
  hasItemIndex,
  type MapChannel,
  type MapOptions,
  type MapProgress,
  type MapPromise,
  type MapStats,
  type MapStream,
  pmap,
  type TypedArray,
} from './pmap/index.js';
export {
  type ByPlace,
  type Caller,
  type CallOptions,
  type CloseOptions,
  type HistogramSummary,
  type OnReport,
  Pool,
  type PoolEvents,
  type PoolHealth,
  type PoolOptions,
  type PoolStats,
  parallel,
  parallelEvents,
  type RunOptions,
  run,
  type TaskResult,
  type TaskStream,
  WorkerExitedError,
  type WorkerStats,
  warm,
} from './pool/index.js';
export {
  afterCommit,
  atomically,
  atomicallyWhen,
  check,
  free,
  nested,
  orElse,
  retry,
  type TVar,
  tvar,
  type WhenOptions,
} from './stm/index.js';
export {
  type BlockingOptions,
  bus,
  cluster,
  type Deployment,
  type DeployOptions,
  deploy,
  type InstanceHealth,
  type InstanceState,
  type InstanceStatus,
  type LoopNumber,
  Loops,
  type LoopsOptions,
  type Unit,
  type UnitContext,
  type UnitLike,
  type UnitObject,
  type UnitPlacement,
} from './units/index.js';
export {
  type GrantedCores,
  isInsideWorker,
  type OutputListener,
  type OutputSource,
  report,
  shared,
  taskSignal,
  type WorkerExit,
  type WorkerKind,
  workerNumber,
} from './worker/index.js';
