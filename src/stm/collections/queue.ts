// A queue of two ends: a chain of variables, each with an item and the next one; the last is empty. Whoever puts
// changes the back and whoever takes the front, so that both conflict only where it is empty or seems full.

import { integer, ownOptions } from '../../lib/index.js';
import { retry } from '../atomically.js';
import type { Attempt } from '../attempt.js';
import { Collection, endIn, type Stand } from '../collection.js';
import { KIND_QUEUE } from '../kinds.js';
import { asStand, freeIn, partOf, type TVar, tvar, typed } from '../tvar.js';
import { Handles, inTransaction } from './operation.js';

/** Items in the order in which they were put. */
export interface TQueue<T> {
  /** Adds an item; `retry` where the queue is full. */
  put(item: T): void;
  /** Removes the oldest item; `retry` where there is none. */
  take(): T;
  /** The oldest item; `undefined`: there is none. */
  peek(): T | undefined;
  /** A transaction that asks conflicts with each that puts or takes. */
  readonly size: number;
}

export interface QueueOptions {
  /** Most items that it holds. Default: no limit. */
  readonly capacity?: number;
}

/** The chain from a variable on; `undefined`: it is the empty one at its end. */
type Link<T> = { readonly item: T; readonly next: TVar<Link<T>> } | undefined;

interface Ends<T> {
  readonly front: TVar<{ readonly link: TVar<Link<T>>; readonly taken: number }>;
  /** `seen`: items that had been taken when it seemed full last. */
  readonly back: TVar<{
    readonly link: TVar<Link<T>>;
    readonly put: number;
    readonly seen: number;
  }>;
  /** `null`: no limit. */
  readonly capacity: number | null;
}

class SharedQueue<T> extends Collection implements TQueue<T> {
  readonly #ends: TVar<Ends<T>>;

  constructor(stand: Stand) {
    super(stand);
    this.#ends = typed(stand.first);
  }

  static of(this: void, first: TVar<unknown>): SharedQueue<unknown> {
    return queues.of(first);
  }

  put(item: T): void {
    inTransaction(() => {
      const { back, front, capacity } = this.#ends.get();
      const { link, put, seen } = back.get();
      const isFull = capacity !== null && put - seen >= capacity;
      const taken = isFull ? front.get().taken : seen;
      if (isFull && put - taken >= capacity) retry();
      const next = partOf<Link<T>>(this.#ends, undefined);
      link.set({ item, next });
      back.set({ link: next, put: put + 1, seen: taken });
    });
  }

  take(): T {
    return inTransaction((attempt) => {
      const { front } = this.#ends.get();
      const { link, taken } = front.get();
      const found = link.get();
      if (found === undefined) retry();
      front.set({ link: found.next, taken: taken + 1 });
      freeIn(attempt, link);
      return found.item;
    });
  }

  peek(): T | undefined {
    return inTransaction(() => this.#ends.get().front.get().link.get()?.item);
  }

  get size(): number {
    return inTransaction(() => {
      const { front, back } = this.#ends.get();
      return back.get().put - front.get().taken;
    });
  }

  override [endIn](attempt: Attempt): void {
    const { front, back } = this.#ends.get();
    let link: TVar<Link<T>> | undefined = front.get().link;
    while (link !== undefined) {
      const next: TVar<Link<T>> | undefined = link.get()?.next;
      freeIn(attempt, link);
      link = next;
    }
    for (const each of [front, back, this.#ends]) freeIn(attempt, each);
  }
}

const queues = new Handles(KIND_QUEUE, (stand) => new SharedQueue<unknown>(stand));

/**
 * Makes a queue. Throws `OPTION_INVALID`, `SHARED_MEMORY_FULL`, `STM_CROWDED`, `NATIVE_MISSING`, `NATIVE_REFUSED`.
 */
export function tqueue<T>(options: QueueOptions = {}): TQueue<T> {
  const { capacity } = ownOptions('the options of tqueue()', options, new Set(['capacity']));
  const limit =
    capacity === undefined ? null : integer('capacity', capacity, 1, Number.MAX_SAFE_INTEGER);
  return typed(
    SharedQueue.of(
      inTransaction(() => {
        const ends = tvar<Ends<unknown> | undefined>(undefined);
        const link = partOf<Link<unknown>>(ends, undefined);
        const front = partOf(ends, { link, taken: 0 });
        const back = partOf(ends, { link, put: 0, seen: 0 });
        ends.set({ front, back, capacity: limit });
        return asStand(ends);
      }),
    ),
  );
}
