// A map that all programs share: values in a store, with revisions. Not here: where they are (store.ts).

import { nowMs, refuseInTransaction } from '../lib/index.js';
import { timedOut } from './errors.js';
import {
  checkKey,
  checkRevision,
  fillWatchOptions,
  type SharedMapWatchOptions,
} from './options.js';
import { absent, type Store, type StoredEntry } from './store.js';
import { StoredValues } from './values.js';

/** An entry at one moment. */
export interface SharedMapEntry<Value> {
  readonly key: string;
  readonly value: Value;
  /** Number of the change that set it: each change of the map has a larger one. */
  readonly revision: number;
}

/** A change of an entry, or an entry that was there when the watch began. */
export type SharedMapChange<Value> =
  | (SharedMapEntry<Value> & { readonly type: 'set'; readonly isInitial: boolean })
  | {
      readonly type: 'delete';
      readonly key: string;
      readonly revision: number;
      readonly isInitial: false;
    };

/**
 * A map that all who use its name share. Keys are texts of at most 500 bytes in UTF-8; values are those that can
 * travel (in a cluster functions and classes only with a `secret`), and come out as copies. Each method is atomic
 * alone. All methods reject with `SHARED_DATA_TIMED_OUT`, `SHARED_DATA_TOO_LARGE`, `OPTION_INVALID`, `TRANSFER_…`,
 * and with the errors of the memory (`STM_…`, `NATIVE_MISSING`) or of the cluster (`CLUSTER_…`). A call that timed
 * out may have changed the map.
 */
export interface SharedMap<Value = unknown> {
  readonly name: string;
  get(key: string): Promise<Value | undefined>;
  /** The same with its revision. */
  getEntry(key: string): Promise<SharedMapEntry<Value> | undefined>;
  has(key: string): Promise<boolean>;
  /** Resolves with the revision. */
  set(key: string, value: Value): Promise<number>;
  /** The same if there is no such key, else resolves with `undefined` and sets nothing. */
  setIfAbsent(key: string, value: Value): Promise<number | undefined>;
  /** The same if the entry still has `revision`, else resolves with `undefined` and sets nothing. */
  compareAndSet(key: string, revision: number, value: Value): Promise<number | undefined>;
  /** Resolves with false if there was no such key. */
  delete(key: string): Promise<boolean>;
  /** Deletes the entries that `keys` finds, each by itself. */
  clear(): Promise<void>;
  /** Reads the whole map. */
  size(): Promise<number>;
  /** Each key as it was at some moment of the iteration; so it is with `entries`. */
  keys(): AsyncIterable<string>;
  entries(): AsyncIterable<[key: string, value: Value]>;
  /**
   * The present entries (`isInitial`), then each change, so that nothing is missed between them. Of several
   * changes of one key that come together, or while the server is away, perhaps only the last arrives.
   */
  watch(options?: SharedMapWatchOptions): AsyncIterable<SharedMapChange<Value>>;
}

/** Deletions on their way at one time. */
const maxTogether = 100;

/** Values are typed by those who set them. */
function typed<T>(value: unknown): T;
function typed(value: unknown): unknown {
  return value;
}

export class StoredMap<Value> implements SharedMap<Value> {
  readonly name: string;
  readonly #store: Store;
  readonly #values: StoredValues;

  constructor(name: string, store: Store) {
    this.name = name;
    this.#store = store;
    this.#values = new StoredValues(store.allowsCode);
  }

  async get(key: string): Promise<Value | undefined> {
    return (await this.getEntry(key))?.value;
  }

  async getEntry(key: string): Promise<SharedMapEntry<Value> | undefined> {
    const entry = await this.#at('get', key).get(key);
    return entry === undefined ? undefined : await this.#entry(entry);
  }

  async has(key: string): Promise<boolean> {
    return (await this.#at('has', key).get(key)) !== undefined;
  }

  async set(key: string, value: Value): Promise<number> {
    return await this.#at('set', key).put(key, this.#encode(key, value));
  }

  async setIfAbsent(key: string, value: Value): Promise<number | undefined> {
    const store = this.#at('setIfAbsent', key);
    return await store.putIf(key, this.#encode(key, value), absent);
  }

  async compareAndSet(key: string, revision: number, value: Value): Promise<number | undefined> {
    const store = this.#at('compareAndSet', key);
    return await store.putIf(key, this.#encode(key, value), checkRevision(revision));
  }

  async delete(key: string): Promise<boolean> {
    const store = this.#at('delete', key);
    const startedAt = nowMs();
    for (;;) {
      const entry = await store.get(key);
      if (entry === undefined) return false;
      if (await store.deleteIf(key, entry.revision)) return true;
      if (nowMs() - startedAt > store.timeoutMs) {
        const hint = 'others change the key all the time: raise timeoutMs';
        throw timedOut(`delete() of ${this.#what(key)}`, store.timeoutMs, hint);
      }
    }
  }

  async clear(): Promise<void> {
    const keys: string[] = [];
    for await (const key of this.keys()) keys.push(key);
    for (let at = 0; at < keys.length; at += maxTogether) {
      const together = keys.slice(at, at + maxTogether);
      await Promise.all(together.map((key) => this.delete(key)));
    }
  }

  async size(): Promise<number> {
    let count = 0;
    for await (const _ of this.keys()) count += 1;
    return count;
  }

  async *keys(): AsyncGenerator<string, void> {
    refuseInTransaction(`keys() of the map "${this.name}"`);
    for await (const { key } of this.#store.list()) yield key;
  }

  async *entries(): AsyncGenerator<[string, Value], void> {
    refuseInTransaction(`entries() of the map "${this.name}"`);
    for await (const entry of this.#store.list()) {
      const { key, value } = await this.#entry(entry);
      yield [key, value];
    }
  }

  watch(options: SharedMapWatchOptions = {}): AsyncIterable<SharedMapChange<Value>> {
    const { key, signal } = fillWatchOptions(options);
    refuseInTransaction(`watch() of the map "${this.name}"`);
    return this.#watch(key, signal);
  }

  async *#watch(
    key: string | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<SharedMapChange<Value>, void> {
    for await (const change of this.#store.watch(key, signal)) {
      const { bytes, isInitial, revision } = change;
      if (bytes !== undefined) {
        yield { ...(await this.#entry({ ...change, bytes })), type: 'set', isInitial };
      } else if (!isInitial) yield { type: 'delete', key: change.key, revision, isInitial };
    }
  }

  #at(call: string, key: string): Store {
    refuseInTransaction(`${call}() of the map "${this.name}"`);
    checkKey(key);
    return this.#store;
  }

  #what(key: string): string {
    return `the value of "${key}" in the map "${this.name}"`;
  }

  #encode(key: string, value: unknown): Buffer {
    return this.#values.encode(value, this.#what(key));
  }

  async #entry({ key, bytes, revision }: StoredEntry): Promise<SharedMapEntry<Value>> {
    const value = typed<Value>(await this.#values.decode(bytes, this.#what(key)));
    return { key, value, revision };
  }
}
