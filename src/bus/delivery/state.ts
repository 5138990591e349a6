// The state that all parts of one bus share: its counters, and whether it is closed. And the two ends of a
// message that no handler gets.

import { announcements, type BusHandlerFailedMessage } from '../../lib/index.js';
import { asCoded, noHandlers } from '../errors.js';
import { type Delivery, trySettle } from './message.js';

export class BusState {
  isClosed = false;
  sent = 0;
  received = 0;
  undelivered = 0;
  dropped = 0;
  failed = 0;

  get stats() {
    const { sent, received, undelivered, dropped, failed } = this;
    return { sent, received, undelivered, dropped, failed };
  }

  /** Ends a message that has no consumer. */
  refuse({ address, waiter }: Delivery): void {
    this.undelivered += 1;
    trySettle(waiter, address, { isDone: false, error: noHandlers(address) });
  }

  /** Ends a message that failed on its way: the waiter gets the error, without one it is announced. */
  lose({ address, waiter }: Delivery, cause: unknown): void {
    const error = asCoded(address, cause);
    if (waiter !== undefined) {
      trySettle(waiter, address, { isDone: false, error });
      return;
    }
    this.dropped += 1;
    announcements.busDropped.publish({ address, why: error.message });
  }

  /** Reports the error of a handler that no requester gets: to subscribers, without any as a warning of Node. */
  handlerFailed(failure: BusHandlerFailedMessage): void {
    this.failed += 1;
    const { busHandlerFailed } = announcements;
    if (busHandlerFailed.hasSubscribers) {
      busHandlerFailed.publish(failure);
      return;
    }
    const { unit, error } = failure;
    const { message, cause } = error;
    process.emitWarning(unit === undefined ? message : `${message} (unit ${unit})`, {
      type: 'BusHandlerWarning',
      code: 'BUS_HANDLER_ERROR',
      detail: cause instanceof Error ? (cause.stack ?? '') : '',
    });
  }
}
