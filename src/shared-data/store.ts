// The contract between the shared data and what stores it: entries with revisions, in the memory of this
// machine (local-store.ts) or in NATS KV (cluster/data/). test/shared-data/ runs one test on both.

/** A value in bytes. Revisions of one store grow with each change, for ever. */
export interface StoredEntry {
  readonly key: string;
  readonly revision: number;
  readonly bytes: Uint8Array;
}

export interface StoredChange {
  readonly key: string;
  readonly revision: number;
  /** `undefined`: the entry was deleted. */
  readonly bytes: Uint8Array | undefined;
  /** True: the entry was there when the watch began. */
  readonly isInitial: boolean;
}

/** Revision of an entry that does not exist. */
export const absent = 0;

/**
 * Named entries. All methods reject with `SHARED_DATA_TIMED_OUT`, `SHARED_DATA_TOO_LARGE`, and with the errors of
 * the memory or of the cluster.
 */
export interface Store {
  /** True: readers may run code of writers, so functions and classes may be stored. */
  readonly allowsCode: boolean;
  /** Limit of each call, in ms. */
  readonly timeoutMs: number;
  /** Name of this process as the owner of a lock. */
  readonly owner: string;
  /** Returns true for an owner that has surely ended. Absent: nobody can say. */
  readonly hasEnded?: (owner: string) => boolean;
  get(key: string): Promise<StoredEntry | undefined>;
  /** Resolves with the new revision. */
  put(key: string, bytes: Uint8Array): Promise<number>;
  /** The same if the entry has `revision` (`absent`: if there is none), else resolves with `undefined`. */
  putIf(key: string, bytes: Uint8Array, revision: number): Promise<number | undefined>;
  /** Resolves with false, and deletes nothing, if the entry has another revision. */
  deleteIf(key: string, revision: number): Promise<boolean>;
  /** All entries, each as it was at some moment of the iteration. */
  list(): AsyncIterable<StoredEntry>;
  /** The present entries by revision, then each change; of several changes of an entry perhaps only the last. */
  watch(key: string | undefined, signal: AbortSignal | undefined): AsyncIterable<StoredChange>;
}
