// The heap of a thread and the pauses of its collector.
export { GcPauses } from './gc-pauses.js';
export {
  type GcByKind,
  type GcFigures,
  type GcKind,
  type HeapFigures,
  heapFigures,
  watchMs,
} from './heap.js';
