// Entries in the transactional memory of this program: all its processes and loops see them. One transaction makes
// each change. A log of the last changes lets a watch read only what is new; one that is further behind compares
// all entries.

import { runningStat } from '../proc/index.js';
import {
  atomically,
  atomicallyWhen,
  check,
  named,
  type TMap,
  type TSortedMap,
  type TVar,
  tmap,
  tsortedMap,
  tvar,
} from '../stm/index.js';
import { DataSpace } from './data-space.js';
import { tooLarge } from './errors.js';
import { absent, type Store, type StoredChange, type StoredEntry } from './store.js';

type Kept = readonly [revision: number, bytes: Uint8Array];

interface Memory {
  /** Revision of the last change. */
  readonly revision: TVar<number>;
  readonly entries: TMap<string, Kept>;
  /** Keys of the last changes by revision. */
  readonly log: TSortedMap<number, string>;
}

/** Changes in the log. */
const logChanges = 1000;
/** Values of transactional memory have 64 KiB with their heads. */
const maxBytes = 2 ** 16 - 64;

const ownStart = runningStat(process.pid)?.startMs;

class LocalStore implements Store {
  readonly allowsCode = true;
  readonly timeoutMs: number;
  readonly owner = `${process.pid} ${ownStart ?? 'unknown'}`;
  readonly #name: string;
  #opened: Memory | undefined;

  constructor(name: string, timeoutMs: number) {
    this.#name = name;
    this.timeoutMs = timeoutMs;
  }

  get #memory(): Memory {
    this.#opened ??= {
      revision: named(`${this.#name} revision`, () => tvar(0)),
      entries: named(this.#name, () => tmap<string, Kept>()),
      log: named(`${this.#name} log`, () => tsortedMap<number, string>()),
    };
    return this.#opened;
  }

  /** Returns false for a process that may live, and where /proc cannot be read. */
  hasEnded(owner: string): boolean {
    const [pid, start] = owner.split(' ').map(Number);
    if (ownStart === undefined || pid === undefined || Number.isNaN(start)) return false;
    return runningStat(pid)?.startMs !== start;
  }

  async get(key: string): Promise<StoredEntry | undefined> {
    const [revision, bytes] = this.#memory.entries.get(key) ?? [absent];
    return bytes === undefined ? undefined : { key, revision, bytes };
  }

  async put(key: string, bytes: Uint8Array): Promise<number> {
    checkSize(key, bytes);
    const memory = this.#memory;
    return atomically(() => setIn(memory, key, bytes));
  }

  async putIf(key: string, bytes: Uint8Array, revision: number): Promise<number | undefined> {
    checkSize(key, bytes);
    const memory = this.#memory;
    return atomically(() =>
      revisionIn(memory, key) === revision ? setIn(memory, key, bytes) : undefined,
    );
  }

  async deleteIf(key: string, revision: number): Promise<boolean> {
    const memory = this.#memory;
    return atomically(() => {
      if (revision === absent || revisionIn(memory, key) !== revision) return false;
      memory.entries.delete(key);
      noteIn(memory, key);
      return true;
    });
  }

  async *list(): AsyncGenerator<StoredEntry, void> {
    yield* this.#all();
  }

  /** In the order of their revisions. */
  #all(): StoredEntry[] {
    return this.#memory.entries
      .entries()
      .map(([key, [revision, bytes]]) => ({ key, revision, bytes }))
      .sort((one, other) => one.revision - other.revision);
  }

  async *watch(
    key: string | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<StoredChange, void> {
    const { revision } = this.#memory;
    const known = new Set<string>();
    const isWatched = (each: { readonly key: string }): boolean =>
      key === undefined || each.key === key;
    let last = absent;
    for (let isInitial = true; ; isInitial = false) {
      const since = last;
      const take = () => {
        last = revision.get();
        check(isInitial || last > since);
        return isInitial ? this.#all() : this.#changes(since, last, known);
      };
      const changes: readonly Change[] = await atomicallyWhen(take, signal && { signal });
      for (const change of changes) {
        if (change.bytes === undefined) known.delete(change.key);
        else known.add(change.key);
        if (isWatched(change)) yield { ...change, isInitial };
      }
    }
  }

  /** The changes from `since` (excluded) to `last`, the last one of each key, by revision. */
  #changes(since: number, last: number, known: ReadonlySet<string>): Change[] {
    const { entries, log } = this.#memory;
    if (last - since > logChanges) return this.#difference(since, last, known);
    const byKey = new Map<string, number>();
    for (const [revision, key] of log.entries({ from: since + 1 })) {
      byKey.delete(key); // to its later place
      byKey.set(key, revision);
    }
    return [...byKey].map(([key, revision]) => ({ key, revision, bytes: entries.get(key)?.[1] }));
  }

  /** The same by comparing all entries: the log has lost some of these changes. */
  #difference(since: number, last: number, known: ReadonlySet<string>): Change[] {
    const all = this.#all();
    const present = new Set(all.map(({ key }) => key));
    const deleted = [...known].filter((key) => !present.has(key));
    return [
      ...deleted.map((key) => ({ key, revision: last, bytes: undefined })),
      ...all.filter(({ revision }) => revision > since),
    ];
  }
}

function revisionIn({ entries }: Memory, key: string): number {
  return entries.get(key)?.[0] ?? absent;
}

function setIn(memory: Memory, key: string, bytes: Uint8Array): number {
  const revision = noteIn(memory, key);
  memory.entries.set(key, [revision, bytes]);
  return revision;
}

/** Returns the revision of a new change. */
function noteIn({ revision, log }: Memory, key: string): number {
  const next = revision.get() + 1;
  revision.set(next);
  log.set(next, key);
  log.delete(next - logChanges);
  return next;
}

type Change = Omit<StoredChange, 'isInitial'>;

/** Throws `SHARED_DATA_TOO_LARGE`. */
function checkSize(key: string, { byteLength }: Uint8Array): void {
  if (byteLength <= maxBytes) return;
  const wayOut = 'the memory of this machine takes 64 KiB: divide it, or store a path';
  throw tooLarge(`the value of "${key}"`, byteLength, wayOut);
}

/** The shared data of this program, on this machine. */
export const localData = new DataSpace((name, timeoutMs) => {
  const text = name.kind === 'map' ? `map ${name.map}` : name.kind;
  return new LocalStore(`manycore ${text}`, timeoutMs);
});
