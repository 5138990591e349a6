// The caller's half of a task that streams: an async iterator over the items of a generator that runs
// in a host. The host sends no more than `streamLeadItems` ahead of the reader; reading grants more.
// Ending the loop early ends the generator in the host. The host's half is host/stream-sender.ts.

import { type CallSite, joinStacks } from '../context/index.js';
import { CodedError } from '../errors.js';
import { streamLeadItems } from '../host/index.js';

/**
 * The items of a generator that runs in a host. It runs ahead of its reader, so the reader cannot give it
 * values or errors.
 */
export interface TaskStream<T> extends AsyncIterable<T> {
  /** Resolves with the next item. Rejects with what the generator threw, or as the call would. */
  next(): Promise<IteratorResult<T, unknown>>;
  /** Ends the generator, whose `finally` blocks run in the host. What they yield goes nowhere. */
  return(value?: unknown): Promise<IteratorResult<T, unknown>>;
  /** The same, and rejects with `error`, which the generator does not catch. */
  throw(error?: unknown): Promise<IteratorResult<T, unknown>>;
  [Symbol.asyncIterator](): TaskStream<T>;
}

/** For a value that the first `next` of a generator does not ignore. */
export function unwantedValue(value: unknown): CodedError {
  return new CodedError(
    'OPTION_INVALID',
    `next() of a stream takes no value, not ${typeof value === 'object' ? 'an object' : String(value)}: the generator ` +
      'runs ahead of its reader; give each value to a call of its own, as an argument',
  );
}

/** Grants are sent for so many items at once: a frame for each would double the traffic. */
const grantItems = streamLeadItems / 2;

interface StreamEnd {
  readonly error: unknown;
  readonly value: unknown;
  readonly isError: boolean;
  /** Of the host in which the error was thrown. */
  readonly hostLabel?: string | undefined;
}

export class StreamReader implements TaskStream<unknown> {
  /** Where the caller awaited this stream. */
  site: CallSite | undefined;
  readonly #grant: (items: number) => void;
  readonly #items: unknown[] = [];
  readonly #readers: {
    resolve: (step: IteratorResult<unknown>) => void;
    reject: (error: unknown) => void;
  }[] = [];
  #readSinceGrant = 0;
  #hasBegun = false;
  #end: StreamEnd | undefined;

  /** `grant(0)` tells the host to stop. */
  constructor(grant: (items: number) => void) {
    this.#grant = grant;
  }

  /** The pool's side: an item came. */
  push(item: unknown): void {
    const reader = this.#readers.shift();
    if (reader === undefined) {
      if (this.#end === undefined) this.#items.push(item);
      return;
    }
    reader.resolve({ done: false, value: item });
    this.#countRead();
  }

  /** The pool's side: the generator returned. */
  finish(value: unknown): void {
    this.#settle({ error: undefined, value, isError: false });
  }

  /** The pool's side: the generator threw, or its host ended (`hostLabel`), or the pool gave it up. */
  fail(error: unknown, hostLabel?: string): void {
    this.#settle({ error, value: undefined, isError: true, hostLabel });
  }

  #settle(end: StreamEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    for (const reader of this.#readers.splice(0))
      this.#takeEnd().then(reader.resolve, reader.reject);
  }

  /**
   * The end for one reader. An error is told once, as by a generator; after it the stream is over. Stacks are
   * joined here: the error may have come before it was known where the stream is awaited.
   */
  #takeEnd(): Promise<IteratorResult<unknown>> {
    const end = this.#end;
    this.#end = { error: undefined, value: undefined, isError: false };
    if (end?.isError === true) {
      if (end.hostLabel !== undefined) joinStacks(end.error, this.site, end.hostLabel);
      return Promise.reject(end.error);
    }
    return Promise.resolve({ done: true, value: end?.value });
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

  return(value?: unknown): Promise<IteratorResult<unknown>> {
    if (this.#end === undefined) this.#grant(0);
    this.#items.length = 0;
    this.finish(undefined);
    return Promise.resolve({ done: true, value });
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
