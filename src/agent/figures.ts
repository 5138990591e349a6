// What a thread that uses manycore tells of itself to who asks: plain data, the same in the process and as
// JSON over its socket. Times are in ms, sizes in bytes; what counts up does so from the thread's start.

import type { CaptureFigures } from '../context/index.js';
import type { GcByKind, HeapFigures } from '../heap/index.js';

export interface LoopFigures {
  /** In its poller, and with work, as `performance.eventLoopUtilization` counts them. */
  readonly idleMs: number;
  readonly activeMs: number;
  /** How late timers were in the last whole second; `undefined` before somebody has watched for one. */
  readonly lag: LagFigures | undefined;
}

export interface LagFigures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** The latest in the last minute: who asks less often than each second misses none. */
  readonly worstMs: number;
}

/** Of the whole process, told by its main thread alone. */
export interface ProcessFigures {
  readonly rssBytes: number;
  readonly userMs: number;
  readonly systemMs: number;
  /**
   * How long a job of ours waited for a thread of libuv's pool that the question before has begun, or has
   * waited so far; `undefined` for who does not ask for it, and the first time.
   */
  readonly poolWaitMs?: number | undefined;
}

/** One pool, bus, server or group of loops of this thread, with what its `stats` are. */
export interface SourceFigures {
  readonly kind: SourceKind;
  /** Counted from 1, for each kind by itself. */
  readonly id: number;
  readonly figures: object;
}

export type SourceKind = 'pool' | 'bus' | 'loops' | 'server' | 'servedLoop';

export interface ThreadFigures {
  readonly pid: number;
  /** 0: the main thread. */
  readonly thread: number;
  /** The program's path, as it was started. */
  readonly title: string;
  readonly node: string;
  /** Of manycore. */
  readonly version: string;
  readonly uptimeMs: number;
  readonly loop: LoopFigures;
  readonly heap: HeapFigures;
  /** Since somebody watches. */
  readonly gc: GcByKind;
  /** Since somebody watches. */
  readonly captures: CaptureFigures;
  /** `undefined` in a worker thread. */
  readonly process: ProcessFigures | undefined;
  readonly sources: readonly SourceFigures[];
}

/** What the hosts of a thread did in a short time, for a time line. */
export interface TaskSlice {
  /** Of the thread's clock, `uptimeMs`; half-open. Longer than usual where nobody took it for a while. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Those that ended a task, or had one. */
  readonly hosts: readonly HostSlice[];
  /** The longest that ended; the others are in the counts of their hosts alone. */
  readonly tasks: readonly TaskSpan[];
  /** The longest that still run, as far as they have come: `endMs` is that of the slice. */
  readonly running: readonly TaskSpan[];
  /** Durations of all that ended, in ms: `[upper bound, count]`, only buckets with something in them. */
  readonly ran: readonly Bucket[];
  /** How long all that began had waited for a host, in the same way. */
  readonly waited: readonly Bucket[];
}

export type Bucket = readonly [upperMs: number, count: number];

export interface HostSlice {
  /** 0: in the thread itself, or in no host at all. */
  readonly host: number;
  /** That ended there. */
  readonly tasks: number;
  /** Of those, or of others that never began. */
  readonly failed: number;
  /** Spent in its tasks within the slice; with several at once it may be more than the slice is long. */
  readonly busyMs: number;
}

export interface TaskSpan {
  readonly task: number;
  readonly host: number;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly isFailed: boolean;
}
