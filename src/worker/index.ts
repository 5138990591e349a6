export { ActiveLeases } from './active-leases.js';
export { blocksOf, bufferCarrier, encodedOf } from './buffers.js';
export { type Call, parcelsOf } from './call.js';
export { ItemFailure, type Mapper, pairAt, runChunk } from './chunk.js';
export {
  allowedCores,
  coresToPin,
  type GrantedCores,
  grantedCores,
  keepTo,
  startOn,
} from './cores.js';
export { type RunningTask, runningTask, taskSignal } from './current-task.js';
export { describeExit, isCrash, mayLackHeap } from './exit.js';
export { parentBuffers, parentExporter, type Reach } from './exporter.js';
export { isInsideWorker, workerNumber } from './inside.js';
export { beforeLeaving, finishWork } from './leave.js';
export { Link, readError } from './link.js';
export { Moving } from './moving.js';
export type { NestedChunk, NestedOwner } from './nested.js';
export type { OutputListener, OutputSource } from './output.js';
export { startProcess } from './process.js';
export type { WorkerMemory, WorkerTicket } from './protocol.js';
export {
  type Cells,
  type Chunk,
  type ChunkAnswer,
  chunkArgs,
  newArray,
  parseChunkAnswer,
  streamLeadItems,
} from './protocol.js';
export { parentRelay, type Relay, type RelayedFunction } from './relay.js';
export { InlineReports, inCallersContext, type ReportListener, report } from './report.js';
export { isSharedMemory, shared, sharedMemoryProblem } from './shared.js';
export { SharedProcess } from './shared-process.js';
export { channelFds } from './shared-protocol.js';
export {
  type GrantedLease,
  SharedLease,
  type SharedWorkers,
  sharedWorkers,
  useSharedWorkers,
} from './shared-workers.js';
export { failureOfStart, type StartFailure } from './start-failure.js';
export { type AnyGenerator, generatorOf } from './stream-sender.js';
export type {
  DurableOptions,
  RemoteWorkers,
  WorkerExit,
  WorkerHandle,
  WorkerKind,
  WorkerOptions,
  WorkerSettings,
} from './types.js';
export { WiredProcess, type WireTicket } from './wired-process.js';
export { Worker, type WorkerEvents } from './worker.js';
