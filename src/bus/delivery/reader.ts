// Iteration over a consumer without a handler: `next()` asks for one message, and the time from there to the
// following `next()` is a turn, which counts as a running handler. Not here: the messages that wait
// (consumer.ts).

import { type Deferred, defer } from '../../lib/index.js';
import type { BusMessage } from './message.js';

type Result = IteratorResult<BusMessage<never>, undefined>;

export interface ReaderParts {
  /** Called when one message more is wanted. */
  readonly onWanted: () => void;
  /** Closes the consumer. */
  readonly close: () => void;
}

export class Reader implements AsyncIterableIterator<BusMessage<never>, undefined> {
  readonly #parts: ReaderParts;
  /** Calls of `next` that wait, in their order. */
  readonly #calls: Deferred<Result>[] = [];
  /** Turns that have not ended. */
  #turns: Deferred<void>[] = [];
  #isEnded = false;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
  }

  /** The number of messages that it waits for. */
  get wanted(): number {
    return this.#calls.length;
  }

  /** Hands out a message; resolves when its turn has ended. One must be wanted. */
  readonly handOut = (message: BusMessage<never>): Promise<void> => {
    const turn = defer<void>();
    this.#turns.push(turn);
    this.#calls.shift()?.resolve({ done: false, value: message });
    return turn.promise;
  };

  #endTurns(): void {
    for (const turn of this.#turns) turn.resolve();
    this.#turns = [];
  }

  /** The consumer is closed: no message follows. */
  end(): void {
    this.#isEnded = true;
    for (const call of this.#calls.splice(0)) call.resolve({ done: true, value: undefined });
  }

  async next(): Promise<Result> {
    this.#endTurns();
    if (this.#isEnded) return { done: true, value: undefined };
    const call = defer<Result>();
    this.#calls.push(call);
    this.#parts.onWanted();
    return await call.promise;
  }

  /** Closes the consumer: the loop was left. */
  async return(): Promise<Result> {
    this.#endTurns();
    this.#parts.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
