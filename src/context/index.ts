// The context part: functions and values with all their captures, as bytes and back. Docs:
// docs/design/context.md (how), docs/guide/what-travels.md (for users).

export { type CaptureStats, captureStats, watchCaptures } from './closures/captures.js';
export { closureReaderProblem } from './closures/closure-reader.js';
export { createImporter, type ImporterOptions } from './decode/importer.js';
export { moduleOf } from './decode/modules.js';
export { exportError, reduceError } from './encode/error.js';
export { type ContextExporter, createExporter, type ExporterOptions } from './encode/exporter.js';
export { fingerprint } from './encode/fingerprint.js';
export { guardProgram } from './modules/guard.js';
export { isProgramPreload } from './modules/preloads.js';
export { type ProgramFiles, programFiles } from './modules/program.js';
export {
  type CallSite,
  captureSite,
  joinStacks,
  placeAt,
  settleWhereAwaited,
} from './toolchains/stack.js';
export type {
  AnyFunction,
  BufferCarrier,
  BufferName,
  Exporter,
  FunctionSnapshot,
  Importer,
  ValueSnapshot,
} from './types.js';
export { beginCall, endCall, receive, send } from './values/hooks.js';
export { isCloneable, isHandle } from './values/live.js';
export { disposePerWorker, perWorker } from './values/per-worker.js';
export { propagate } from './values/propagate.js';
export { type TaskTarget, task, taskTarget } from './values/task.js';
