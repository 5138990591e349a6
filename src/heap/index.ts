// The heap of a thread and the pauses of its collector.
export { GcPauses } from './gc-pauses.js';
export {
  type GcByKind,
  type GcKind,
  type GcStats,
  type HeapStats,
  heapStats,
  watchMs,
} from './heap.js';
