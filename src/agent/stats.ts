// Stats of a thread that uses manycore: plain data, the same in the process and as JSON over its socket.
// Times are in ms, sizes in bytes. Counters begin at the start of the thread.

import type { CaptureStats } from '../context/index.js';
import type { GcByKind, HeapStats } from '../heap/index.js';

export interface LoopStats {
  /** Time in the poller and at work, as `performance.eventLoopUtilization` counts it. */
  readonly idleMs: number;
  readonly activeMs: number;
  /** Delays of timers in the last whole second; `undefined` in the first second of sampling. */
  readonly lag: LagStats | undefined;
}

export interface LagStats {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** The longest delay of the last minute, for readers that poll less than once a second. */
  readonly worstMs: number;
}

/** Stats of the whole process, which its main thread reports alone. */
export interface ProcessStats {
  readonly rssBytes: number;
  readonly userMs: number;
  readonly systemMs: number;
  /**
   * The wait of a probe for a thread of libuv's pool, or its wait so far. The question before started the
   * probe. `undefined` without `probedStats`, and in the first answer.
   */
  readonly poolWaitMs?: number | undefined;
}

/** One pool, bus, server, group of loops or transactional memory of this thread, with its `stats`. */
export interface SourceStats {
  readonly kind: SourceKind;
  /** A number from 1 on, for each kind by itself. */
  readonly id: number;
  readonly stats: object;
}

export type SourceKind = 'pool' | 'bus' | 'loops' | 'server' | 'servedLoop' | 'stm';

export interface ThreadStats {
  readonly pid: number;
  /** 0: the main thread. */
  readonly thread: number;
  /** The path with which the program was started. */
  readonly title: string;
  readonly node: string;
  /** Version of manycore. */
  readonly version: string;
  readonly uptimeMs: number;
  readonly loop: LoopStats;
  readonly heap: HeapStats;
  /** Counts since sampling started. */
  readonly gc: GcByKind;
  /** Counts since sampling started. */
  readonly captures: CaptureStats;
  /** `undefined` in a worker thread. */
  readonly process: ProcessStats | undefined;
  readonly sources: readonly SourceStats[];
}

/** Work of the workers of a thread within a short time, for a time line. */
export interface TaskSlice {
  /** Begin and end by the thread's clock, `uptimeMs`; half-open. Longer when the reader was slow. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Workers that ended a task or were running one. */
  readonly workers: readonly WorkerSlice[];
  /** The longest finished tasks; the others are in the counts of their workers alone. */
  readonly tasks: readonly TaskSpan[];
  /** The longest tasks still running; their `endMs` is that of the slice. */
  readonly running: readonly TaskSpan[];
  /** Durations of all finished tasks, in ms: `[upper bound, count]`, without empty buckets. */
  readonly ran: readonly Bucket[];
  /** Waits for a worker of all tasks that began, in the same form. */
  readonly waited: readonly Bucket[];
}

export type Bucket = readonly [upperMs: number, count: number];

export interface WorkerSlice {
  /** 0: the thread itself, or no worker. */
  readonly worker: number;
  /** Finished tasks. */
  readonly tasks: number;
  /** Failed tasks, among them tasks that never began. */
  readonly failed: number;
  /** Time in tasks within the slice; with several at once it may exceed the length of the slice. */
  readonly busyMs: number;
}

export interface TaskSpan {
  readonly task: number;
  readonly worker: number;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly isFailed: boolean;
}
