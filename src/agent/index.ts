export type {
  Bucket,
  HostSlice,
  LoopFigures,
  ProcessFigures,
  SourceFigures,
  SourceKind,
  TaskSlice,
  TaskSpan,
  ThreadFigures,
} from './figures.js';
export { addSource, ownFigures } from './live.js';
export { agentServers, markAsBlocking, mayBlock } from './own-thread.js';
export { agentNameOf, agentSockets, parseFigures, parseSlice } from './protocol.js';
