// The context part without its sending half: all that a worker starts with. The index has the rest as well.

export { createDataImporter } from './decode/data-only.js';
export { createImporter, type ImporterOptions } from './decode/importer.js';
export {
  moduleDefinition,
  moduleIn,
  moduleOf,
  setImportRemedy,
  withVersion,
} from './decode/modules.js';
export { exportError, reduceError } from './encode/error.js';
export { loadSendingHalf } from './late.js';
export { createLateExporter } from './late-exporter.js';
export { guardProgram } from './modules/guard.js';
export { type ProgramFiles, programFiles } from './modules/program.js';
export type { ExporterOptions } from './own-exporter.js';
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
