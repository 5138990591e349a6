// A hook for trace context, which travels with every message of this thread and is active while its handler
// runs. Without one it costs one check. Not here: its implementation (observe/opentelemetry).

import type { BusHeaders, OutgoingBusHeaders } from '../delivery/headers.js';
import { isReserved } from '../reserved.js';

/** A message that a handler here is about to get. */
export interface HandledMessage {
  readonly address: string;
  readonly headers: BusHeaders;
}

export interface MessageTrace {
  /** Returns the headers of a message that is sent now. */
  outbound(headers: OutgoingBusHeaders): OutgoingBusHeaders;
  /** Calls `handle`, returns what it returns and throws what it throws. */
  inbound(message: HandledMessage, handle: () => unknown): unknown;
}

/** The hook of all buses of this thread; messages to manycore's own addresses have none. */
export let messageTrace: MessageTrace | undefined;

export function traceMessages(given: MessageTrace): void {
  messageTrace = given;
}

/** Returns the headers of a message to `address` that is sent now. */
export function tracedHeaders(trace: MessageTrace, address: string, headers: OutgoingBusHeaders) {
  return isReserved(address) ? headers : trace.outbound(headers);
}

/** Calls `handle` with the trace of its message. */
export function tracedCall(trace: MessageTrace, message: HandledMessage, handle: () => unknown) {
  return isReserved(message.address) ? handle() : trace.inbound(message, handle);
}
