// The context part: functions and values with all their captures, as bytes and back. Docs:
// docs/design/context.md (how), docs/guide/what-travels.md (for users).

export { type CaptureStats, captureStats, watchCaptures } from './captures.js';
export { exportError, reduceError } from './error.js';
export { type ContextExporter, createExporter, type ExporterOptions } from './exporter.js';
export { fingerprint } from './fingerprint.js';
export { guardProgram } from './guard.js';
export { beginCall, endCall, receive, send } from './hooks.js';
export { createImporter, type ImporterOptions } from './importer.js';
export { isCloneable, isHandle } from './live.js';
export { moduleOf } from './modules.js';
export { disposePerWorker, perWorker } from './per-worker.js';
export { isProgramPreload } from './preloads.js';
export { type ProgramFiles, programFiles } from './program.js';
export { propagate } from './propagate.js';
export { type CallSite, captureSite, joinStacks, placeAt, settleWhereAwaited } from './stack.js';
export { type TaskTarget, task, taskTarget } from './task.js';
export type {
  AnyFunction,
  BufferCarrier,
  BufferName,
  Exporter,
  FunctionSnapshot,
  Importer,
  ValueSnapshot,
} from './types.js';
