// Requests of a bus that wait for replies, with their time limits. Not here: sending and replying.

import { CodedError } from '../../errors.js';
import { abortError, beforeDeadline, defer, integer } from '../../lib/index.js';
import { noRequester } from '../errors.js';
import type { Delivery, Outcome, ReplyRequestOptions, Waiter } from './message.js';

const defaultTimeoutMs = 30_000;
const maxTimeoutMs = 2 ** 31 - 1;

export class Requests {
  /** Functions that reject the waiting requests. */
  readonly #pending = new Set<(error: CodedError) => void>();

  /**
   * Calls `send` with a waiter; resolves with the reply that it gets, as a message. Throws `OPTION_INVALID`,
   * `ABORTED`, and what `send` throws; rejects with the error of the outcome, `BUS_TIMEOUT` or `ABORTED`.
   */
  ask(
    address: string,
    { timeoutMs = defaultTimeoutMs, signal }: ReplyRequestOptions,
    send: (waiter: Waiter) => void,
  ): Promise<Delivery> {
    integer('timeoutMs', timeoutMs, 1, maxTimeoutMs);
    if (signal?.aborted) throw abortError(signal);
    const { promise, resolve, reject } = defer<Delivery>();
    const whenOver: (() => void)[] = [];
    let isOver = false;
    const settle = (outcome: Outcome): void => {
      if (!outcome.isDone) {
        reject(outcome.error);
        return;
      }
      const { body, headers, waiter } = outcome;
      if (isOver) waiter?.settle({ isDone: false, error: noRequester(address) });
      else resolve({ address, body, headers, waiter, isPublished: false });
    };
    send({ settle, whenOver: (callback) => whenOver.push(callback) });
    this.#pending.add(reject);
    const onDeadline = (): CodedError =>
      new CodedError(
        'BUS_TIMEOUT',
        `no answer from ${address} within ${timeoutMs} ms: raise timeoutMs, or make its consumer faster`,
      );
    return beforeDeadline(promise, { deadlineMs: timeoutMs, onDeadline, signal }).finally(() => {
      isOver = true;
      this.#pending.delete(reject);
      for (const callback of whenOver) callback();
    });
  }

  /** Rejects all waiting requests with `error`. */
  rejectAll(error: CodedError): void {
    for (const reject of this.#pending) reject(error);
  }
}
