// Small things that every part may use; no part of manycore is known here.
export { unwatchAbort, watchAbort } from './abort-watch.js';
export {
  abortSignal,
  boolean,
  checkFunction,
  integer,
  invalid,
  inWords,
  notFunction,
  number,
  oneOf,
  optionsAlone,
  ownOf,
  ownOptions,
  string,
  strings,
} from './check.js';
export { isSharedByOtherCopy, rememberShared } from './copies.js';
export {
  abortError,
  beforeDeadline,
  type Deadline,
  startTimer,
  timeoutError,
} from './deadline.js';
export { type Deferred, defer } from './deferred.js';
export {
  defineOwn,
  descriptorOf,
  descriptorsOf,
  functionName,
  type OwnDescriptor,
  ownValue,
  tryDefineOwn,
} from './descriptors.js';
export {
  type Announcement,
  announcements,
  type ClusterLostMessage,
  type ClusterRefusedMessage,
  type PoolDegradedMessage,
  type PoolMessage,
  type PoolRecoveredMessage,
  type PoolResizeMessage,
  type ServerBlockedMessage,
  type ServerChangedMessage,
  type ServerDrainMessage,
  type ServerLoopFailedMessage,
  type ServerLostMessage,
  type TaskEndMessage,
  type TaskErrorMessage,
  type TaskMessage,
  type TaskQueuedMessage,
  type TaskStartMessage,
  type UnitBlockedMessage,
  type UnitLostMessage,
  type WorkerExitMessage,
  type WorkerMessage,
  type WorkerReadyMessage,
  type WorkerRestartMessage,
} from './diagnostics.js';
export { exitCodeOf } from './exit-code.js';
export { hasMorePrivates, hasPrivateMembers, isSameClass } from './hidden-class.js';
export { isWebServer, nodeHttp, nodeHttps } from './http.js';
export { jsonOf } from './json.js';
export { Lifecycle, type Steps } from './lifecycle.js';
export { onLines } from './lines.js';
export { LoopHold, whileHeld } from './loop-hold.js';
export { isMainRealm } from './main-realm.js';
export { errorOf, messageOf } from './message.js';
export { Parcel } from './parcel.js';
export {
  isBare,
  isDetached,
  isIndex,
  isPlainArray,
  isPlainRecord,
  isUsualArray,
  modelOf,
} from './plain.js';
export { inheritedElement, prototypeRemedy, standardKeys } from './prototype-remedy.js';
export { replaceFile } from './replace-file.js';
export { isLeftSocket, removeLeftSocket, socketPath, socketPaths } from './runtime-folder.js';
export { sourceText } from './source-text.js';
export { median, quantile } from './statistics.js';
export {
  clearImmediate,
  clearInterval,
  clearTimeout,
  nextTick,
  nowMs,
  setImmediate,
  setInterval,
  setTimeout,
} from './timers.js';
export { packageVersion } from './version.js';
export { withoutStack } from './without-stack.js';
export { takeWorkerData } from './worker-data.js';
