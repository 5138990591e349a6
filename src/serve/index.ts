export type { ServerStatus } from './control/control.js';
export { RemoteServer, remoteServers } from './control/remote.js';
export { type LoopStatus, loopsIn } from './control/status.js';
export {
  addressesIn,
  addressText,
  durationText,
  sizeText,
  statusColumns,
} from './control/status-page.js';
export { closeServer } from './loop/drain.js';
export type { SideThread } from './loop/loop-threads.js';
export { isServedProcess, type ProgramLoop, programLoop } from './loop/program-loop.js';
export { type SideProgram, sideProgram } from './loop/side-thread.js';
export { checkName, nameOfProgram } from './name.js';
export {
  fillServeOptions,
  type Placement,
  type Plan,
  type Range,
  type ServeOptions,
  type StatusAddress,
  serveOptionNames,
  type TlsOptions,
} from './options.js';
export { type AccessFormat, accessFormats } from './output/access-line.js';
export { LineSplitter, type OutputLine } from './output/lines.js';
export { programStack } from './process/program-stack.js';
export type { BoundAddress } from './protocol.js';
export { change, type Difference } from './renewal.js';
export { checkReloadAt } from './schedule.js';
export {
  type Renewable,
  type Replacing,
  type ServedApp,
  type ServerStats,
  type StartingRenewal,
  type StartingServer,
  serve,
  serveProgram,
  startRenewable,
  startServing,
} from './serve.js';
export type { LoopState } from './shared/board.js';
export { dupFd } from './shared/dup-fds.js';
export {
  endpointKey,
  endpointSocket,
  type HandedSocket,
  type Handover,
  Predecessor,
  withoutTwins,
} from './shared/handover.js';
export type { Sticky } from './sticky.js';
export { Mesh, type OnMember, supervisorMember } from './supervisor/mesh.js';
export { placesIn } from './supervisor/stack-text.js';
export type { LostProcess } from './supervisor/supervisor.js';
