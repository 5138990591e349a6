// Exports the table of metrics as observable instruments of OpenTelemetry, read when the SDK collects.

import { isMainThread } from 'node:worker_threads';
import type { BatchObservableCallback, Meter, MetricOptions, Observable } from '@opentelemetry/api';
import { isServedProcess } from '../../serve/index.js';
import { isInsideWorker } from '../../worker/index.js';
import { metricDefinitions, openTelemetryName } from '../metrics/definitions.js';
import { readProgram } from '../metrics/reading.js';
import type { MetricDefinition } from '../metrics/scopes.js';

/** Adds all instruments; returns the function that removes them. */
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
 * True: this thread reports the metrics of the whole program. Only one thread may, or all would be reported
 * many times. Checked at collection: when this module loads, the role of the process may not be set yet.
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
