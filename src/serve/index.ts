export type { LoopState } from './board.js';
export type { ServerStatus } from './control.js';
export { foldersApp } from './folders-app.js';
export type { Placement, Plan, Range, ServeOptions, StatusAddress, TlsOptions } from './options.js';
export type { BoundAddress } from './protocol.js';
export { RemoteServer, remoteServers } from './remote.js';
export { type ServedApp, serve } from './serve.js';
export type { LoopStatus } from './status.js';
export { addressText, statusColumns } from './status-page.js';
