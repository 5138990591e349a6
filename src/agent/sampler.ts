// The figures of this thread. What costs something all the time, the delays of the loop and the pauses of the
// collector, is measured while somebody watches: from the first question on, until all connections that asked
// are closed, or nobody has asked for a while.

import { createHistogram } from 'node:perf_hooks';
import { isMainThread, threadId } from 'node:worker_threads';
import { PoolProbe } from '../blocking-pool/index.js';
import { captureFigures, watchCaptures } from '../context/index.js';
import { GcPauses, heapFigures, watchMs } from '../heap/index.js';
import {
  clearInterval,
  clearTimeout,
  packageVersion,
  setInterval,
  setTimeout,
} from '../internal/index.js';
import type { LagFigures, SourceFigures, ThreadFigures } from './figures.js';

const windowMs = 1000;
const windowsPerMinute = 60;
/**
 * Between two looks at the loop's delay, each of which wakes the thread. What holds the loop begins between
 * two of them, so it is told shorter by up to as much: with 50 ms, one of 60 could be taken for 10.
 */
const resolutionMs = 10;
const nsPerMs = 1e6;
const usPerMs = 1000;

class Watch {
  lag: LagFigures | undefined;
  /** Of the windows of the last minute. */
  readonly #latest: number[] = [];
  readonly #delays = createHistogram();
  readonly #gc: GcPauses;
  /**
   * Not `monitorEventLoopDelay`: its `reset` forgets when it looked last, and a loop that is held right then
   * is never told of.
   */
  readonly #timer: NodeJS.Timeout;
  #lookedMs = performance.now();
  #turnMs = this.#lookedMs + windowMs;

  constructor(gc: GcPauses) {
    this.#gc = gc;
    this.#gc.start();
    this.#timer = setInterval(() => this.#look(), resolutionMs);
    this.#timer.unref();
    watchCaptures(true);
  }

  #look(): void {
    const nowMs = performance.now();
    const lateMs = Math.max(0, nowMs - this.#lookedMs - resolutionMs);
    this.#delays.record(Math.max(1, Math.round(lateMs * nsPerMs))); // it takes no 0
    this.#lookedMs = nowMs;
    if (nowMs >= this.#turnMs) this.#turn(nowMs);
  }

  #turn(nowMs: number): void {
    const delays = this.#delays;
    const [p50Ms, p99Ms, maxMs] = [
      delays.percentile(50) / nsPerMs,
      delays.percentile(99) / nsPerMs,
      delays.max / nsPerMs,
    ];
    this.#latest.push(maxMs);
    if (this.#latest.length > windowsPerMinute) this.#latest.shift();
    this.lag = { p50Ms, p99Ms, maxMs, worstMs: Math.max(...this.#latest) };
    delays.reset();
    this.#turnMs = nowMs + windowMs;
  }

  end(): void {
    clearInterval(this.#timer);
    this.#gc.stop();
    watchCaptures(false);
  }
}

export interface LookOptions {
  /** Whether a job of ours is to find out how long one waits for libuv's pool. */
  readonly probes?: boolean;
}

let ofThread: Sampler | undefined;

/** The one of this thread: whoever asks first makes it. */
export function threadSampler(sources: () => readonly SourceFigures[]): Sampler {
  ofThread ??= new Sampler(sources);
  return ofThread;
}

class Sampler {
  readonly #sources: () => readonly SourceFigures[];
  readonly #gc = new GcPauses();
  /** Who has asked and may ask again. */
  readonly #askers = new Set<object>();
  #watch: Watch | undefined;
  #end: NodeJS.Timeout | undefined;

  constructor(sources: () => readonly SourceFigures[]) {
    this.#sources = sources;
  }

  /** The figures as they are now; from now on `asker` watches. One within the program comes and goes unseen. */
  look({ probes = false, asker = this }: LookOptions & { asker?: object } = {}): ThreadFigures {
    this.#askers.add(asker);
    this.#watch ??= new Watch(this.#gc);
    this.#end ??= setTimeout(() => this.stop(), watchMs).unref();
    this.#end.refresh();
    const { idle, active } = performance.eventLoopUtilization();
    return {
      pid: process.pid,
      thread: threadId,
      title: process.argv[1] ?? '',
      node: process.versions.node,
      version: packageVersion(),
      uptimeMs: performance.now(),
      loop: { idleMs: idle, activeMs: active, lag: this.#watch.lag },
      heap: heapFigures(),
      gc: this.#gc.figures(),
      captures: captureFigures(),
      process: isMainThread ? processFigures(probes) : undefined,
      sources: this.#sources(),
    };
  }

  /** It will not ask again. */
  leave(asker: object): void {
    if (this.#askers.delete(asker) && this.#askers.size === 0) this.stop();
  }

  stop(): void {
    this.#askers.clear();
    this.#watch?.end();
    this.#watch = undefined;
    clearTimeout(this.#end);
    this.#end = undefined;
  }
}

/** All threads share libuv's pool. */
const poolProbe = new PoolProbe();

function processFigures(probes: boolean): NonNullable<ThreadFigures['process']> {
  const { user, system } = process.cpuUsage();
  return {
    rssBytes: process.memoryUsage.rss(),
    userMs: user / usPerMs,
    systemMs: system / usPerMs,
    poolWaitMs: probes ? poolProbe.look() : undefined,
  };
}
