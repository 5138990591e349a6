export { startCommand, type TracedCommand } from './command.js';
export { endProcesses } from './ending.js';
export { writeTraceFile } from './files.js';
export { foldCounts, foldTimes } from './folded.js';
export { hasOuterPids, type MissingMethod, type TraceMethod, traceMethods } from './methods.js';
export type {
  MachineShares,
  TracedCall,
  TracedRole,
  TracedThread,
  TraceReport,
} from './report.js';
export type { ThreadRequests } from './request-counts.js';
export { startTrace, type Trace, type TraceOptions } from './trace.js';
