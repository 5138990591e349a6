export { Dashboard } from './dashboard/dashboard.js';
export { bytesText, countText, msText, percentText, shortTitle } from './format.js';
export { busyConcern, isBlockedFor, lagConcern } from './limits.js';
export {
  type EndpointOptions,
  type MetricsEndpoint,
  type MetricsServer,
  openMetrics,
  serveMetrics,
} from './metrics/endpoint.js';
export { memoriesOf } from './metrics/sources.js';
export { type ProfileOptions, profileProcess, type ThreadProfile } from './profile.js';
export { type PolledThread, ProcessThreads, type Program, Programs } from './programs.js';
export { ProgramSampler } from './sampler.js';
export { followTasks } from './task-slices.js';
export { roleOf } from './views/thread-view.js';
export type {
  BusView,
  InsideView,
  LoopView,
  MemoryView,
  PartitionView,
  PoolView,
  ProgramView,
  ServerView,
  SummaryView,
  ThreadView,
  WorkerView,
} from './views/view-types.js';
