// The public names of 'manycore/metrics', the metrics of a program for Prometheus. Re-exports only;
// api/metrics.d.ts has their types. Guide: docs/guide/metrics.md; what each metric means: docs/metrics.md.

/**
 * Metrics of the whole program for Prometheus.
 *
 * @module manycore/metrics
 */

export { type EndpointOptions, type MetricsEndpoint, serveMetrics } from './endpoint.js';
export {
  type MetricsOptions,
  type MetricsRegistry,
  metricsText,
  registerMetrics,
} from './prometheus.js';
