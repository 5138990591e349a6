// Samples the stats of this thread. Delays of the loop and pauses of the collector cost time, so they are
// sampled on demand: from the first question until all connections that asked are closed, or until no
// question has come for a while.

import { createHistogram } from 'node:perf_hooks';
import { isMainThread, threadId } from 'node:worker_threads';
import { PoolProbe } from '../blocking-pool/index.js';
import { captureStats, watchCaptures } from '../context/index.js';
import { GcPauses, heapStats, watchMs } from '../heap/index.js';
import {
  clearInterval,
  clearTimeout,
  packageVersion,
  setInterval,
  setTimeout,
} from '../lib/index.js';
import type { LagStats, SourceStats, ThreadStats } from './stats.js';

const windowMs = 1000;
const windowsPerMinute = 60;
/**
 * Period of the samples of the loop's delay, each of which wakes the thread. A blockage begins between two
 * samples and is measured shorter by up to one period: with 50 ms, one of 60 could appear as 10.
 */
const resolutionMs = 10;
const nsPerMs = 1e6;
const usPerMs = 1000;

class Watch {
  lag: LagStats | undefined;
  /** Delays by window, for the last minute. */
  readonly #latest: number[] = [];
  readonly #delays = createHistogram();
  readonly #gc: GcPauses;
  /**
   * Not `monitorEventLoopDelay`: its `reset` discards the time of its last sample, and a blockage at that
   * moment is lost.
   */
  readonly #timer: NodeJS.Timeout;
  #measuredMs = performance.now();
  #turnMs = this.#measuredMs + windowMs;

  constructor(gc: GcPauses) {
    this.#gc = gc;
    this.#gc.start();
    this.#timer = setInterval(() => this.#measureDelay(), resolutionMs);
    this.#timer.unref();
    watchCaptures(true);
  }

  #measureDelay(): void {
    const nowMs = performance.now();
    const lateMs = Math.max(0, nowMs - this.#measuredMs - resolutionMs);
    this.#delays.record(Math.max(1, Math.round(lateMs * nsPerMs))); // the histogram accepts no 0
    this.#measuredMs = nowMs;
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

export interface SampleOptions {
  /** True: a probe measures the wait for libuv's pool. */
  readonly probes?: boolean;
}

let ofThread: Sampler | undefined;

/** The sampler of this thread, made at the first call. */
export function threadSampler(sources: () => readonly SourceStats[]): Sampler {
  ofThread ??= new Sampler(sources);
  return ofThread;
}

class Sampler {
  readonly #sources: () => readonly SourceStats[];
  readonly #gc = new GcPauses();
  /** Connections that have asked and may ask again. */
  readonly #readers = new Set<object>();
  #watch: Watch | undefined;
  #end: NodeJS.Timeout | undefined;

  constructor(sources: () => readonly SourceStats[]) {
    this.#sources = sources;
  }

  /**
   * The present stats. Sampling goes on for `reader` until `release`; readers within the program share one.
   */
  sample({ probes = false, reader = this }: SampleOptions & { reader?: object } = {}): ThreadStats {
    this.#readers.add(reader);
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
      heap: heapStats(),
      gc: this.#gc.stats(),
      captures: captureStats(),
      process: isMainThread ? processStats(probes) : undefined,
      sources: this.#sources(),
    };
  }

  /** Ends sampling for `reader`. */
  release(reader: object): void {
    if (this.#readers.delete(reader) && this.#readers.size === 0) this.stop();
  }

  stop(): void {
    this.#readers.clear();
    this.#watch?.end();
    this.#watch = undefined;
    clearTimeout(this.#end);
    this.#end = undefined;
  }
}

/** One for all threads, which share libuv's pool. */
const poolProbe = new PoolProbe();

function processStats(probes: boolean): NonNullable<ThreadStats['process']> {
  const { user, system } = process.cpuUsage();
  return {
    rssBytes: process.memoryUsage.rss(),
    userMs: user / usPerMs,
    systemMs: system / usPerMs,
    poolWaitMs: probes ? poolProbe.poll() : undefined,
  };
}
