// The package's `manycore/metrics`: what a program tells Prometheus. Guide: docs/guide/metrics.md; what each
// metric means: docs/metrics.md.

export { type EndpointOptions, type MetricsEndpoint, serveMetrics } from './endpoint.js';
export {
  type MetricsOptions,
  type MetricsRegistry,
  metricsText,
  registerMetrics,
} from './prometheus.js';
