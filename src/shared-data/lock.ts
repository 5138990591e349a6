// A lock with leases. The owner's entry in the store says for how long it holds; the owner renews it, each time
// with a new revision. A waiter measures with its own clock for how long a revision stays the same, and compares
// no clocks of two machines. So the lock is free when the owner has not renewed it for its lease. The owner counts
// from before it sent its last renewal, and gives up earlier than any waiter takes over.
// Not here: why a token is needed all the same (docs/design/shared-data.md).

import { randomUUID } from 'node:crypto';
import { hasCode } from '../errors.js';
import {
  abortError,
  beforeDeadline,
  clearTimeout,
  nowMs,
  refuseInTransaction,
  setTimeout,
  watchAbort,
} from '../lib/index.js';
import { timedOut } from './errors.js';
import { HeldLease, type Lease } from './lease.js';
import { type AcquireOptions, fillAcquireOptions } from './options.js';
import { parseHolder, writeHolder } from './protocol.js';
import { absent, type Store, type StoredEntry } from './store.js';

/** A lock that at most one of all who use its name holds. */
export interface SharedLock {
  readonly name: string;
  /**
   * Resolves with a lease when the lock is free for this caller; no order is kept among those who wait. Rejects with
   * `SHARED_DATA_TIMED_OUT`, `ABORTED`, `OPTION_INVALID`, and with the errors of the memory (`STM_…`,
   * `NATIVE_MISSING`) or of the cluster (`CLUSTER_…`).
   */
  acquire(options?: AcquireOptions): Promise<Lease>;
}

/** Period in which a waiter checks that the owner's process lives, in ms. */
const checkOwnerMs = 50;
/** Longest time without a read of the entry, in ms: with a watch, and where it failed. */
const watchedMs = 10_000;
const unwatchedMs = 250;

/** A revision of the entry, and since when it is known here. */
interface Seen {
  readonly revision: number;
  readonly since: number;
}

export class StoredLock implements SharedLock {
  readonly name: string;
  readonly #store: Store;

  constructor(name: string, store: Store) {
    this.name = name;
    this.#store = store;
  }

  async acquire(options: AcquireOptions = {}): Promise<Lease> {
    const { leaseMs, timeoutMs, signal } = fillAcquireOptions(options);
    refuseInTransaction(`acquire() of the lock "${this.name}"`);
    if (signal?.aborted) throw abortError(signal);
    const over = new AbortController();
    const work = this.#acquire(leaseMs, timeoutMs, over.signal);
    const onDeadline = (): Error => this.#timedOut(timeoutMs);
    // Without a wait the one attempt has the time limit of the store.
    const deadlineMs = timeoutMs === 0 ? Infinity : timeoutMs;
    try {
      return await beforeDeadline(work, { deadlineMs, onDeadline, signal });
    } catch (error) {
      // The lock may have come in the same turn as the end of the wait.
      work.then((lease) => lease.release()).catch(() => {});
      throw error;
    } finally {
      over.abort();
    }
  }

  #timedOut(timeoutMs: number): Error {
    const hint = 'another owner holds it, or the server is away: raise timeoutMs';
    return timedOut(`the wait for the lock "${this.name}"`, timeoutMs, hint);
  }

  /** `over` is aborted when nobody waits any more: a lock that comes later is given back. */
  async #acquire(leaseMs: number, timeoutMs: number, over: AbortSignal): Promise<Lease> {
    const wakeUps = new WakeUps(this.#store, this.name, over);
    const attempt = new Attempt(this.name, this.#store, leaseMs);
    let seen: Seen = { revision: absent, since: 0 };
    for (;;) {
      let freeAt = Infinity;
      try {
        const entry = await this.#store.get(this.name);
        if (over.aborted) throw abortError(over);
        const revision = entry?.revision ?? absent;
        if (seen.revision !== revision) seen = { revision, since: nowMs() };
        freeAt = entry === undefined ? 0 : this.#freeAt(entry, seen);
        const isFree = nowMs() >= freeAt;
        const lease = attempt.leaseOf(entry) ?? (isFree ? await attempt.take(revision) : undefined);
        if (lease !== undefined && !over.aborted) return lease;
        await lease?.release();
      } catch (error) {
        // The limit of one call is not that of the wait.
        if (timeoutMs === 0 || over.aborted || !hasCode(error, 'SHARED_DATA_TIMED_OUT'))
          throw error;
        freeAt = 0;
      }
      if (timeoutMs === 0) throw this.#timedOut(0);
      await wakeUps.next(Math.max(0, freeAt - nowMs()), seen.revision);
      if (over.aborted) throw abortError(over);
    }
  }

  /** Time from which the lock is free if its entry stays the same, by the clock of this process. */
  #freeAt({ bytes }: StoredEntry, { since }: Seen): number {
    const holder = parseHolder(bytes, this.name);
    return this.#store.hasEnded?.(holder.owner) === true ? 0 : since + holder.leaseMs;
  }
}

