// Spans of calls and maps at the caller, until they settle: a failure before a worker has the task, or with
// its worker, is in no other span. Spans of the workers (task-traces.ts) are its children, one for each try
// that its worker survived. Calls outside of a trace get none.

import type { Tracer } from '@opentelemetry/api';
import type { AnyFunction } from '../../context/index.js';
import type { CallTrace } from '../../pool/index.js';
import { Activity } from './activity.js';
import type { Api } from './api.js';

export class CallTraces implements CallTrace {
  readonly #api: Api;
  readonly #tracer: () => Tracer;

  constructor(api: Api, tracer: () => Tracer) {
    this.#api = api;
    this.#tracer = tracer;
  }

  around<P extends Promise<unknown>>(what: 'call' | 'map', fn: AnyFunction, call: () => P): P {
    const { context, trace, SpanKind } = this.#api;
    const parent = context.active();
    if (trace.getSpanContext(parent) === undefined) return call();
    const called = (typeof fn === 'function' && fn.name) || 'anonymous';
    const span = this.#tracer().startSpan(
      `${what} ${called}`,
      { kind: SpanKind.CLIENT, attributes: { 'code.function.name': called } },
      parent,
    );
    const activity = new Activity(this.#api, span, parent);
    const promise = activity.inside(call);
    promise.then(
      () => activity.end(),
      (error: unknown) => activity.end({ error }),
    );
    return promise;
  }
}
