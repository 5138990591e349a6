export { describeExit, Host, type HostEvents, type HostSettings } from './host.js';
export { taskSignal } from './current-task.js';
export { type GrantedCores, grantedCores } from './cores.js';
export { isInsideHost } from './inside.js';
export { parentBuffers, parentExporter } from './exporter.js';
export type { Call } from './link.js';
export { streamLeadItems } from './protocol.js';
export type { HostExit, HostKind, HostOptions } from './types.js';
export { shared } from './shared.js';
