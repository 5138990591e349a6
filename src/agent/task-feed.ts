// Slices of the work in workers, sent ten times a second to a sampler that draws them. Ten thousand tasks a
// second are too many to send and to draw: a slice has counts for each worker, durations in buckets, and the
// longest tasks. A slow sampler gets one longer slice later, and nothing grows meanwhile. A sampler that reads
// nothing for seconds is disconnected.

import { announcements, clearInterval, setInterval } from '../lib/index.js';
import type { Bucket, TaskSlice, TaskSpan, WorkerSlice } from './stats.js';

const sliceMs = 100;
/** Limit of the tasks of one slice. */
const maxSpans = 100;
/** Shorter tasks would be invisible on a time line. */
const minSpanMs = 1;
/** Time for which a sampler may read nothing. */
const maxStalledMs = 5000;
/** Upper bounds of durations: powers of two from 2^-7 ms (8 µs) on. */
const lowestPower = -7;
const bucketCount = 32;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };
type Span = Writable<TaskSpan>;

/** The sampler's end. */
export interface SliceListener {
  readonly send: (slice: TaskSlice) => void;
  /** True: the send buffer has room. */
  readonly hasRoom: () => boolean;
  /** Called when there was no room for too long; nothing is sent afterwards. */
  readonly disconnect: () => void;
}

export class TaskFeed {
  readonly #listener: SliceListener;
  readonly #timer: NodeJS.Timeout;
  readonly #workers = new Map<number, Writable<WorkerSlice>>();
  readonly #ran = new Uint32Array(bucketCount);
  readonly #waited = new Uint32Array(bucketCount);
  /** Running tasks by number, without those that began before the feed. */
  readonly #running = new Map<number, Omit<TaskSpan, 'endMs'>>();
  #spans: Span[] = [];
  /** The task that ended last. */
  #last: Span | undefined;
  #fromMs = performance.now();

  constructor(listener: SliceListener) {
    this.#listener = listener;
    announcements.taskStart.subscribe(this.#onStart);
    announcements.taskEnd.subscribe(this.#onEnd);
    announcements.taskError.subscribe(this.#onError);
    this.#timer = setInterval(() => this.#turn(), sliceMs);
    this.#timer.unref();
  }

  end(): void {
    clearInterval(this.#timer);
    announcements.taskStart.unsubscribe(this.#onStart);
    announcements.taskEnd.unsubscribe(this.#onEnd);
    announcements.taskError.unsubscribe(this.#onError);
  }

  readonly #onStart = (message: unknown): void => {
    const { task = 0, worker = 0, waitedMs = 0, name = '' }: Announced = Object(message);
    countIn(this.#waited, waitedMs);
    this.#running.set(task, { task, worker, name, startMs: performance.now(), isFailed: false });
  };

  readonly #onEnd = (message: unknown): void => {
    const { task = 0, worker = 0, ranMs = 0, name = '' }: Announced = Object(message);
    this.#running.delete(task);
    const endMs = performance.now();
    const startMs = endMs - ranMs;
    const counts = this.#countsOf(worker);
    counts.tasks += 1;
    counts.busyMs += endMs - Math.max(startMs, this.#fromMs);
    countIn(this.#ran, ranMs);
    const span: Span = { task, worker, name, startMs, endMs, isFailed: false };
    this.#last = span;
    if (ranMs < minSpanMs) return;
    this.#spans.push(span);
    if (this.#spans.length >= 2 * maxSpans) this.#spans = longest(this.#spans);
  };

  /** A task that failed in its worker ended right before; any other was given up, or lost its worker. */
  readonly #onError = (message: unknown): void => {
    const { task = 0 }: Announced = Object(message);
    const given = this.#running.get(task);
    this.#running.delete(task);
    const ended = this.#last?.task === task ? this.#last : undefined;
    this.#countsOf(ended?.worker ?? given?.worker ?? 0).failed += 1;
    if (ended !== undefined) ended.isFailed = true;
  };

  #countsOf(worker: number): Writable<WorkerSlice> {
    let counts = this.#workers.get(worker);
    if (counts === undefined) {
      counts = { worker, tasks: 0, failed: 0, busyMs: 0 };
      this.#workers.set(worker, counts);
    }
    return counts;
  }

  #turn(): void {
    const toMs = performance.now();
    if (!this.#listener.hasRoom()) {
      if (toMs - this.#fromMs > maxStalledMs) this.#listener.disconnect();
      return;
    }
    const running = this.#runningUntil(toMs);
    this.#listener.send({
      fromMs: this.#fromMs,
      toMs,
      workers: [...this.#workers.values()],
      tasks: longest(this.#spans),
      running,
      ran: bucketsOf(this.#ran),
      waited: bucketsOf(this.#waited),
    });
    this.#fromMs = toMs;
    this.#workers.clear();
    this.#ran.fill(0);
    this.#waited.fill(0);
    this.#spans = [];
    this.#last = undefined;
  }

  /** Running tasks, whose time counts as busy time of their workers. */
  #runningUntil(endMs: number): Span[] {
    const spans: Span[] = [];
    for (const task of this.#running.values()) {
      this.#countsOf(task.worker).busyMs += endMs - Math.max(task.startMs, this.#fromMs);
      if (endMs - task.startMs >= minSpanMs) spans.push({ ...task, endMs });
    }
    return longest(spans);
  }
}

interface Announced {
  readonly task?: number;
  readonly worker?: number;
  readonly ranMs?: number;
  readonly waitedMs?: number;
  readonly name?: string;
}

function longest(spans: Span[]): Span[] {
  const lengthOf = ({ startMs, endMs }: TaskSpan): number => endMs - startMs;
  return spans.sort((a, b) => lengthOf(b) - lengthOf(a)).slice(0, maxSpans);
}

function countIn(counts: Uint32Array, ms: number): void {
  const power = Math.ceil(Math.log2(Math.max(ms, Number.MIN_VALUE)));
  const bucket = Math.min(bucketCount - 1, Math.max(0, power - lowestPower));
  counts[bucket] = (counts[bucket] ?? 0) + 1;
}

function bucketsOf(counts: Uint32Array): Bucket[] {
  return [...counts].flatMap((count, bucket) =>
    count === 0 ? [] : [[2 ** (bucket + lowestPower), count] as const],
  );
}
