// Where something else travels with every message of this thread and is there while its handler runs: the
// trace of whoever sent it. A bus without it pays for a look. Not here: what it is (observe/opentelemetry).

import type { BusHeaders } from './message.js';
import { isReserved } from './reserved.js';

/** A message that a handler here is to get. */
export interface HandledMessage {
  readonly address: string;
  readonly headers: BusHeaders;
}

export interface MessageTrace {
  /** The headers of a message that is sent now. */
  outbound(headers: BusHeaders): BusHeaders;
  /** Calls `handle`, returns what it returns and throws what it throws. */
  inbound(message: HandledMessage, handle: () => unknown): unknown;
}

let trace: MessageTrace | undefined;

/** From now on, for all buses of this thread. */
export function traceMessages(given: MessageTrace): void {
  trace = given;
}

/** For messages to `address`: those of manycore itself have none. */
export function messageTrace(address: string): MessageTrace | undefined {
  return trace === undefined || isReserved(address) ? undefined : trace;
}
