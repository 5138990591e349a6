// Metrics of the program itself: registries of prom-client that it handed over, read for those of the whole server.
// They are stored by a global symbol, because the program may import another copy of manycore than its loop.

import { defineOwn, invalid } from '../lib/index.js';

/** The used part of a registry of prom-client, from version 14 on: its types need no package. */
export interface MetricsSource {
  getMetricsAsJSON(): Promise<readonly object[]>;
}

const name = Symbol.for('manycore.metricsSources');

/**
 * Hands a registry of prom-client over: `manycore serve --metrics`, `serveMetrics` and `metricsText` then export
 * its metrics, aggregated over all loops. To be called once in each loop; again it has no effect. Throws
 * `OPTION_INVALID`.
 */
export function metricsFrom(registry: MetricsSource): void {
  if (typeof Object(registry).getMetricsAsJSON !== 'function') {
    throw invalid('registry', registry, 'a Registry of prom-client');
  }
  if (sources() === undefined) {
    defineOwn(globalThis, name, { value: new Set(), configurable: true });
  }
  sources()?.add(registry);
}

function sources(): Set<MetricsSource> | undefined {
  const found: unknown = Reflect.get(globalThis, name);
  return found instanceof Set ? found : undefined;
}

/** Metrics of all registries of this thread, as prom-client has them in JSON. Rejects with errors of the program. */
export async function appMetrics(): Promise<object[]> {
  const all = [...(sources() ?? [])].map((registry) => registry.getMetricsAsJSON());
  return (await Promise.all(all)).flat();
}
