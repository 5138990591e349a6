// The figures of this thread. What costs something all the time, the delays of the loop and the pauses of the
// collector, is measured while somebody watches: from the first question on, until all connections that asked
// are closed, or nobody has asked for a while.

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread, threadId } from 'node:worker_threads';
import { PoolProbe } from '../blocking-pool/index.js';
import { captureFigures, watchCaptures } from '../context/index.js';
import { GcPauses, heapFigures, packageVersion, watchMs } from '../internal/index.js';
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
  readonly #delays: IntervalHistogram;
  readonly #gc: GcPauses;
  readonly #window: NodeJS.Timeout;

  constructor(gc: GcPauses) {
    this.#gc = gc;
    this.#delays = monitorEventLoopDelay({ resolution: resolutionMs });
    this.#delays.enable();
    this.#gc.start();
    this.#window = setInterval(() => this.#turn(), windowMs);
    this.#window.unref();
    watchCaptures(true);
  }

  #turn(): void {
    const delays = this.#delays;
    // The histogram has the whole time between two looks.
    const late = (ns: number): number => Math.max(0, ns / nsPerMs - resolutionMs);
    const isEmpty = delays.count === 0;
    const [p50Ms, p99Ms, maxMs] = isEmpty
      ? [0, 0, 0]
      : [late(delays.percentile(50)), late(delays.percentile(99)), late(delays.max)];
    this.#latest.push(maxMs);
    if (this.#latest.length > windowsPerMinute) this.#latest.shift();
    this.lag = { p50Ms, p99Ms, maxMs, worstMs: Math.max(...this.#latest) };
    delays.reset();
  }

  end(): void {
    this.#delays.disable();
    this.#gc.stop();
    clearInterval(this.#window);
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
