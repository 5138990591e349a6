// Slices of the work in hosts, sent ten times a second to a viewer that draws them. Ten thousand tasks a second
// are too many to send and to draw: a slice has counts for each host, durations in buckets, and the longest
// tasks. A slow viewer gets one longer slice later, and nothing grows meanwhile. A viewer that reads nothing for
// seconds is disconnected.

import { announcements, clearInterval, setInterval } from '../internal/index.js';
import type { Bucket, HostSlice, TaskSlice, TaskSpan } from './figures.js';

const sliceMs = 100;
/** Limit of the tasks of one slice. */
const mostSpans = 100;
/** Shorter tasks would be invisible on a time line. */
const shortestSpanMs = 1;
/** Time for which a viewer may read nothing. */
const patienceMs = 5000;
/** Upper bounds of durations: powers of two from 2^-7 ms (8 µs) on. */
const lowestPower = -7;
const bucketCount = 32;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };
type Span = Writable<TaskSpan>;

/** The viewer's end. */
export interface SliceListener {
  readonly tell: (slice: TaskSlice) => void;
  /** True: the send buffer has room. */
  readonly hasRoom: () => boolean;
  /** Called when there was no room for too long; nothing is sent afterwards. */
  readonly letGo: () => void;
}

export class TaskFeed {
  readonly #listener: SliceListener;
  readonly #timer: NodeJS.Timeout;
  readonly #hosts = new Map<number, Writable<HostSlice>>();
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
    const { task = 0, host = 0, waitedMs = 0, name = '' }: Told = Object(message);
    countIn(this.#waited, waitedMs);
    this.#running.set(task, { task, host, name, startMs: performance.now(), isFailed: false });
  };

  readonly #onEnd = (message: unknown): void => {
    const { task = 0, host = 0, ranMs = 0, name = '' }: Told = Object(message);
    this.#running.delete(task);
    const endMs = performance.now();
    const startMs = endMs - ranMs;
    const counts = this.#countsOf(host);
    counts.tasks += 1;
    counts.busyMs += endMs - Math.max(startMs, this.#fromMs);
    countIn(this.#ran, ranMs);
    const span: Span = { task, host, name, startMs, endMs, isFailed: false };
    this.#last = span;
    if (ranMs < shortestSpanMs) return;
    this.#spans.push(span);
    if (this.#spans.length >= 2 * mostSpans) this.#spans = longest(this.#spans);
  };

  /** A task that failed in its host ended right before; any other was given up, or lost its host. */
  readonly #onError = (message: unknown): void => {
    const { task = 0 }: Told = Object(message);
    const given = this.#running.get(task);
    this.#running.delete(task);
    const ended = this.#last?.task === task ? this.#last : undefined;
    this.#countsOf(ended?.host ?? given?.host ?? 0).failed += 1;
    if (ended !== undefined) ended.isFailed = true;
  };

  #countsOf(host: number): Writable<HostSlice> {
    let counts = this.#hosts.get(host);
    if (counts === undefined) {
      counts = { host, tasks: 0, failed: 0, busyMs: 0 };
      this.#hosts.set(host, counts);
    }
    return counts;
  }

  #turn(): void {
    const toMs = performance.now();
    if (!this.#listener.hasRoom()) {
      if (toMs - this.#fromMs > patienceMs) this.#listener.letGo();
      return;
    }
    const running = this.#runningUntil(toMs);
    this.#listener.tell({
      fromMs: this.#fromMs,
      toMs,
      hosts: [...this.#hosts.values()],
      tasks: longest(this.#spans),
      running,
      ran: bucketsOf(this.#ran),
      waited: bucketsOf(this.#waited),
    });
    this.#fromMs = toMs;
    this.#hosts.clear();
    this.#ran.fill(0);
    this.#waited.fill(0);
    this.#spans = [];
    this.#last = undefined;
  }

  /** Running tasks, whose time counts as busy time of their hosts. */
  #runningUntil(endMs: number): Span[] {
    const spans: Span[] = [];
    for (const task of this.#running.values()) {
      this.#countsOf(task.host).busyMs += endMs - Math.max(task.startMs, this.#fromMs);
      if (endMs - task.startMs >= shortestSpanMs) spans.push({ ...task, endMs });
    }
    return longest(spans);
  }
}

interface Told {
  readonly task?: number;
  readonly host?: number;
  readonly ranMs?: number;
  readonly waitedMs?: number;
  readonly name?: string;
}

function longest(spans: Span[]): Span[] {
  const lengthOf = ({ startMs, endMs }: TaskSpan): number => endMs - startMs;
  return spans.sort((a, b) => lengthOf(b) - lengthOf(a)).slice(0, mostSpans);
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
