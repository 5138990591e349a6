// Sources of the items of a map, cut into pieces as workers need them: an array, a typed array, an
// iterable, an async iterable, or all pairs of an array. A piece keeps its position, so that results can be
// put in order, and the part that a worker did not reach can be sent again.
// Not here: how large a piece should be (chunk.ts), sending it (map.ts).

import { clearImmediate, nowMs, setImmediate } from '../lib/index.js';
import type { Cells } from '../worker/index.js';
import { isTypedArray } from './typed.js';

/** Items that travel together. */
export interface Piece {
  /** Number of items taken before it. */
  readonly position: number;
  /** Index of its first item in the input; for pairs the number of the first pair. */
  readonly start: number;
  readonly count: number;
  /** Item `at` of the piece is `items[offset + at]`; for pairs the workers have the items. */
  readonly items: Cells;
  readonly offset: number;
  /** Set when the indices are not consecutive. */
  readonly indices: readonly number[] | undefined;
}

export interface Source {
  /** Number of all items, if it can be counted. */
  readonly totalItems: number | undefined;
  /** Number of items not taken yet. */
  readonly remainingItems: number | undefined;
  /** True: there is nothing more to take. */
  readonly isDone: boolean;
  /** Returns the next items, at most `maxItems`; `undefined`: none now. Throws what the input throws. */
  take(maxItems: number): Piece | undefined;
  /** Closes the input. Never throws. */
  close(): void;
}

/** Returns items `[from, to)` of a piece. */
export function partOf(piece: Piece, from: number, to: number): Piece {
  return {
    position: piece.position + from,
    start: piece.start + from,
    count: to - from,
    items: piece.items,
    offset: piece.offset + from,
    indices: piece.indices?.slice(from, to),
  };
}

/** Returns just the items of a piece: a copy of a part of an array, a view of a part of a typed array. */
export function itemsOf({ items, offset, count }: Piece): Cells {
  if (offset === 0 && items.length === count) return items;
  if (ArrayBuffer.isView(items) && isTypedArray(items))
    return items.subarray(offset, offset + count);
  return Array.prototype.slice.call(items, offset, offset + count);
}

/** Returns the index of item `at`. */
export function indexAt({ start, indices }: Piece, at: number): number {
  return indices?.[at] ?? start + at;
}

/** An array. Like `map`, it skips holes. */
export class ArraySource implements Source {
  /** Excludes the holes that were met. */
  totalItems: number;
  readonly #items: readonly unknown[];
  readonly #length: number;
  #next = 0;
  #position = 0;

  constructor(items: readonly unknown[]) {
    this.#items = items;
    this.#length = items.length;
    this.totalItems = items.length;
  }

  get remainingItems(): number {
    return this.#length - this.#next;
  }

  get isDone(): boolean {
    return this.#next >= this.#length;
  }

  take(maxItems: number): Piece | undefined {
    const items: unknown[] = [];
    let indices: number[] | undefined;
    let start = this.#next;
    let index = start;
    for (; items.length < maxItems && index < this.#length; index += 1) {
      const item = this.#items[index];
      if (item === undefined && !(index in this.#items)) {
        this.totalItems -= 1;
        continue;
      }
      if (items.length === 0) start = index;
      else if (index > start + items.length) indices ??= items.map((_, at) => start + at);
      items.push(item);
      indices?.push(index);
    }
    this.#next = index;
    const count = items.length;
    if (count === 0) return undefined;
    const position = this.#position;
    this.#position += count;
    return { position, start, count, items, offset: 0, indices };
  }

  close(): void {
    this.#next = this.#length;
  }
}

/** Source of countable places: of a typed array, or pairs. */
export class RangeSource implements Source {
  readonly totalItems: number;
  readonly #items: Cells;
  #next = 0;

  constructor(items: Cells, count: number) {
    this.#items = items;
    this.totalItems = count;
  }

  get remainingItems(): number {
    return this.totalItems - this.#next;
  }

  get isDone(): boolean {
    return this.#next >= this.totalItems;
  }

  take(maxItems: number): Piece | undefined {
    const start = this.#next;
    const count = Math.min(maxItems, this.totalItems - start);
    if (count <= 0) return undefined;
    this.#next += count;
    return { position: start, start, count, items: this.#items, offset: start, indices: undefined };
  }

  close(): void {
    this.#next = this.totalItems;
  }
}

/** Source with an iterator, which is read as far as pieces are needed. */
export class IteratorSource implements Source {
  readonly totalItems = undefined;
  readonly remainingItems = undefined;
  readonly #iterator: Iterator<unknown>;
  readonly #maxReadMs: number;
  #taken = 0;
  #isReading = false;
  #isExhausted = false;
  #isUnwanted = false;
  #failure: { readonly error: unknown } | undefined;

