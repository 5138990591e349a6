// A sorted list: a chain of variables, each with a key and the next one; the last is empty. A search keeps only its
// last variable as a read, so that changes before it are no conflicts (elastic transactions: Felber, Gramoli,
// Guerraoui 2009). The key before a variable never changes while that lives: who deletes a key moves the next one into
// its variable, and ends the variable from which it came.

import type { Attempt } from '../attempt.js';
import { Collection, endIn, type Stand } from '../collection.js';
import { KIND_LIST } from '../kinds.js';
import { damaged } from '../read-value.js';
import { asStand, dropRead, freeIn, partOf, type TVar, tvar, typed } from '../tvar.js';
import { checkKey, isBefore, type Key } from './leaf.js';
import { Handles, inTransaction } from './operation.js';

/**
 * A set of keys in their order. For some hundred keys, and as a measure: a `TSortedMap` is faster from there on.
 */
export interface TList<K extends number | string> {
  /** False: it was there. Throws `STM_VALUE`, `STM_VALUE_TOO_LARGE`, `SHARED_MEMORY_FULL`. */
  add(key: K): boolean;
  has(key: K): boolean;
  /** False: there was no such key. */
  delete(key: K): boolean;
  /** All keys, of one moment, in order. */
  keys(): K[];
  [Symbol.iterator](): IterableIterator<K>;
}

type Node = { readonly key: Key; readonly next: TVar<Node> } | undefined;

class SharedList<K extends Key> extends Collection implements TList<K> {
  readonly #first: TVar<Node>;

  constructor(stand: Stand) {
    super(stand);
    this.#first = typed(stand.first);
  }

  static of(this: void, first: TVar<unknown>): SharedList<Key> {
    return lists.of(first);
  }

  add(key: K): boolean {
    const checked = checkKey(key);
    return inTransaction((attempt) => {
      const at = this.#find(attempt, checked);
      const node = at.get();
      if (node?.key === checked) return false;
      at.set({ key: checked, next: partOf(this.#first, node) });
      return true;
    });
  }

  has(key: K): boolean {
    const checked = checkKey(key);
    return inTransaction((attempt) => this.#find(attempt, checked).get()?.key === checked);
  }

  delete(key: K): boolean {
    const checked = checkKey(key);
    return inTransaction((attempt) => {
      const at = this.#find(attempt, checked);
      const node = at.get();
      if (node?.key !== checked) return false;
      at.set(node.next.get());
      freeIn(attempt, node.next);
      return true;
    });
  }

  /** The variable of the first key that is not before `key`. */
  #find(attempt: Attempt, key: Key): TVar<Node> {
    const readAt = attempt.readCount;
    let at = this.#first;
    for (let node = at.get(); node !== undefined && isBefore(node.key, key); ) {
      const isNewRead = attempt.readCount > readAt;
      const [passed, before] = [at, node.key];
      at = node.next;
      node = at.get(); // before the one that led here may change
      if (node !== undefined) checkOrder(before, node.key);
      if (isNewRead) dropRead(passed, attempt, readAt);
    }
    return at;
  }

  keys(): K[] {
    return inTransaction(() => {
      const keys: Key[] = [];
      for (let node = this.#first.get(); node !== undefined; node = node.next.get()) {
        checkOrder(keys.at(-1), node.key);
        keys.push(node.key);
      }
      return typed(keys);
    });
  }

  [Symbol.iterator](): IterableIterator<K> {
    return this.keys()[Symbol.iterator]();
  }

  override [endIn](attempt: Attempt): void {
    let at: TVar<Node> | undefined = this.#first;
    while (at !== undefined) {
      const next: TVar<Node> | undefined = at.get()?.next;
      freeIn(attempt, at);
      at = next;
    }
  }
}

/** Throws `SEGMENT_CORRUPT` where the list leads back. */
function checkOrder(before: Key | undefined, key: Key): void {
  if (before !== undefined && !isBefore(before, key)) throw damaged('a list');
}

const lists = new Handles(KIND_LIST, (stand) => new SharedList<Key>(stand));

/** Makes an empty list. Throws `SHARED_MEMORY_FULL`, `STM_CROWDED`, `NATIVE_MISSING`, `NATIVE_REFUSED`. */
export function tlist<K extends number | string>(): TList<K> {
  return typed(SharedList.of(inTransaction(() => asStand(tvar<Node>(undefined)))));
}
