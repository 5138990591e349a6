// Blocks of the memory without the native core: lists of free ones, by size, which all threads share. Whoever calls
// has the turn. Not here: objects in them.

import { CodedError } from '../../errors.js';
import { participantWord, placeOf, threadWord } from '../../worker/index.js';
import { epochStep, generation, headerWords, limbos, word } from './layout.js';

const smallestBlock = 8;
/** Blocks of a class have twice the words of the one before. */
const classes = 13;

export class Blocks {
  readonly #words: Int32Array;

  constructor(words: Int32Array) {
    this.#words = words;
  }

  /** Takes a block for an object of `size` words, of which `kept` stay free at the end. Throws `SHARED_MEMORY_FULL`. */
  take(size: number, kept: number): number {
    const found = Math.max(0, 32 - Math.clz32((size + headerWords - 1) >> 3));
    if (found >= classes) throw full(size);
    const object =
      this.#takeFree(found) ??
      this.#carve(found, kept) ??
      this.#divide(found) ??
      this.#merge(found);
    if (object === undefined) throw full(size);
    return object;
  }

  #takeFree(of: number): number | undefined {
    const words = this.#words;
    const object = words[word.free + of] ?? 0;
    if (object === 0) return undefined;
    words[word.free + of] = words[object - headerWords] ?? 0;
    return object;
  }

  #carve(of: number, kept: number): number | undefined {
    const words = this.#words;
    const start = words[word.heapTop] ?? 0;
    const end = start + (smallestBlock << of);
    if (end + kept > words.length) return undefined;
    words[word.heapTop] = end;
    words[start + headerWords - 1] = of;
    return start + headerWords;
  }

  /**
   * Divides a larger free block, and takes a part. Variables, the smallest, get the largest one, so that they lie
   * together: they never merge.
   */
  #divide(of: number): number | undefined {
    const all = Array.from({ length: classes - 1 - of }, (_, at) => of + 1 + at);
    for (const larger of of === 0 ? all.reverse() : all) {
      const object = this.#takeFree(larger);
      if (object === undefined) continue;
      this.#divideRun(object, smallestBlock << larger, of);
      return this.#takeFree(of);
    }
    return undefined;
  }

  /**
   * Makes blocks of this class from smaller ones that lie side by side, and takes one of them. Blocks of the smallest
   * class stay: variables are of that class, and their headers must stay headers (crates/core/src/stm/resize.rs).
   */
  #merge(of: number): number | undefined {
    const words = this.#words;
    const smaller: number[] = [];
    for (let each = 1; each < of; each += 1) {
      for (let at = words[word.free + each] ?? 0; at !== 0; at = words[at - headerWords] ?? 0) {
        smaller.push(at);
      }
    }
    // Typed, so that it is sorted by numbers and at once: others wait for the turn.
    const sorted = Int32Array.from(smaller).sort();
    for (let each = 1; each < of; each += 1) words[word.free + each] = 0;
    let run: number[] = [];
    let total = 0;
    for (const object of sorted) {
      if (object !== (run[0] ?? 0) + total) {
        for (const each of run) this.free(each);
        [run, total] = [[], 0];
      }
      run.push(object);
      total += this.#sizeOf(object);
      if (total < smallestBlock << of) continue;
      this.#divideRun(run[0] ?? 0, total, of);
      [run, total] = [[], 0];
    }
    for (const each of run) this.free(each);
    return this.#takeFree(of);
  }

  /** Makes free blocks of so many words: of this class, and smaller ones of the rest. */
  #divideRun(first: number, total: number, of: number): void {
    let [object, left] = [first, total];
    for (let next = of; left > 0; next -= 1) {
      for (; smallestBlock << next <= left; left -= smallestBlock << next) {
        this.#words[object - 1] = next;
        this.free(object);
        object += smallestBlock << next;
      }
    }
  }

  #sizeOf(object: number): number {
    return smallestBlock << ((this.#words[object - 1] ?? 0) & (generation - 1));
  }

  free(object: number): void {
    const words = this.#words;
    const list = word.free + ((words[object - 1] ?? 0) & (generation - 1));
    words[object - headerWords] = words[list] ?? 0;
    words[list] = object;
  }

  /** Begins the next epoch, unless a transaction is of an older one, and frees what none can see any more. */
  reclaim(): void {
    const words = this.#words;
    const epoch = Atomics.load(words, word.epoch);
    for (let number = 0; number < (words[threadWord.numbers] ?? 0); number += 1) {
      const announced = Atomics.load(words, placeOf(number) + participantWord.epoch);
      if (announced !== 0 && announced !== epoch) return;
    }
    const next = (epoch + epochStep) | 0;
    Atomics.store(words, word.epoch, next);
    const limbo = word.limbo + ((next >>> 1) % limbos);
    for (let object = words[limbo] ?? 0; object !== 0; object = words[limbo] ?? 0) {
      words[limbo] = words[object - headerWords] ?? 0;
      this.free(object);
    }
  }
}

function full(size: number): CodedError {
  return new CodedError('SHARED_MEMORY_FULL', `the memory has no room for ${size * 4} bytes more`);
}