  /** Reads at most about `maxReadMs` at a time: the event loop waits. */
  constructor(items: Iterable<unknown>, maxReadMs: number) {
    this.#iterator = items[Symbol.iterator]();
    this.#maxReadMs = maxReadMs;
  }

  get isDone(): boolean {
    return this.#isExhausted && this.#failure === undefined;
  }

  /** An error of the iterator comes after the items before it. */
  take(maxItems: number): Piece | undefined {
    const items = this.#read(maxItems);
    if (items.length === 0 && this.#failure !== undefined) {
      const { error } = this.#failure;
      this.#failure = undefined;
      throw error;
    }
    const position = this.#taken;
    this.#taken += items.length;
    return pieceOf(items, position);
  }

  #read(maxItems: number): unknown[] {
    const items: unknown[] = [];
    const startedMs = nowMs();
    let nextCheck = 1;
    this.#isReading = true;
    try {
      while (items.length < maxItems && !this.#isExhausted) {
        const step = this.#iterator.next();
        if (step.done === true) this.#isExhausted = true;
        else items.push(step.value);
        if (items.length < nextCheck) continue;
        if (nowMs() - startedMs >= this.#maxReadMs) break;
        nextCheck *= 2; // reading the clock costs as much as some items
      }
    } catch (error) {
      this.#isExhausted = true; // an iterator that threw is over, and is not closed
      this.#failure = { error };
    }
    this.#isReading = false;
    if (this.#isUnwanted) this.#closeIterator();
    return items;
  }

  close(): void {
    if (this.#isExhausted) return;
    this.#isExhausted = true;
    if (this.#isReading)
      this.#isUnwanted = true; // an input that ends its own map is at work now
    else this.#closeIterator();
  }

  #closeIterator(): void {
    try {
      this.#iterator.return?.();
    } catch {
      // The map has its outcome already.
    }
  }
}

/** The map, for its async source. */
export interface AsyncReader {
  /** True: another item may be read; `buffered` items wait in the source. */
  mayRead(buffered: number): boolean;
  /** Called when there may be something to take. */
  onItems(): void;
  /** Called when the input threw. */
  onError(error: unknown): void;
}

/**
 * Source with an async iterator, read ahead as far as the map allows. A piece is sent when it is full, or
 * when the event loop has turned without filling it: then the input itself is slow.
 */
export class AsyncSource implements Source {
  readonly totalItems = undefined;
  readonly remainingItems = undefined;
  readonly #iterator: AsyncIterator<unknown>;
  readonly #reader: AsyncReader;
  readonly #buffer: unknown[] = [];
  #taken = 0;
  #isReading = false;
  #isExhausted = false;
  #isDue = false;
  #flush: NodeJS.Immediate | undefined;

  constructor(items: AsyncIterable<unknown>, reader: AsyncReader) {
    this.#iterator = items[Symbol.asyncIterator]();
    this.#reader = reader;
  }

  get isDone(): boolean {
    return this.#isExhausted && this.#buffer.length === 0;
  }

  take(maxItems: number): Piece | undefined {
    if (!this.#isReading) void this.#read();
    const isFull = this.#buffer.length >= maxItems || this.#isExhausted || this.#isDue;
    if (this.#buffer.length === 0 || !isFull) {
      if (this.#buffer.length > 0) this.#flushSoon();
      return undefined;
    }
    this.#isDue = false;
    const taken = this.#buffer.splice(0, maxItems);
    const position = this.#taken;
    this.#taken += taken.length;
    if (!this.#isReading) void this.#read();
    return pieceOf(taken, position);
  }

  #flushSoon(): void {
    this.#flush ??= setImmediate(() => {
      this.#flush = undefined;
      this.#isDue = true;
      this.#reader.onItems();
    });
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      while (!this.#isExhausted && this.#reader.mayRead(this.#buffer.length)) {
        const step = await this.#iterator.next();
        if (this.#isExhausted) break; // closed meanwhile
        if (step.done === true) this.#isExhausted = true;
        else this.#buffer.push(step.value);
        this.#reader.onItems();
      }
    } catch (error) {
      const isWanted = !this.#isExhausted;
      this.#isExhausted = true;
      if (isWanted) this.#reader.onError(error);
    } finally {
      this.#isReading = false;
    }
  }

  close(): void {
    clearImmediate(this.#flush);
    this.#buffer.length = 0;
    if (this.#isExhausted) return;
    this.#isExhausted = true;
    // Not awaited: an input that itself waits ends only after that.
    void closeLater(this.#iterator);
  }
}

async function closeLater(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // The map has its outcome already.
  }
}

function pieceOf(items: unknown[], position: number): Piece | undefined {
  if (items.length === 0) return undefined;
  const count = items.length;
  return { position, start: position, count, items, offset: 0, indices: undefined };
}
