// Transactional memory: variables that processes change together or not at all.

export {
  afterCommit,
  atomically,
  check,
  nested,
  orElse,
  retry,
} from './atomically.js';
export { type TCounter, tcounter } from './collections/counter.js';
export { type TList, tlist } from './collections/list.js';
export { type QueueOptions, type TQueue, tqueue } from './collections/queue.js';
export {
  type KeyRange,
  type TMap,
  type TSortedMap,
  tmap,
  tsortedMap,
} from './collections/sorted-map.js';
export { free, type Shared } from './free.js';
export { named } from './named.js';
export { atomicallyWhen, type WhenOptions } from './sleep.js';
export type { StmContention, StmKind, StmStats } from './stats.js';
export { stmStats, type TVar, tvar } from './tvar.js';
