// The context part: functions and values with all their captures, as bytes and back. Docs:
// docs/design/context.md (how), docs/guide/what-travels.md (for users).

export { type CaptureStats, captureStats, watchCaptures } from './closures/captures.js';
export { closureReaderProblem } from './closures/closure-reader.js';
export { fingerprint } from './encode/fingerprint.js';
export {
  codeVersion,
  codeVersions,
  importVersion,
  LoadedVersions,
  type ModuleVersion,
} from './modules/code-version.js';
export { isProgramPreload } from './modules/preloads.js';
export { bareUrl } from './modules/resolve-module.js';
export * from './receiving.js';
export { createExporter } from './sending.js';
export { syntaxErrorIn } from './text/syntax-error.js';
export {
  type CallSite,
  captureSite,
  joinStacks,
  placeAt,
  settleWhereAwaited,
  stackOfUser,
} from './toolchains/stack.js';
export { setRefusal } from './values/refuse.js';
