export { ActiveLeases } from './both/active-leases.js';
export { blocksOf, bufferCarrier, encodedOf } from './both/buffers.js';
export { type Call, parcelsOf } from './both/call.js';
export { ControlSocket } from './both/control-socket.js';
export {
  allowedCores,
  coresToPin,
  type GrantedCores,
  grantedCores,
  keepTo,
  startOn,
} from './both/cores.js';
export {
  adoptSpace,
  isSharedMemory,
  shared,
  sharedMemoryProblem,
  spaceProblem,
} from './both/shared-memory.js';
export { channelFds } from './both/shared-worker-protocol.js';
export {
  endTurn,
  isEnding,
  leaveNumber,
  maxParticipants,
  park,
  participantWord,
  placeOf,
  stuck,
  takeNumber,
  takeTurn,
  threadSpace,
  threadWord,
} from './both/thread-space.js';
export { transactionSettings } from './both/transaction-settings.js';
export { ItemFailure, type Mapper, pairAt, runChunk } from './inside/chunk.js';
export { type RunningTask, runningTask, taskSignal } from './inside/current-task.js';
export { isInsideWorker, workerNumber } from './inside/inside.js';
export { beforeLeaving, finishWork } from './inside/leave.js';
export { parentRelay, type Relay, type RelayedFunction } from './inside/relay.js';
export { InlineReports, inCallersContext, type ReportListener, report } from './inside/report.js';
export { type AnyGenerator, generatorOf } from './inside/stream-sender.js';
export { Link, readError } from './link.js';
export { describeExit, isCrash, mayLackHeap } from './parent/exit.js';
export { ParentBuffers, parentBuffers, parentExporter } from './parent/exporter.js';
export { Moving } from './parent/moving.js';
export type { NestedChunk, NestedOwner } from './parent/nested.js';
export type { OutputListener, OutputSource } from './parent/output.js';
export { startProcess } from './parent/process.js';
export { SharedProcess } from './parent/shared-process.js';
export {
  type GrantedLease,
  SharedLease,
  type SharedWorkers,
  sharedWorkers,
  useSharedWorkers,
} from './parent/shared-workers.js';
export { failureOfStart, type StartFailure } from './parent/start-failure.js';
export {
  type Inherited,
  startChild,
  WiredProcess,
  type WireTicket,
} from './parent/wired-process.js';
export { type TaskListener, Worker, type WorkerOwner } from './parent/worker.js';
export { maxTasks } from './partition/command-line.js';
export { sandboxAround } from './partition/guest.js';
export {
  engineOf,
  type PartitionLayer,
  partitionLayers,
  partitionProblem,
  type VmProgram,
  vmPrograms,
} from './partition/layers.js';
export { partitionNeeds } from './partition/needs.js';
export {
  type FilledPartition,
  fillPartition,
  type MissingLayer,
  partitionKindOption,
  type SandboxOptions,
  sandboxOptionNames,
  type VmOptions,
  vmOptionNames,
} from './partition/options.js';
export { passOutput } from './partition/own-output.js';
export { runInPartition } from './partition/program.js';
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
export type {
  DurableOptions,
  ReachedLimit,
  RemoteWorkers,
  ShownKind,
  WorkerExit,
  WorkerHandle,
  WorkerKind,
  WorkerOptions,
  WorkerSettings,
} from './types.js';
