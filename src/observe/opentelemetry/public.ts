// The public names of 'manycore/opentelemetry'. Re-exports only; api/opentelemetry.d.ts has their types.

export { type InstrumentOptions, instrument } from './opentelemetry.js';
