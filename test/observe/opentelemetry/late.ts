// An SDK that exports spans at a flush, or a minute later, to a file that the program names.

import { appendFileSync } from 'node:fs';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import { instrument } from '../../../src/observe/opentelemetry/opentelemetry.js';

const exporter: SpanExporter = {
  export(spans, onDone) {
    const names = spans.map(({ name }) => `${name}\n`);
    appendFileSync(process.env['SPANS_FILE'] ?? '', names.join(''));
    onDone({ code: 0 });
  },
  shutdown: async () => {},
};
const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis: 60_000 });
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
instrument();
