export type { LoopState } from './board.js';
export type { ServerStatus } from './control.js';
export { closeServer } from './drain.js';
export { foldersApp } from './folders-app.js';
export type { SideThread } from './loop-threads.js';
export { Mesh, type OnMember, supervisorMember } from './mesh.js';
export {
  fillServeOptions,
  type Placement,
  type Plan,
  type Range,
  type ServeOptions,
  type StatusAddress,
  type TlsOptions,
} from './options.js';
export { isServedProcess, type ProgramLoop, programLoop } from './program-loop.js';
export { programStack } from './program-stack.js';
export type { BoundAddress } from './protocol.js';
export { RemoteServer, remoteServers } from './remote.js';
export { type ServedApp, type ServerStats, serve, serveProgram } from './serve.js';
export { type SideProgram, sideProgram } from './side-thread.js';
export { placesIn } from './stack-text.js';
export { type LoopStatus, loopsIn } from './status.js';
export { addressesIn, addressText, statusColumns } from './status-page.js';
