export { appMetrics, type MetricsSource, metricsFrom } from './app-metrics.js';
export { markAsBlocking, mayBlock, ownServers } from './own-thread.js';
export {
  type AgentName,
  agentNameOf,
  agentSocket,
  agentSockets,
  maxProfileSeconds,
  parseProfileAnswer,
  parseSlice,
  parseStats,
  profileQuestion,
} from './protocol.js';
export { addSource, ownStats, type SourceWorkers } from './sources.js';
export type {
  Bucket,
  LoopStats,
  ProcessStats,
  SourceKind,
  SourceStats,
  TaskSlice,
  TaskSpan,
  ThreadStats,
  WorkerSlice,
} from './stats.js';
