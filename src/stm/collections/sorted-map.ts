// Maps as programs see them: `TSortedMap` in the order of the keys, and `TMap`, which spreads its keys over all leaves,
// so that processes that add keys one after the other do not all change the last leaf.
// Not here: the leaves (leaf-map.ts).

import { integer, invalid, ownOptions } from '../../lib/index.js';
import type { Attempt } from '../attempt.js';
import { Collection, endIn, type Stand } from '../collection.js';
import { KIND_MAP, KIND_SORTED_MAP } from '../kinds.js';
import { type TVar, typed } from '../tvar.js';
import { checkKey, type Key } from './leaf.js';
import { LeafMap, type Range } from './leaf-map.js';
import { Handles, inTransaction } from './operation.js';
import { scrambled, unscrambled } from './scramble.js';

/**
 * A map in shared memory. Keys are numbers and strings of at most 510 characters; values are those of a TVar. Each
 * method is atomic alone, and a part of a transaction that calls it. Two processes that use different keys seldom
 * disturb each other. All methods throw `STM_GONE` once it was freed.
 */
export interface TMap<K extends number | string, V> {
  get(key: K): V | undefined;
  has(key: K): boolean;
  /** Throws `STM_VALUE`, `STM_VALUE_TOO_LARGE`, `SHARED_MEMORY_FULL`. */
  set(key: K, value: V): this;
  /** Sets the value to what `change` returns for the present one, and returns it. */
  update(key: K, change: (value: V | undefined) => V): V;
  /** False: there was no such key. */
  delete(key: K): boolean;
  clear(): void;
  /** All entries, of one moment. */
  entries(): [K, V][];
  keys(): K[];
  values(): V[];
  [Symbol.iterator](): IterableIterator<[K, V]>;
  /** It reads the whole map: a transaction that asks conflicts with each that adds or deletes a key. */
  readonly size: number;
}

/** Bounds of a list: from `from` on, before `to`, at most `limit` entries; `reverse`: from the last one on. */
export interface KeyRange<K> {
  readonly from?: K;
  readonly to?: K;
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** The same in the order of its keys: numbers first, then strings as `<` orders them. */
export interface TSortedMap<K extends number | string, V> extends TMap<K, V> {
  /** The entries of a range, of one moment, in order or in reverse. Throws `OPTION_INVALID`. */
  entries(range?: KeyRange<K>): [K, V][];
  keys(range?: KeyRange<K>): K[];
  values(range?: KeyRange<K>): V[];
}

const rangeNames: ReadonlySet<string> = new Set(['from', 'to', 'limit', 'reverse']);

/** The methods of both. `K` and `V` are what their users put in. */
abstract class SharedMap<K extends Key, V> extends Collection implements TMap<K, V> {
  readonly #leaves: LeafMap;

  constructor(stand: Stand) {
    super(stand);
    this.#leaves = new LeafMap(stand.first);
  }

  /** The key in the leaves. */
  abstract inner(key: K): Key;
  abstract outer(key: Key): Key;

  get(key: K): V | undefined {
    const inner = this.inner(key);
    return typed(inTransaction((attempt) => this.#leaves.get(attempt, inner)));
  }

  has(key: K): boolean {
    const inner = this.inner(key);
    return inTransaction((attempt) => this.#leaves.has(attempt, inner));
  }

  set(key: K, value: V): this {
    const inner = this.inner(key);
    inTransaction((attempt) => this.#leaves.set(attempt, inner, value));
    return this;
  }

  update(key: K, change: (value: V | undefined) => V): V {
    return inTransaction(() => {
      this.set(key, change(this.get(key)));
      return typed(this.get(key));
    });
  }

  delete(key: K): boolean {
    const inner = this.inner(key);
    return inTransaction((attempt) => this.#leaves.delete(attempt, inner));
  }

  clear(): void {
    inTransaction((attempt) => this.#leaves.clear(attempt));
  }

  entries(range: KeyRange<K> = {}): [K, V][] {
    const inner = this.#range(range);
    const found = inTransaction((attempt) =>
      range.reverse === true
        ? this.#leaves.entriesBackwards(attempt, inner)
        : this.#leaves.entries(attempt, inner),
    );
    for (const entry of found) entry[0] = this.outer(entry[0]);
    return typed(found);
  }

  #range(range: KeyRange<K>): Range<Key> {
    const { from, to, limit, reverse } = ownOptions('the range', range, rangeNames);
    if (reverse !== undefined && typeof reverse !== 'boolean') {
      throw invalid('reverse', reverse, 'true or false');
    }
    return {
      from: from === undefined ? undefined : checkKey(from),
      to: to === undefined ? undefined : checkKey(to),
      limit: limit === undefined ? undefined : integer('limit', limit, 0, Number.MAX_SAFE_INTEGER),
    };
  }

  keys(range?: KeyRange<K>): K[] {
    return this.entries(range).map(([key]) => key);
  }

  values(range?: KeyRange<K>): V[] {
    return this.entries(range).map(([, value]) => value);
  }

  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.entries()[Symbol.iterator]();
  }

  get size(): number {
    return inTransaction((attempt) => this.#leaves.size(attempt));
  }

  override [endIn](attempt: Attempt): void {
    this.#leaves.free(attempt);
  }
}

class SharedSortedMap<K extends Key, V> extends SharedMap<K, V> implements TSortedMap<K, V> {
  static of(this: void, first: TVar<unknown>): SharedSortedMap<Key, unknown> {
    return sortedMaps.of(first);
  }

  override inner(key: K): Key {
    return checkKey(key);
  }

  override outer(key: Key): Key {
    return key;
  }
}

class SharedHashMap<K extends Key, V> extends SharedMap<K, V> {
  static of(this: void, first: TVar<unknown>): SharedHashMap<Key, unknown> {
    return hashMaps.of(first);
  }

  override inner(key: K): Key {
    return scrambled(checkKey(key));
  }

  override outer(key: Key): Key {
    return unscrambled(key);
  }

  override entries(...more: unknown[]): [K, V][] {
    if (more[0] !== undefined) {
      throw invalid('the range', more[0], 'left out: a TMap has no order, a TSortedMap has');
    }
    return super.entries();
  }
}

const sortedMaps = new Handles(
  KIND_SORTED_MAP,
  (stand) => new SharedSortedMap<Key, unknown>(stand),
);
const hashMaps = new Handles(KIND_MAP, (stand) => new SharedHashMap<Key, unknown>(stand));

/**
 * Makes a map in the order of its keys, in a transaction or outside. Throws `SHARED_MEMORY_FULL`, `STM_CROWDED`,
 * `NATIVE_MISSING`, `NATIVE_REFUSED`.
 */
export function tsortedMap<K extends number | string, V>(): TSortedMap<K, V> {
  return typed(SharedSortedMap.of(inTransaction((attempt) => LeafMap.make(attempt))));
}

/** Makes a map without an order of its keys. Throws as `tsortedMap`. */
export function tmap<K extends number | string, V>(): TMap<K, V> {
  return typed(SharedHashMap.of(inTransaction((attempt) => LeafMap.make(attempt))));
}
