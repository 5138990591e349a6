// Requests of a bus that wait for replies, with their time limits. Not here: sending and replying.

import { CodedError } from '../../errors.js';
import {
  abortError,
  abortSignal,
  clearTimeout,
  integer,
  startAnswerTimer,
  unwatchAbort,
  watchAbort,
} from '../../lib/index.js';
import { busClosed, noRequester, replyIntercepted } from '../errors.js';
import type { Filters } from '../filters/filters.js';
import {
  type Asked,
  type Asker,
  BusMessage,
  type Outcome,
  type ReplyRequestOptions,
} from './message.js';
import type { BusState } from './state.js';

const defaultTimeoutMs = 30_000;
const maxTimeoutMs = 2 ** 31 - 1;

/** Throws `OPTION_INVALID`. */
export function checkTimeout(timeoutMs: number): void {
  integer('timeoutMs', timeoutMs, 1, maxTimeoutMs);
}

export class Requests implements Asker {
  readonly filters: Filters;
  readonly #state: BusState;
  readonly #waiting = new Set<Request>();

  constructor(filters: Filters, state: BusState) {
    this.filters = filters;
    this.#state = state;
  }

  /**
   * Begins to wait for a reply of `address`. Throws `BUS_CLOSED`, `OPTION_INVALID`, `ABORTED`; the reply
   * rejects with the error of the outcome, `BUS_TIMEOUT`, `ABORTED` or `BUS_CODEC_FAILED`.
   */
  open(address: string, { timeoutMs = defaultTimeoutMs, signal }: ReplyRequestOptions): Request {
    if (this.#state.isClosed) throw busClosed();
    checkTimeout(timeoutMs);
    abortSignal(signal);
    if (signal?.aborted) throw abortError(signal);
    const request = new Request(address, { asker: this, all: this.#waiting, timeoutMs, signal });
    this.#waiting.add(request);
    return request;
  }

  /** Rejects all waiting requests with `error`. */
  rejectAll(error: CodedError): void {
    for (const request of this.#waiting) request.giveUp(error);
  }
}

interface RequestParts {
  readonly asker: Requests;
  /** All requests that wait, this one among them. */
  readonly all: Set<Request>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

class Request implements Asked {
  readonly reply: Promise<BusMessage<never>>;
  readonly #address: string;
  readonly #parts: RequestParts;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort: (() => void) | undefined;
  #resolve: (message: BusMessage<never>) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #isOver = false;
  #whenGivenUp: (() => void) | undefined;

  constructor(address: string, parts: RequestParts) {
    this.#address = address;
    this.#parts = parts;
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { timeoutMs, signal } = parts;
    this.#timer = startAnswerTimer(timeoutMs, () => this.#expire());
    if (signal !== undefined) {
      this.#onAbort = () => this.giveUp(abortError(signal));
      watchAbort(signal, this.#onAbort);
    }
  }

  settle(outcome: Outcome): void {
    if (this.#isOver) {
      const error = noRequester(this.#address);
      if (outcome.isDone) outcome.waiter?.settle({ isDone: false, error });
    } else if (outcome.isDone) this.#succeed(outcome);
    else this.fail(outcome.error);
  }

  #succeed({ body, headers, waiter }: Extract<Outcome, { isDone: true }>): void {
    const { asker } = this.#parts;
    const reply = { address: this.#address, body, headers, waiter, isPublished: false };
    try {
      const passed = asker.filters.receiveReply(reply);
      if (passed === undefined) throw replyIntercepted(this.#address);
      const message = new BusMessage<never>(passed, asker);
      this.#end();
      this.#resolve(message);
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    this.#end();
    this.#reject(error);
  }

  /** One transport at a time has the request. It may get it late: the request waited in this loop before. */
  whenGivenUp(callback: () => void): void {
    if (this.#isOver) callback();
    else this.#whenGivenUp = callback;
  }

  #expire(): void {
    if (this.#isOver) return;
    const { timeoutMs } = this.#parts;
    const text = `no answer from ${this.#address} within ${timeoutMs} ms`;
    const wayOut = 'raise timeoutMs, or make its consumer faster';
    this.giveUp(new CodedError('BUS_TIMEOUT', `${text}: ${wayOut}`));
  }

  giveUp(error: CodedError): void {
    this.fail(error);
    this.#whenGivenUp?.();
  }

  #end(): void {
    this.#isOver = true;
    const { all, signal } = this.#parts;
    all.delete(this);
    clearTimeout(this.#timer);
    if (signal !== undefined && this.#onAbort !== undefined) unwatchAbort(signal, this.#onAbort);
  }
}
