// A hook for trace context, which travels with every message of this thread and is active while its handler
// runs. Without one it costs one check. Not here: its implementation (observe/opentelemetry).

import type { BusHeaders } from '../delivery/message.js';
import { isReserved } from '../reserved.js';

/** A message that a handler here is about to get. */
export interface HandledMessage {
  readonly address: string;
  readonly headers: BusHeaders;
}

export interface MessageTrace {
  /** Returns the headers of a message that is sent now. */
  outbound(headers: BusHeaders): BusHeaders;
  /** Calls `handle`, returns what it returns and throws what it throws. */
  inbound(message: HandledMessage, handle: () => unknown): unknown;
}

let trace: MessageTrace | undefined;

/** Sets the hook for all buses of this thread. */
export function traceMessages(given: MessageTrace): void {
  trace = given;
}

/** Returns the hook for messages to `address`; manycore's own have none. */
export function messageTrace(address: string): MessageTrace | undefined {
  return trace === undefined || isReserved(address) ? undefined : trace;
}
