// Workers that several parents share, as one parent sees them: it acquires a lease, which the supervisor
// grants, and loses it when it closes the channel or the worker ends. The worker's side is shared-entry.ts,
// the supervisor's shared-process.ts.

import { defer } from '../../lib/index.js';
import type { ActiveLeases } from '../both/active-leases.js';
import type { WorkerExit, WorkerHandle } from '../types.js';

/** Used by a thread's program instead of workers of its own. */
export interface SharedWorkers {
  /** Maximum number of workers; a thread has at most one lease in each. */
  readonly count: number;
  /** True: no lease is granted any more, and the thread starts workers of its own. */
  readonly isOver: boolean;
  /** Requests a lease; the descriptors of the channel (`channelFds`) stay the caller's. */
  acquire(fds: readonly number[]): SharedLease;
}

export interface GrantedLease {
  /** Number of the worker in `ActiveLeases`, and its process. */
  readonly worker: number;
  readonly pid: number;
  /** Written by the worker to its word while it runs a task of this lease. */
  readonly lease: number;
}

/** A lease in a shared worker; its parent uses it like a worker. */
export class SharedLease implements WorkerHandle {
  readonly kind = 'process';
  readonly pipe = undefined;
  readonly exited: Promise<WorkerExit>;
  /** Resolves `exited`. */
  readonly ended: (exit: WorkerExit) => void;
  readonly #activeLeases: ActiveLeases;
  readonly #release: () => void;
  #granted: GrantedLease | undefined;

  /** `release` ends the lease, also before it was granted. */
  constructor(activeLeases: ActiveLeases, release: () => void) {
    this.#activeLeases = activeLeases;
    this.#release = release;
    const { promise, resolve } = defer<WorkerExit>();
    this.exited = promise;
    this.ended = resolve;
  }

  get pid(): number | undefined {
    return this.#granted?.pid;
  }

  /** The parent whose task runs in the worker. */
  get runsTaskOf(): 'this' | 'another' | 'none' {
    if (this.#granted === undefined) return 'none';
    const { worker, lease } = this.#granted;
    const active = this.#activeLeases.of(worker);
    if (active === 0) return 'none';
    return active === lease ? 'this' : 'another';
  }

  grant(lease: GrantedLease): void {
    this.#granted = lease;
  }

  terminate(): void {
    this.#release();
  }

  /** Does nothing: a shared worker keeps no thread alive. */
  ref(): void {}

  /**
   * Ends the worker, for all its parents: tasks that had not begun there go to other workers. While it runs
   * a task of another parent, only the lease is released.
   */
  kill(): void {
    if (this.#granted === undefined || this.runsTaskOf === 'another') {
      this.#release();
      return;
    }
    try {
      process.kill(this.#granted.pid, 'SIGKILL');
    } catch {
      // The worker has ended already; `ended` follows.
    }
  }
}

let ofThread: SharedWorkers | undefined;

/** From now on the pool of `run` in this thread acquires leases instead of starting workers. */
export function useSharedWorkers(workers: SharedWorkers): void {
  ofThread = workers;
}

export function sharedWorkers(): SharedWorkers | undefined {
  return ofThread;
}
