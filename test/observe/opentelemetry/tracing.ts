// Starts OpenTelemetry as a program does, with spans that stay in memory: loaded by tests, and by their
// workers with --import.

import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { instrument } from '../../../src/observe/opentelemetry/opentelemetry.js';

const exporter = new InMemorySpanExporter();
const spanProcessors = [new SimpleSpanProcessor(exporter)];
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const propagators = [new W3CTraceContextPropagator(), new W3CBaggagePropagator()]; // as the SDK for Node has them
propagation.setGlobalPropagator(new CompositePropagator({ propagators }));
instrument();

/** The part of a span that tests check; it can travel. */
export interface SpanFacts {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly pid: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly error: string | undefined;
  readonly exceptions: number;
}

function factsOf(span: ReadableSpan): SpanFacts {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parentId: span.parentSpanContext?.spanId,
    pid: process.pid,
    attributes: { ...span.attributes },
    error: span.status.message,
    exceptions: span.events.filter(({ name }) => name === 'exception').length,
  };
}

/** Returns the spans that have ended in this process since the last call. */
export function takeSpans(): SpanFacts[] {
  const spans = exporter.getFinishedSpans().map(factsOf);
  exporter.reset();
  return spans;
}

/** Runs `work` in a span of the program, and answers with its result and that span's numbers. */
export async function inSpan<R>(
  name: string,
  work: () => R,
): Promise<{ result: Awaited<R>; traceId: string; spanId: string }> {
  return await trace.getTracer('program').startActiveSpan(name, async (span) => {
    try {
      return { result: await work(), ...span.spanContext() };
    } finally {
      span.end();
    }
  });
}

/** Spins for a while; returns its process and span. */
export function spinInSpan(ms: number): { pid: number; traceId?: string; spanId?: string } {
  const end = performance.now() + ms;
  while (performance.now() < end);
  return { pid: process.pid, ...trace.getActiveSpan()?.spanContext() };
}