/** Puts the entry of a new lease, perhaps several times. */
class Attempt {
  readonly #name: string;
  readonly #store: Store;
  readonly #leaseMs: number;
  #id = '';
  /** Time before the last entry was sent. */
  #sentAt = 0;

  constructor(name: string, store: Store, leaseMs: number) {
    this.#name = name;
    this.#store = store;
    this.#leaseMs = leaseMs;
  }

  /** Resolves with `undefined` if the entry has another revision. */
  async take(revision: number): Promise<HeldLease | undefined> {
    this.#id = randomUUID();
    this.#sentAt = nowMs();
    const token = await this.#store.putIf(this.#name, this.#bytes, revision);
    return token === undefined ? undefined : this.#lease(token);
  }

  /** Returns the lease if `entry` is of the last attempt, whose answer was lost. */
  leaseOf(entry: StoredEntry | undefined): HeldLease | undefined {
    if (entry === undefined || parseHolder(entry.bytes, this.#name).id !== this.#id) {
      return undefined;
    }
    return this.#lease(entry.revision);
  }

  get #bytes(): Buffer {
    const { owner } = this.#store;
    return writeHolder({ id: this.#id, owner, leaseMs: this.#leaseMs });
  }

  #lease(token: number): HeldLease {
    return new HeldLease({
      name: this.#name,
      store: this.#store,
      id: this.#id,
      bytes: this.#bytes,
      leaseMs: this.#leaseMs,
      token,
      sentAt: this.#sentAt,
    });
  }
}

/** Wakes a waiter: at a change of the entry, after a time, and to check the owner's process. */
class WakeUps {
  readonly #store: Store;
  readonly #name: string;
  readonly #over: AbortSignal;
  #isWatching = false;
  #hasFailed = false;
  #known = absent;
  /** A change came that nobody has waited for. */
  #hasChanged = false;
  #wake: (() => void) | undefined;

  constructor(store: Store, name: string, over: AbortSignal) {
    this.#store = store;
    this.#name = name;
    this.#over = over;
  }

  /** Resolves when the entry has a later revision than `known`, after `ms`, or when the wait is over. */
  async next(ms: number, known: number): Promise<void> {
    this.#known = known;
    if (!this.#isWatching) void this.#watch();
    if (!this.#hasChanged && !this.#over.aborted) {
      const checkMs = this.#store.hasEnded === undefined ? watchedMs : checkOwnerMs;
      const mostMs = this.#hasFailed ? Math.min(checkMs, unwatchedMs) : checkMs;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(ms, mostMs));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#hasChanged = false;
    this.#wake = undefined;
  }

  async #watch(): Promise<void> {
    this.#isWatching = true;
    const wake = (): void => {
      this.#hasChanged = true;
      this.#wake?.();
    };
    watchAbort(this.#over, wake);
    try {
      for await (const { revision } of this.#store.watch(this.#name, this.#over)) {
        if (revision > this.#known) wake();
      }
    } catch {
      this.#isWatching = false;
      if (!this.#hasFailed) wake(); // the next read has the reason
      this.#hasFailed = true;
    }
  }
}
