// The caller's half of a task that streams: an async iterator over the items of a generator that runs in a
// worker. The worker sends at most `streamLeadItems` ahead of the reader; reading grants more. Ending the
// loop early ends the generator in the worker, and waits for it. The worker's half is
// worker/inside/stream-sender.ts.

import { type CallSite, joinStacks } from '../../context/index.js';
import { CodedError, hasCode } from '../../errors.js';
import { clearTimeout, type Deferred, defer, inWords, startAnswerTimer } from '../../lib/index.js';
import { streamLeadItems } from '../../worker/index.js';

/**
 * Items of a generator that runs in a worker. It runs ahead of its reader, so the reader cannot give it
 * values or errors.
 */
export interface TaskStream<T> extends AsyncIterable<T> {
  /** Resolves with the next item. Rejects with what the generator threw, or as the call would. */
  next(): Promise<IteratorResult<T, unknown>>;
  /**
   * Ends the generator, whose `finally` blocks run in the worker. Resolves when they have, but after the
   * `graceMs` of the pool at the latest. Rejects with what they throw. Items that they yield are dropped.
   */
  return(value?: unknown): Promise<IteratorResult<T, unknown>>;
  /** Ends it as `return`, and then rejects with `error`, which the generator does not catch. */
  throw(error?: unknown): Promise<IteratorResult<T, unknown>>;
  [Symbol.asyncIterator](): TaskStream<T>;
}

/** Makes the error for a value given to `next`, which only the first `next` of a generator ignores. */
export function unwantedValue(value: unknown): CodedError {
  return new CodedError(
    'OPTION_INVALID',
    `next() of a stream takes no value, not ${inWords(value)}: the generator ` +
      'runs ahead of its reader; give each value to a call of its own, as an argument',
  );
}

/** Grants are sent for this many items at once: a frame for each would double the traffic. */
const grantItems = streamLeadItems / 2;

/** Error codes with which a generator failed to end. */
const endCodes = ['WORKER_EXITED', 'TASK_TIMED_OUT'] as const;

interface StreamEnd {
  readonly error: unknown;
  readonly value: unknown;
  readonly isError: boolean;
  /** Label of the worker in which the error was thrown. */
  readonly workerLabel?: string | undefined;
}

const noMore: StreamEnd = Object.freeze({ error: undefined, value: undefined, isError: false });

export class StreamReader implements TaskStream<unknown> {
  /** Place where the caller awaited this stream. */
  site: CallSite | undefined;
  readonly #grant: (items: number) => void;
  readonly #graceMs: number;
  readonly #items: unknown[] = [];
  readonly #readers: {
    resolve: (step: IteratorResult<unknown>) => void;
    reject: (error: unknown) => void;
  }[] = [];
  #readSinceGrant = 0;
  #hasBegun = false;
  #end: StreamEnd | undefined;
  /** Set once a reader has left: settles with the end of the generator. */
  #left: Deferred<void> | undefined;

  /** `grant(0)` stops the worker; `graceMs` is the maximum wait of a reader that leaves. */
  constructor(grant: (items: number) => void, graceMs: number) {
    this.#grant = grant;
    this.#graceMs = graceMs;
  }

  /** True: the reader has left, and items are dropped. */
  get hasLeft(): boolean {
    return this.#left !== undefined;
  }

  /** For the pool: an item came. */
  push(item: unknown): void {
    const reader = this.#readers.shift();
    if (reader === undefined) {
      if (this.#end === undefined) this.#items.push(item);
      return;
    }
    reader.resolve({ done: false, value: item });
    this.#countRead();
  }

  /** For the pool: the generator returned. */
  finish(value: unknown): void {
    this.#settle({ error: undefined, value, isError: false });
  }

  /**
   * For the pool: the generator threw, its worker ended (`workerLabel`), or the pool gave it up. `isOfEnd`:
   * it threw while it was ended for a reader that has left.
   */
  fail(error: unknown, workerLabel: string | undefined, isOfEnd: boolean): void {
    const end = { error, value: undefined, isError: true, workerLabel };
    // Without a worker, a generator would not have run ahead of a reader that has left, nor thrown there.
    if (this.#left !== undefined && (isOfEnd || endCodes.some((code) => hasCode(error, code)))) {
      this.#left.reject(this.#joined(end));
    }
    this.#settle(end);
  }

  #settle(end: StreamEnd): void {
    this.#left?.resolve();
    if (this.#end !== undefined) return;
    this.#end = end;
    for (const reader of this.#readers.splice(0))
      this.#takeEnd().then(reader.resolve, reader.reject);
  }

  /**
   * Ends the stream for one reader. An error is delivered once, as by a generator; after it the stream is
   * over. Stacks are joined here: the error may have come before it was known where the stream is awaited.
   */
  #takeEnd(): Promise<IteratorResult<unknown>> {
    const end = this.#end;
    this.#end = noMore;
    if (end?.isError === true) return Promise.reject(this.#joined(end));
    return Promise.resolve({ done: true, value: end?.value });
  }

  #joined({ error, workerLabel }: StreamEnd): unknown {
    if (workerLabel !== undefined) joinStacks(error, this.site, workerLabel);
    return error;
  }

  #countRead(): void {
    this.#readSinceGrant += 1;
    if (this.#readSinceGrant < grantItems || this.#end !== undefined) return;
    this.#grant(this.#readSinceGrant);
    this.#readSinceGrant = 0;
  }

  /** `value`: refused, for callers without types. */
  next(value?: unknown): Promise<IteratorResult<unknown>> {
    if (value !== undefined && this.#hasBegun && !this.#isOver) {
      return this.throw(unwantedValue(value));
    }
    this.#hasBegun = true;
    if (this.#items.length > 0) {
      const item = this.#items.shift();
      this.#countRead();
      return Promise.resolve({ done: false, value: item });
    }
    if (this.#end !== undefined) return this.#takeEnd();
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject });
    });
  }

  async return(value?: unknown): Promise<IteratorResult<unknown>> {
    const isOver = this.#end !== undefined;
    this.#items.length = 0;
    if (!isOver) this.#settle(noMore); // pending reads are answered
    this.#end = noMore;
    if (!isOver) await this.#leave();
    else await this.#left?.promise.catch(() => {}); // the first reader that has left gets the rejection
    return { done: true, value };
  }

  async #leave(): Promise<void> {
    const left = defer<void>();
    this.#left = left;
    this.#grant(0);
    const timer = startAnswerTimer(this.#graceMs, left.resolve);
    try {
      await left.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async throw(error?: unknown): Promise<IteratorResult<unknown>> {
    await this.return();
    throw error;
  }

  get #isOver(): boolean {
    return this.#end !== undefined && !this.#end.isError && this.#items.length === 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
