// The lease of a lock, in its owner: renewed until it is released or lost.

import { hasCode } from '../errors.js';
import { beforeDeadline, clearTimeout, nowMs, setTimeout } from '../lib/index.js';
import { lockLost, timedOut } from './errors.js';
import { parseHolder } from './protocol.js';
import type { Store } from './store.js';

/** The right to work under a lock, until it is released or lost. */
export interface Lease extends AsyncDisposable {
  /**
   * Fencing number: larger for each later owner of the lock, for ever. A service that remembers the largest one
   * refuses an owner that has lost the lock and has not noticed.
   */
  readonly token: number;
  /**
   * Aborted when the lease is lost: it could not be renewed in time, since this process was blocked or the server
   * away, or somebody took it. Its reason has the code `SHARED_LOCK_LOST`.
   */
  readonly signal: AbortSignal;
  /**
   * Resolves when the lock is free for others, at the latest when the lease has run out. Never rejects. In a cluster
   * that was left it resolves at once, and the lease runs out by itself.
   */
  release(): Promise<void>;
}

export interface HeldOptions {
  readonly name: string;
  readonly store: Store;
  /** Id in `bytes`, unique. */
  readonly id: string;
  /** The entry. */
  readonly bytes: Buffer;
  readonly leaseMs: number;
  readonly token: number;
  /** Time before the entry was sent, by the clock of this process. */
  readonly sentAt: number;
}

/** Renewals in the time of one lease: two may fail. */
const renewals = 3;
/** Pause after a release that failed, in ms. */
const retryMs = 200;

export class HeldLease implements Lease {
  readonly token: number;
  readonly #options: HeldOptions;
  readonly #lost = new AbortController();
  /** Revision of the entry as far as it is known. */
  #revision: number;
  /** Time until which nobody else can have the lock. */
  #until: number;
  #expiry: NodeJS.Timeout;
  #nextRenewal: NodeJS.Timeout;
  #renewing: Promise<void> = Promise.resolve();
  #released: Promise<void> | undefined;

  constructor(options: HeldOptions) {
    const { token, sentAt, leaseMs } = options;
    this.#options = options;
    this.token = token;
    this.#revision = token;
    this.#until = sentAt + leaseMs;
    this.#expiry = this.#armExpiry();
    this.#nextRenewal = this.#armRenewal();
  }

  get signal(): AbortSignal {
    // After a callback that has blocked for too long, timers have not run yet.
    this.#checkTime();
    return this.#lost.signal;
  }

  #armExpiry(): NodeJS.Timeout {
    return setTimeout(() => this.#checkTime(), Math.max(0, this.#until - nowMs()) + 1).unref();
  }

  #armRenewal(): NodeJS.Timeout {
    const { leaseMs } = this.#options;
    return setTimeout(() => {
      this.#renewing = this.#renew();
    }, leaseMs / renewals).unref();
  }

  get #isOver(): boolean {
    return this.#released !== undefined || this.#lost.signal.aborted;
  }

  #checkTime(): void {
    if (this.#isOver || nowMs() < this.#until) return;
    const { leaseMs } = this.#options;
    this.#lose(`it was not renewed for ${leaseMs} ms, so another may have it`);
  }

  #lose(why: string): void {
    if (this.#isOver) return;
    this.#stop();
    this.#lost.abort(lockLost(this.#options.name, why));
  }

  #stop(): void {
    clearTimeout(this.#expiry);
    clearTimeout(this.#nextRenewal);
  }

  /** Never rejects: what fails is tried again until the lease has run out. */
  async #renew(): Promise<void> {
    this.#checkTime();
    if (this.#isOver) return;
    const { leaseMs, name } = this.#options;
    const sentAt = nowMs();
    const deadlineMs = leaseMs / renewals;
    const onDeadline = (): Error => timedOut(`the renewal of "${name}"`, deadlineMs, 'once more');
    try {
      const isOurs = await beforeDeadline(this.#put(), { deadlineMs, onDeadline });
      this.#checkTime();
      if (!isOurs) this.#lose('another owner has taken it');
      if (this.#isOver) return;
      this.#until = sentAt + leaseMs;
      clearTimeout(this.#expiry);
      this.#expiry = this.#armExpiry();
    } catch {
      // the next renewal may succeed, and `signal` reports if none does
    }
    if (!this.#isOver) this.#nextRenewal = this.#armRenewal();
  }

  /** Resolves with false when the entry is no longer of this lease. */
  async #put(): Promise<boolean> {
    const { store, name, bytes } = this.#options;
    do {
      const revision = await store.putIf(name, bytes, this.#revision);
      if (revision === undefined) continue;
      this.#revision = Math.max(this.#revision, revision);
      return true;
    } while (await this.#findRevision());
    return false;
  }

  /** Reads the revision again: the answer to an earlier renewal may be lost. False: the entry is of another lease. */
  async #findRevision(): Promise<boolean> {
    const { store, name, id } = this.#options;
    const entry = await store.get(name);
    if (entry === undefined || parseHolder(entry.bytes, name).id !== id) return false;
    this.#revision = Math.max(this.#revision, entry.revision);
    return true;
  }

  release(): Promise<void> {
    this.#checkTime();
    if (!this.#isOver) {
      this.#stop();
      this.#released = this.#release();
    }
    return this.#released ?? Promise.resolve();
  }

  async #release(): Promise<void> {
    await this.#renewing;
    const { name } = this.#options;
    const deadlineMs = Math.max(0, this.#until - nowMs());
    const onDeadline = (): Error => timedOut(`the release of "${name}"`, deadlineMs, 'it is free');
    await beforeDeadline(this.#delete(), { deadlineMs, onDeadline }).catch(() => {}); // the lease runs out by itself
  }

  /** Deletes the entry; what fails is tried again until the lease has run out, or the cluster was left. */
  async #delete(): Promise<void> {
    const { store, name } = this.#options;
    do {
      try {
        if (await store.deleteIf(name, this.#revision)) return;
        if (!(await this.#findRevision())) return;
      } catch (error) {
        if (hasCode(error, 'CLUSTER_CLOSED')) return;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    } while (nowMs() < this.#until);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
