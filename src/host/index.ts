export { type GrantedCores, grantedCores } from './cores.js';
export { taskSignal } from './current-task.js';
export { parentBuffers, parentExporter } from './exporter.js';
export { describeExit, Host, type HostEvents, type HostSettings } from './host.js';
export { isInsideHost } from './inside.js';
export type { Call } from './link.js';
export { streamLeadItems } from './protocol.js';
export { shared, sharedMemoryProblem } from './shared.js';
export type { HostExit, HostKind, HostOptions } from './types.js';
