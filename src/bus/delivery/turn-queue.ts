// Work for the next turn of the event loop, in order. It is bounded, because none of it begins before the
// code that fills it returns. It runs outside of the context (`AsyncLocalStorage`) of that code: a handler on
// another loop could not have it.

import { AsyncLocalStorage } from 'node:async_hooks';
import { CodedError } from '../../errors.js';
import { setImmediate } from '../../lib/index.js';

/** Messages for consumers of this loop that may be sent in one turn of it. */
const maxQueuedWorks = 100_000;
/** From here on `send` returns false. */
const roomyQueuedWorks = 10_000;

/** Calls a function outside of every context of the program. */
const outside = AsyncLocalStorage.snapshot();

/** Calls `work` in the next turn of the event loop, outside of every context. */
export function inNextTurn(work: () => void): void {
  outside(setImmediate, work);
}

export class TurnQueue {
  /** The number of entries of each address, which later messages must not overtake. */
  readonly waiting: ReadonlyMap<string, number>;
  readonly #counts = new Map<string, number>();
  readonly #onEmpty: () => void;
  #works: { readonly address: string; readonly work: () => void }[] = [];

  /** `onEmpty` is called when the queue was processed. */
  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty;
    this.waiting = this.#counts;
  }

  get hasRoom(): boolean {
    return this.#works.length < roomyQueuedWorks;
  }

  /** Throws `BUS_FULL`. */
  push(address: string, work: () => void): void {
    if (this.#works.length >= maxQueuedWorks) {
      throw new CodedError(
        'BUS_FULL',
        `${maxQueuedWorks} messages were sent in one turn of the event loop: await drained() in between`,
      );
    }
    this.again(address, work);
  }

  /** As `push`, without a limit, for messages that were accepted before and must not be lost. */
  again(address: string, work: () => void): void {
    this.#works.push({ address, work });
    this.#counts.set(address, (this.#counts.get(address) ?? 0) + 1);
    if (this.#works.length === 1) outside(setImmediate, this.#workOff);
  }

  readonly #workOff = (): void => {
    const works = this.#works;
    this.#works = [];
    for (const { address, work } of works) {
      const others = (this.#counts.get(address) ?? 1) - 1;
      if (others === 0) this.#counts.delete(address);
      else this.#counts.set(address, others);
      work();
    }
    this.#onEmpty();
  };
}
