// Metrics of the served program, aggregated over its loops by prom-client's rules: counters and histograms are
// summed, gauges follow their `aggregator`. What a silent thread answered last counts on, and so do the counters
// of threads that have ended: else each reload would appear as a reset. Quantiles of summaries cannot be
// aggregated and are left out.

import { createConnection } from 'node:net';
import { threadId } from 'node:worker_threads';
import { AggregatorRegistry } from 'prom-client';
import { type AgentName, agentSocket, appMetrics } from '../../agent/index.js';
import { onLines, socketPath } from '../../lib/index.js';
import type { WatchedThread } from './reading.js';

interface Sample {
  readonly value: number;
  readonly labels: object;
  /** Name of a part of a histogram. */
  readonly metricName?: string;
}

interface AppMetric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;
  readonly values: readonly Sample[];
}

type Metrics = readonly AppMetric[];

const answerLimitMs = 1000;
const maxAnswerChars = 2 ** 24;
const aggregators: ReadonlySet<unknown> = new Set('sum first omit average min max'.split(' '));

export class AppMetrics {
  /** The last answer of each thread. */
  readonly #last = new Map<string, Metrics>();
  /** Sums of threads that have ended. */
  #ended: Metrics = [];

  #inFlight: Promise<string> | undefined;

  /** Returns the text for all threads; concurrent calls share one. `isTaken`: names that others have. */
  text(threads: readonly WatchedThread[], isTaken: (name: string) => boolean): Promise<string> {
    this.#inFlight ??= this.#text(threads, isTaken).finally(() => {
      this.#inFlight = undefined;
    });
    return this.#inFlight;
  }

  async #text(
    threads: readonly WatchedThread[],
    isTaken: (name: string) => boolean,
  ): Promise<string> {
    await Promise.all(threads.filter(({ isUp }) => isUp).map((thread) => this.#read(thread)));
    const present = new Set(threads.map(keyOf));
    for (const [key, metrics] of this.#last) {
      if (present.has(key)) continue;
      this.#last.delete(key);
      this.#ended = await aggregated([this.#ended, metrics.filter(isSum)]);
    }
    const all = await aggregated([...this.#last.values(), this.#ended]);
    const own = all.filter((metric) => !isTaken(metric.name));
    if (own.length === 0) return '';
    return await AggregatorRegistry.aggregate([[...own]]).metrics();
  }

  async #read(thread: WatchedThread): Promise<void> {
    const isOwn = thread.pid === process.pid && thread.thread === threadId;
    const metrics = isOwn
      ? metricsIn(await appMetrics().catch(() => undefined))
      : await ask({ ...thread, mayBlock: false });
    if (metrics !== undefined) this.#last.set(keyOf(thread), metrics);
  }
}

function keyOf({ pid, thread }: WatchedThread): string {
  return `${pid}.${thread}`;
}

function isSum({ type, aggregator }: AppMetric): boolean {
  return aggregator === 'sum' && ['counter', 'histogram', 'summary'].includes(type);
}

async function aggregated(all: readonly Metrics[]): Promise<Metrics> {
  const registry = AggregatorRegistry.aggregate([...all]);
  return metricsIn(await registry.getMetricsAsJSON()) ?? [];
}

/** `undefined`: no answer in time, or none that is understood. */
function ask(name: AgentName): Promise<Metrics | undefined> {
  const connection = createConnection(socketPath(agentSocket(name)));
  return new Promise<Metrics | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), answerLimitMs);
    connection.on('error', () => {}); // 'close' follows
    connection.on('close', () => {
      clearTimeout(timer);
      resolve(undefined);
    });
    onLines(connection, maxAnswerChars, (line) => resolve(metricsIn(parsed(line))));
    connection.write('appMetrics\n');
  }).finally(() => connection.destroy());
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Returns the well-formed metrics of a list, `undefined` for another value. */
function metricsIn(given: unknown): Metrics | undefined {
  return Array.isArray(given) ? given.flatMap((metric) => metricIn(metric) ?? []) : undefined;
}

function metricIn(given: unknown): AppMetric | undefined {
  const { name, help, type, aggregator = 'sum', values }: Partial<AppMetric> = Object(given);
  if (![name, help, type].every((each) => typeof each === 'string')) return undefined;
  if (name === undefined || help === undefined || type === undefined) return undefined;
  if (!Array.isArray(values)) return undefined;
  return {
    name,
    help,
    type,
    aggregator: aggregators.has(aggregator) ? aggregator : 'sum',
    values: values.flatMap((value: unknown) => sampleIn(value, type === 'summary') ?? []),
  };
}

function sampleIn(given: unknown, isOfSummary: boolean): Sample | undefined {
  const { value, labels = {}, metricName }: Partial<Sample> = Object(given);
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  if (isOfSummary && Object.hasOwn(labels, 'quantile')) return undefined;
  return { value, labels: { ...labels }, ...(metricName !== undefined && { metricName }) };
}
