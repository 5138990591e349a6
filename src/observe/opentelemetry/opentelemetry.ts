// The package's `manycore/opentelemetry`: metrics and traces for an SDK of OpenTelemetry. Guide:
// docs/guide/opentelemetry.md.

import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import { traceMessages } from '../../bus/index.js';
import { propagate } from '../../context/index.js';
import { ownOptions, packageVersion } from '../../lib/index.js';
import { traceCalls } from '../../pool/index.js';
import { beforeLeaving } from '../../worker/index.js';
import { type Api, openTelemetryApi } from './api.js';
import { CallTraces } from './call-traces.js';
import { addInstruments } from './instruments.js';
import { MessageTraces } from './message-traces.js';
import { TaskTraces } from './task-traces.js';

export interface InstrumentOptions {
  /** Provider of meters. Default: the global one. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Provider of tracers. Default: the global one. */
  readonly tracerProvider?: TracerProvider | undefined;
}

const scope = 'manycore';
const names = new Set(['meterProvider', 'tracerProvider']);
let removeInstruments: (() => void) | undefined;

/**
 * Starts tracing and metrics: tasks and messages that are sent within a trace get spans, and the first
 * process exports all metrics of the program. Call it after the SDK was started, in a module that workers
 * load, too (`node --import`). A second call replaces the first. Throws `OPENTELEMETRY_MISSING`,
 * `OPTION_INVALID`.
 */
export function instrument(options: InstrumentOptions = {}): void {
  const given = ownOptions('the options of instrument', options, names);
  const api = openTelemetryApi();
  const { meterProvider, tracerProvider } = given;
  const tracer = () => (tracerProvider ?? api.trace).getTracer(scope, packageVersion());
  propagate(new TaskTraces(api, tracer), 'manycore:opentelemetry');
  traceCalls(new CallTraces(api, tracer));
  traceMessages(new MessageTraces(api, tracer));
  removeInstruments?.();
  removeInstruments = addInstruments(
    (meterProvider ?? api.metrics).getMeter(scope, packageVersion()),
  );
  beforeLeaving(() => flush(tracerProvider ?? globalTracerProvider(api)));
}

/** The provider of the SDK, which the API wraps in a proxy. */
function globalTracerProvider({ trace }: Api): object {
  const provider = trace.getTracerProvider();
  return 'getDelegate' in provider && typeof provider.getDelegate === 'function'
    ? provider.getDelegate()
    : provider;
}

/** Sends pending spans: a worker exits soon after its last task, and SDKs export in batches. */
async function flush(provider: object): Promise<void> {
  if ('forceFlush' in provider && typeof provider.forceFlush === 'function') {
    await provider.forceFlush();
  }
}
