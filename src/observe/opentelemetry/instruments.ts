// The table of metrics as observable instruments of OpenTelemetry: read when its SDK collects.

import { isMainThread } from 'node:worker_threads';
import type { BatchObservableCallback, Meter, MetricOptions, Observable } from '@opentelemetry/api';
import { isServedProcess } from '../../serve/index.js';
import { isInsideWorker } from '../../worker/index.js';
import { metricDefinitions, openTelemetryName } from '../metrics/definitions.js';
import { readProgram } from '../metrics/reading.js';
import type { MetricDefinition } from '../metrics/scopes.js';

/** Returns what takes them away again. */
export function addInstruments(meter: Meter): () => void {
  const all = metricDefinitions.map((definition) => ({
    definition,
    instrument: instrumentOf(meter, definition),
  }));
  const instruments: Observable[] = all.map(({ instrument }) => instrument);
  const observe: BatchObservableCallback = async (result) => {
    if (!reportsProgram()) return;
    const program = await readProgram();
    for (const { definition, instrument } of all) {
      for (const { value, labels } of definition.read(program)) {
        result.observe(instrument, value, labels);
      }
    }
  };
  meter.addBatchObservableCallback(observe, instruments);
  return () => meter.removeBatchObservableCallback(observe, instruments);
}

/**
 * All threads and processes of a program are told by one of them, or each would be told many times. What
 * loads this may not know yet what it is in: hence asked when metrics are collected.
 */
function reportsProgram(): boolean {
  return isMainThread && !isInsideWorker() && !isServedProcess();
}

function instrumentOf(meter: Meter, definition: MetricDefinition): Observable {
  const { type, unit, help: description } = definition;
  const options: MetricOptions = { unit, description };
  const name = openTelemetryName(definition);
  return type === 'gauge'
    ? meter.createObservableGauge(name, options)
    : meter.createObservableCounter(name, options);
}
