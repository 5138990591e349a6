// Spans of messages on the bus: a message that is sent within a trace carries the trace in its headers, and
// its handler runs in a child span of the sender's. Messages outside of a trace get none.

import type { Tracer } from '@opentelemetry/api';
import type { HandledMessage, MessageTrace, OutgoingBusHeaders } from '../../bus/index.js';
import { Activity } from './activity.js';
import type { Api } from './api.js';

export class MessageTraces implements MessageTrace {
  readonly #api: Api;
  readonly #tracer: () => Tracer;

  constructor(api: Api, tracer: () => Tracer) {
    this.#api = api;
    this.#tracer = tracer;
  }

  outbound(headers: OutgoingBusHeaders): OutgoingBusHeaders {
    const { context, propagation } = this.#api;
    const own: Record<string, string> = {};
    propagation.inject(context.active(), own);
    return { ...headers, ...own }; // a forwarded message has headers of an earlier sender
  }

  inbound({ address, headers }: HandledMessage, handle: () => unknown): unknown {
    const { propagation, trace, ROOT_CONTEXT, SpanKind } = this.#api;
    const parent = propagation.extract(ROOT_CONTEXT, headers);
    if (trace.getSpanContext(parent) === undefined) return handle();
    const span = this.#tracer().startSpan(
      `process ${address}`,
      {
        kind: SpanKind.CONSUMER,
        attributes: {
          'messaging.system': 'manycore',
          'messaging.operation.type': 'process',
          'messaging.destination.name': address,
        },
      },
      parent,
    );
    const activity = new Activity(this.#api, span, parent);
    return endingWith(activity, () => activity.run(handle));
  }
}

/** Ends the span with the handler, or the promise that it returns. */
function endingWith(activity: Activity, work: () => unknown): unknown {
  let isLater = false;
  try {
    const result = work();
    if (result instanceof Promise) {
      isLater = true;
      const over = (): void => activity.end();
      result.then(over, over);
    }
    return result;
  } finally {
    if (!isLater) activity.end();
  }
}
