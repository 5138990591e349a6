// The package's `manycore/opentelemetry`: metrics and traces for an SDK of OpenTelemetry. Guide:
// docs/guide/opentelemetry.md.

import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import { traceMessages } from '../../bus/index.js';
import { propagate } from '../../context/index.js';
import { ownOptions, packageVersion } from '../../internal/index.js';
import { traceCalls } from '../../pool/index.js';
import { beforeLeaving } from '../../worker/index.js';
import { type Api, openTelemetryApi } from './api.js';
import { CallTraces } from './call-traces.js';
import { addInstruments } from './instruments.js';
import { MessageTraces } from './message-traces.js';
import { TaskTraces } from './task-traces.js';

export interface InstrumentOptions {
  /** Default: the global one. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Default: the global one. */
  readonly tracerProvider?: TracerProvider | undefined;
}

const scope = 'manycore';
const names = new Set(['meterProvider', 'tracerProvider']);
let removeInstruments: (() => void) | undefined;

/**
 * From now on tasks and messages that are sent within a trace run in spans of their own, and all metrics of
 * the program are told, by its first process alone. Call it after the SDK was started, in a module that
 * workers load too (`node --import`). A second call takes the place of the first. Throws
 * `OPENTELEMETRY_MISSING`, `OPTION_INVALID`.
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

/** The SDK's: the API has one in between. */
function globalTracerProvider({ trace }: Api): object {
  const provider = trace.getTracerProvider();
  return 'getDelegate' in provider && typeof provider.getDelegate === 'function'
    ? provider.getDelegate()
    : provider;
}

/** A worker leaves soon after its last task, and SDKs send spans later. */
async function flush(provider: object): Promise<void> {
  if ('forceFlush' in provider && typeof provider.forceFlush === 'function') {
    await provider.forceFlush();
  }
}
