// Errors of the bus that several of its files throw.

import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';
import { isInsideWorker } from '../worker/index.js';

export function busClosed(): CodedError {
  return new CodedError('BUS_CLOSED', 'the bus is closed');
}

export function noHandlers(address: string): CodedError {
  const why = isInsideWorker()
    ? `${address} has no consumers in a worker, which is on no bus: call it where run() is called, and pass the reply`
    : `${address} has no consumers: register one before sending to it`;
  return new CodedError('BUS_NO_HANDLERS', why);
}

/** No requester waits for the reply. */
export function noRequester(address?: string): CodedError {
  const what = address === undefined ? 'this message' : `this message to ${address}`;
  return new CodedError('BUS_NO_HANDLERS', `no requester waits for a reply to ${what}`);
}

export function intercepted(address: string, what = 'message to'): CodedError {
  const message = `an interceptor has stopped the ${what} ${address}`;
  return new CodedError('BUS_INTERCEPTED', message);
}

/** An interceptor of either side has stopped the reply to a request. */
export function replyIntercepted(address: string): CodedError {
  return intercepted(address, 'reply of');
}

export function consumerLost(): CodedError {
  const message = 'the loop whose consumer had the request is gone: send it again';
  return new CodedError('BUS_CONSUMER_LOST', message);
}

export function handlerError(address: string, cause: unknown): CodedError {
  const text = `the consumer of ${address} threw: ${messageOf(cause)}`;
  return new CodedError('BUS_HANDLER_ERROR', text, { cause });
}

/** The error that a body which cannot travel is refused with. */
export function asCoded(address: string, cause: unknown): CodedError {
  if (cause instanceof CodedError) return cause;
  const text = `a message to ${address} cannot travel: ${messageOf(cause)}`;
  return new CodedError('TRANSFER_UNSUPPORTED', text, { cause });
}
