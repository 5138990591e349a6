// Small things that every part may use; no part of manycore is known here.
export { unwatchAbort, watchAbort } from './abort-watch.js';
export { isSharedByOtherCopy, rememberShared } from './copies.js';
export {
  abortError,
  beforeDeadline,
  type Deadline,
  startAnswerTimer,
  startTimer,
  timeoutError,
} from './deadline.js';
export { type Deferred, defer } from './deferred.js';
export {
  type Announcement,
  announcements,
  type BusHandlerFailedMessage,
  type ClusterLostMessage,
  type ClusterRefusedMessage,
  type PoolDegradedMessage,
  type PoolMessage,
  type PoolRecoveredMessage,
  type PoolResizeMessage,
  type ServerBlockedMessage,
  type ServerChangedMessage,
  type ServerDrainMessage,
  type ServerExhaustedMessage,
  type ServerListeningMessage,
  type ServerLoopFailedMessage,
  type ServerLostMessage,
  type ServerRecoveredMessage,
  type ServerReloadFailedMessage,
  type TaskEndMessage,
  type TaskErrorMessage,
  type TaskMessage,
  type TaskQueuedMessage,
  type TaskStartMessage,
  type UnitBlockedMessage,
  type UnitFailedMessage,
  type UnitLostMessage,
  type UnitVersionChangedMessage,
  type WorkerExitMessage,
  type WorkerLimit,
  type WorkerLimitMessage,
  type WorkerMessage,
  type WorkerReadyMessage,
  type WorkerRestartMessage,
} from './diagnostics.js';
export { exitCodeOf } from './exit-code.js';
export { replaceFile } from './files/replace-file.js';
export {
  isLeftSocket,
  privateFolder,
  removeLeftSocket,
  socketPath,
  socketPaths,
} from './files/runtime-folder.js';
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
} from './input/check.js';
export { hintAt, hintFor } from './input/did-you-mean.js';
export {
  booleanOption,
  choiceOption,
  functionOption,
  integerOption,
  numberOption,
  type Read,
  type Readers,
  readGiven,
  readOptions,
} from './input/options.js';
export {
  isBare,
  isDetached,
  isIndex,
  isPlainArray,
  isPlainRecord,
  isUsualArray,
  modelOf,
} from './input/plain.js';
export { Lifecycle, type Steps } from './lifecycle.js';
export { onLines } from './lines.js';
export { machineMemoryMb } from './machine-memory.js';
export { errorOf, messageOf } from './message.js';
export {
  type ProfileAnswer,
  profileAnswerOf,
  profileOtherThread,
  profileThread,
} from './node/cpu-profile.js';
export { nodeCrypto } from './node/crypto.js';
export {
  defineOwn,
  descriptorOf,
  descriptorsOf,
  functionName,
  type OwnDescriptor,
  ownValue,
  tryDefineOwn,
} from './node/descriptors.js';
export { hasMorePrivates, hasPrivateMembers, isSameClass } from './node/hidden-class.js';
export {
  attachToThread,
  type InspectedThread,
  type InspectorMessage,
} from './node/inspected-thread.js';
export { jsonOf } from './node/json.js';
export { LoopHold, whileHeld } from './node/loop-hold.js';
export { isMainRealm } from './node/main-realm.js';
export {
  closeGently,
  isProgramListening,
  isWebServer,
  nodeHttp,
  nodeHttps,
  nodeNet,
  ownListening,
  serverFd,
} from './node/networks.js';
export { builtPlatforms, libcOf, platformName } from './node/platform.js';
export { inheritedElement, prototypeRemedy, standardKeys } from './node/prototype-remedy.js';
export { scavenge } from './node/scavenge.js';
export { sourceText } from './node/source-text.js';
export { keepTickShape } from './node/tick-shape.js';
export {
  clearImmediate,
  clearInterval,
  clearTimeout,
  nextTick,
  nowMs,
  setImmediate,
  setInterval,
  setTimeout,
} from './node/timers.js';
export { withoutStack } from './node/without-stack.js';
export { withoutWarnings } from './node/without-warnings.js';
export { takeWorkerData } from './node/worker-data.js';
export { Parcel } from './parcel.js';
export {
  type IntensityOptions,
  intensityDefaults,
  RestartIntensity,
} from './restart/intensity.js';
export { Patience, patienceDefaults } from './restart/patience.js';
export { type RestartOptions, RestartPolicy, restartDefaults } from './restart/restart.js';
export { median, quantile } from './statistics.js';
export { refuseInTransaction, setTransactionRunning } from './transaction.js';
export { memoryLimit } from './untrusted.js';
export { packageVersion } from './version.js';
