// Statistics of a set of response times, and the comparison of modes.
import { max, quantile } from 'd3-array';

/** Percentiles in milliseconds of a list of response times, exact: every sample counts. */
export function summarize(responsesMs) {
  return {
    presses: responsesMs.length,
    p50Ms: quantile(responsesMs, 0.5) ?? 0,
    p95Ms: quantile(responsesMs, 0.95) ?? 0,
    p99Ms: quantile(responsesMs, 0.99) ?? 0,
    maxMs: max(responsesMs) ?? 0,
  };
}

/**
 * Returns the ratios of the measured modes. `toIdle[mode]`: `{ p50, p95 }` of a mode as multiples of the idle
 * server's. `serializedToParallelP95`: the factor by which nearly every press is answered sooner.
 */
export function compare(results) {
  const byMode = Object.fromEntries(results.map((result) => [result.mode, result]));
  const { idle, serialized, parallel } = byMode;
  const toIdle = {};
  for (const { mode, p50Ms, p95Ms } of results) {
    if (idle === undefined || mode === 'idle') continue;
    toIdle[mode] = { p50: p50Ms / idle.p50Ms, p95: p95Ms / idle.p95Ms };
  }
  const serializedToParallelP95 =
    serialized && parallel ? serialized.p95Ms / parallel.p95Ms : undefined;
  return { toIdle, serializedToParallelP95 };
}
