export type {
  Bucket,
  LoopFigures,
  ProcessFigures,
  SourceFigures,
  SourceKind,
  TaskSlice,
  TaskSpan,
  ThreadFigures,
  WorkerSlice,
} from './figures.js';
export { addSource, ownFigures } from './live.js';
export { agentServers, markAsBlocking, mayBlock } from './own-thread.js';
export { agentNameOf, agentSockets, parseFigures, parseSlice } from './protocol.js';
