// The worker's half of a task that streams: a generator's items are sent one by one, and never more than
// the reader has granted (credit), so that a fast generator beside a slow reader stays small. The parent's
// half is pool/tasks/stream.ts.

import { ownValue } from '../../lib/index.js';
import type { Link } from '../link.js';
import { frame, streamLeadItems } from '../protocol.js';

export type AnyGenerator = Generator<unknown> | AsyncGenerator<unknown>;

/** Returns the generator that a task returned, or `undefined` for every other value, iterables included. */
export function generatorOf(value: unknown): AnyGenerator | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const tag = Object.prototype.toString.call(value);
  const isTagged = tag === '[object Generator]' || tag === '[object AsyncGenerator]';
  return (isTagged || isLowered(value)) && hasNext(value) ? value : undefined;
}

/** True: an object as compilers make of a generator for old targets, with all methods as its own. */
function isLowered(value: object): boolean {
  if (!['next', 'throw', 'return'].every((name) => Object.hasOwn(value, name))) return false;
  return [Symbol.iterator, Symbol.asyncIterator].some((key) => {
    const own: unknown = ownValue(value, key);
    return typeof own === 'function' && Reflect.apply(own, value, []) === value;
  });
}

function hasNext(value: object): value is AnyGenerator {
  return 'next' in value && typeof value.next === 'function';
}

/** Runs its `finally` blocks; rejects with what they throw. */
async function endGenerator(generator: AnyGenerator): Promise<void> {
  await generator.return(undefined);
}

/** Error that a generator threw while it was ended, because its reader has left. */
export class EndFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

export class StreamSender {
  readonly #link: Link;
  readonly #slot: number;
  readonly #iterator: AnyGenerator;
  #credit = streamLeadItems;
  #wake: (() => void) | undefined;
  #isEnded = false;

  constructor(link: Link, slot: number, iterator: AnyGenerator) {
    this.#link = link;
    this.#slot = slot;
    this.#iterator = iterator;
  }

  /** Grants `items` more to the reader; 0: no more, ever. */
  grant(items: number): void {
    if (items === 0) this.#isEnded = true;
    this.#credit += items;
    this.#wake?.();
    this.#wake = undefined;
  }

  /**
   * Sends until the generator or the reader ends; resolves with the generator's return value. Rejects with
   * what the generator throws, as an `EndFailure` once the reader has left.
   */
  async run(): Promise<unknown> {
    this.#link.post(frame.stream, this.#slot, 0, undefined);
    while (true) {
      while (this.#credit <= 0 && !this.#isEnded) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      if (this.#isEnded) {
        await endGenerator(this.#iterator).catch((error: unknown) => {
          throw new EndFailure(error);
        });
        return undefined;
      }
      const step = await this.#iterator.next();
      if (step.done === true) return step.value;
      if (this.#isEnded) continue; // without a reader
      this.#credit -= 1;
      try {
        this.#link.post(frame.item, this.#slot, 0, step.value, 'the yielded item');
      } catch (error) {
        // An item that cannot travel: the generator ends, as in a loop that throws, and this error is sent.
        await endGenerator(this.#iterator).catch(() => {});
        throw error;
      }
    }
  }
}
