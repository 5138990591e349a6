// The public names of 'manycore/opentelemetry'. Re-exports only; api/opentelemetry.d.ts has their types.

/**
 * Metrics and traces for OpenTelemetry.
 *
 * @module manycore/opentelemetry
 */

export { type InstrumentOptions, instrument } from './opentelemetry.js';
