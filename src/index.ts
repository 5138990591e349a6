// The front door: re-exports only.

export type {
  Bus,
  BusAddress,
  BusHeaders,
  BusMessage,
  BusStats,
  Consumer,
  ConsumerOptions,
  Handler,
  Locality,
  ReplyOptions,
  ReplyRequestOptions,
  SendOptions,
  StreamHandler,
  StreamOptions,
} from './bus/index.js';
export type { ChannelKind } from './channels/index.js';
export { perHost, propagate, task } from './context/index.js';
export { CodedError, type ErrorCode, errorCodes, hasCode } from './errors.js';
export {
  type GrantedCores,
  type HostExit,
  type HostKind,
  shared,
  taskSignal,
} from './host/index.js';
export type {
  HostExitMessage,
  HostMessage,
  HostReadyMessage,
  HostRestartMessage,
  PoolMessage,
  PoolResizeMessage,
  TaskEndMessage,
  TaskErrorMessage,
  TaskMessage,
  TaskQueuedMessage,
  TaskStartMessage,
} from './internal/index.js';
export {
  type FillOptions,
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
export {
  type BlockingOptions,
  bus,
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
