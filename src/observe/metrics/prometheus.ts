// Exports the table of metrics to Prometheus by prom-client, into a registry of the program or as text.
// Values are read when the registry collects, once for all metrics.

import {
  Counter,
  Gauge,
  Histogram,
  type HistogramConfiguration,
  type Metric,
  type MetricValueWithName,
  Registry,
} from 'prom-client';
import { CodedError } from '../../errors.js';
import { invalid, ownOptions, string } from '../../lib/index.js';
import { AppMetrics } from './app-metrics.js';
import { metricDefinitions, prometheusName } from './definitions.js';
import { readProgram } from './reading.js';
import type { DurationSample, MetricDefinition } from './scopes.js';

export interface MetricsOptions {
  /** Prefix of all names, such as `shop_` in `shop_manycore_tasks_failed_total`. Default: none. */
  readonly prefix?: string | undefined;
}

/** The used part of a registry of prom-client, of any version: its types need no package. */
export interface MetricsRegistry {
  registerMetric(metric: object): void;
  getSingleMetric(name: string): unknown;
}

/**
 * Adds all metrics to a registry of prom-client, which reads them at each collection. Throws
 * `METRIC_NAME_TAKEN` when the registry has one of these names already, and `OPTION_INVALID`; nothing is
 * added then.
 */
export function registerMetrics(registry: MetricsRegistry, options: MetricsOptions = {}): void {
  const { registerMetric, getSingleMetric } = Object(registry);
  if (typeof registerMetric !== 'function' || typeof getSingleMetric !== 'function') {
    throw invalid('registry', registry, 'a Registry of prom-client');
  }
  const given = ownOptions('the options of registerMetrics', options, new Set(['prefix']));
  const prefix = prefixOf(given.prefix);
  const all = metricDefinitions.map((definition) => ({
    definition,
    name: `${prefix}${prometheusName(definition)}`,
  }));
  const taken = all.filter(({ name }) => registry.getSingleMetric(name) !== undefined);
  if (taken.length > 0) throw nameTaken(taken.map(({ name }) => name));
  for (const { definition, name } of all) registry.registerMetric(metricOf(definition, name));
}

let ofText: Registry | undefined;

const ofApp = new AppMetrics();

/**
 * Returns all metrics of this program in the text format of Prometheus, and behind them those that it handed over
 * (`metricsFrom`). Rejects with `RUNTIME_FOLDER_REFUSED`.
 */
export async function metricsText(): Promise<string> {
  const registry = textRegistry();
  const [own, { watched }] = await Promise.all([registry.metrics(), readProgram()]);
  const isTaken = (name: string): boolean => registry.getSingleMetric(name) !== undefined;
  const app = await ofApp.text(watched, isTaken);
  return app === '' ? own : `${own}\n${app}`;
}

/** Content type of `metricsText`. */
export const textType: string = Registry.PROMETHEUS_CONTENT_TYPE;

function textRegistry(): Registry {
  if (ofText === undefined) {
    ofText = new Registry();
    registerMetrics(ofText);
  }
  return ofText;
}

/** Histogram whose counts come from elsewhere. */
class ReadHistogram extends Histogram {
  readonly #settings: HistogramConfiguration<string>;
  readonly #read: () => Promise<readonly DurationSample[]>;

  constructor(
    settings: HistogramConfiguration<string>,
    read: () => Promise<readonly DurationSample[]>,
  ) {
    super(settings);
    this.#settings = settings;
    this.#read = read;
  }

  /** Called by registries and by `get()`. */
  async getForPromString(): Promise<object> {
    const { name, help } = this.#settings;
    const values = (await this.#read())
      .flatMap((sample) => linesOf(name, sample))
      .map((value) => ({ ...value, sharedLabels: {} })); // `get()` merges them into the labels
    return { name, help, type: 'histogram', aggregator: 'sum', values };
  }
}

function linesOf(
  name: string,
  { labels, durations: { count = 0, sumMs = 0, buckets = [] } }: DurationSample,
): MetricValueWithName<string>[] {
  const at = (le: number | string, value: number): MetricValueWithName<string> => ({
    metricName: `${name}_bucket`,
    labels: { ...labels, le },
    value,
  });
  return [
    ...buckets.map(([ms = 0, value = 0]) => at(ms / 1000, value)),
    at('+Inf', count),
    { metricName: `${name}_sum`, labels, value: sumMs / 1000 },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

function metricOf(definition: MetricDefinition, name: string): Metric {
  const { type, help, labels, read, readDurations } = definition;
  const settings = { name, help, labelNames: [...labels], registers: [] };
  if (readDurations !== undefined) {
    return new ReadHistogram(settings, async () => readDurations(await readProgram()));
  }
  const samples = async () => read(await readProgram());
  if (type === 'counter') {
    return new Counter({
      ...settings,
      async collect() {
        const found = await samples();
        this.reset();
        for (const { labels: of, value } of found) this.inc(of, value);
      },
    });
  }
  return new Gauge({
    ...settings,
    async collect() {
      const found = await samples();
      this.reset();
      for (const { labels: of, value } of found) this.set(of, value);
    },
  });
}

function prefixOf(given: string | undefined): string {
  if (given === undefined || given === '') return '';
  const prefix = string('prefix', given, 'a text');
  if (/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(prefix)) return prefix;
  const text = `prefix is "${prefix}": give letters, digits and _, no digit first`;
  throw new CodedError('OPTION_INVALID', text);
}

function nameTaken(names: readonly string[]): CodedError {
  const [first] = names;
  const more = names.length === 1 ? '' : ` and ${names.length - 1} more`;
  const text = `the registry has a metric ${first}${more} already: register once, or give a prefix`;
  return new CodedError('METRIC_NAME_TAKEN', text);
}
