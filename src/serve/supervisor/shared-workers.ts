// The workers of a server, which all loops of all its processes share: `run`, `parallel` and `pmap` of a
// program in P × L loops have one worker for each core, not P × L times as many. A loop that needs a worker
// acquires a lease in one where it has none. Then the two communicate directly (worker/inside/shared-entry.ts), and
// the supervisor is notified only when a lease is released or one of them has ended.

import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { CodedError } from '../../errors.js';
import { errorOf } from '../../lib/index.js';
import { callNative, type NativeBoard, requireNative } from '../../native.js';
import { rssBytesOf } from '../../proc/index.js';
import {
  ActiveLeases,
  type GrantedLease,
  type Inherited,
  SharedProcess,
  type WorkerExit,
} from '../../worker/index.js';
import type { Owner } from './owner.js';

/** A worker without leases ends after this time, in ms. */
const idleMs = 10_000;
/** Time for an orphaned task to end by its signal; then its worker is killed. In ms. */
const abandonedMs = 2000;
/** Within this time after its loop's end, a loop's own worker has exited, in ms. */
const ownWorkersLeaveMs = 1000;
/** Added to the drain of a server without a supervisor, in ms. */
const orphanGraceMs = 2000;

export interface WorkersOptions {
  readonly owner: Owner | undefined;
  readonly drainTimeoutMs: number;
  /** A worker that uses more memory is replaced; `Infinity`: never. */
  readonly maxRssBytes: number;
  /** Default: of this process, whenever a worker is started. */
  readonly inherited?: Inherited | undefined;
}

/** A loop, while it runs. */
export interface Tenant {
  readonly process: TenantProcess;
  /** The loop's number in its process, which is not used again. */
  readonly loop: number;
}

/** A process of the server. */
export interface TenantProcess {
  readonly pid: number | undefined;
}

export interface LeaseEvents {
  onGranted(lease: GrantedLease): void;
  /** Called once; nothing follows. */
  onEnded(exit: WorkerExit): void;
}

interface Lease {
  readonly tenant: Tenant;
  readonly request: number;
  readonly id: number;
  readonly worker: SharedProcess;
  readonly events: LeaseEvents;
}

export class Workers {
  readonly count: number;
  #options: WorkersOptions;
  readonly #board: NativeBoard;
  readonly #activeLeases: ActiveLeases;
  /** By number. */
  readonly #workers: (SharedProcess | undefined)[];
  readonly #leases = new Map<number, Lease>();
  readonly #idleTimers = new Map<SharedProcess, NodeJS.Timeout>();
  /** Workers to be replaced: they end once they have no lease. */
  readonly #recycled = new Set<SharedProcess>();
  /** Workers that have not exited. */
  readonly #running = new Set<SharedProcess>();
  #lastLease = 0;
  #isClosed = false;

  /** Starts no worker yet. Throws `NATIVE_REFUSED`. */
  constructor(count: number, options: WorkersOptions) {
    this.count = count;
    this.#options = options;
    // Twice the count: recycled workers end while others replace them.
    const numbers = 2 * count;
    this.#board = callNative(() => requireNative().NativeBoard.create(numbers, 1));
    this.#activeLeases = new ActiveLeases(this.#board);
    this.#workers = new Array(numbers).fill(undefined);
  }

  /** The memory of `ActiveLeases`, for the processes. */
  get activeLeasesFd(): number {
    return this.#board.fd();
  }

  /**
   * Grants a lease to a loop, which numbers its requests; the descriptors stay the caller's. A failure is an
   * `onEnded` with the error.
   */
  acquire(tenant: Tenant, request: number, fds: readonly number[], events: LeaseEvents): void {
    this.#lastLease += 1;
    const id = this.#lastLease;
    try {
      if (this.#isClosed) throw new CodedError('SERVE_CLOSED', 'the server is closed');
      const worker = this.#workerFor(tenant);
      clearTimeout(this.#idleTimers.get(worker));
      this.#leases.set(id, { tenant, request, id, worker, events });
      worker.grant(id, tenant.process.pid ?? 0, fds);
      events.onGranted({ worker: worker.number, pid: worker.pid, lease: id });
    } catch (thrown) {
      const error = errorOf(thrown);
      const exit = { exitCode: null, signal: null, error };
      if (this.#leases.has(id)) this.#leaseEnded(id, exit);
      else events.onEnded(exit);
    }
  }

  /**
   * Chooses a worker that is not recycled and in which the loop has no lease: an idle one, a new one, or the
   * one with the fewest leases.
   */
  #workerFor(tenant: Tenant): SharedProcess {
    const taken = new Set(this.#leasesOf(tenant).map(({ worker }) => worker));
    const others = this.#workers.filter(
      (worker): worker is SharedProcess =>
        worker !== undefined && !taken.has(worker) && !this.#recycled.has(worker),
    );
    const rank = (worker: SharedProcess): number =>
      this.#leaseCountOf(worker) +
      (this.#activeLeases.of(worker.number) === 0 ? 0 : this.#leases.size);
    const [best] = others.sort((a, b) => rank(a) - rank(b));
    if (best !== undefined && this.#activeLeases.of(best.number) === 0) return best;
    const sound = this.#workers.filter(
      (worker) => worker !== undefined && !this.#recycled.has(worker),
    );
    const number = this.#workers.indexOf(undefined);
    if (number >= 0 && sound.length < this.count) return this.#start(number);
    if (best !== undefined) return best;
    throw new CodedError(
      'WORKER_START_FAILED',
      'the loop has a lease in every worker of the server',
    );
  }

  #start(number: number): SharedProcess {
    this.#activeLeases.set(number, 0);
    const { owner, drainTimeoutMs, inherited } = this.#options;
    const made = new SharedProcess({
      number,
      activeLeasesFd: this.activeLeasesFd,
      uid: owner?.uid,
      gid: owner?.gid,
      inherited,
      orphanMs: drainTimeoutMs + orphanGraceMs,
      onReleased: (id) => {
        if (this.#leases.get(id)?.worker !== made) return;
        this.#leaseEnded(id, { exitCode: 0, signal: null, error: undefined });
      },
      onExit: (exit) => this.#exited(made, exit),
    });
    this.#workers[number] = made;
    this.#running.add(made);
    return made;
  }

  #leasesOf({ process, loop }: Tenant): Lease[] {
    return [...this.#leases.values()].filter(
      ({ tenant }) => tenant.process === process && tenant.loop === loop,
    );
  }

  #leaseCountOf(worker: SharedProcess | undefined): number {
    return [...this.#leases.values()].filter((lease) => lease.worker === worker).length;
  }

  /** Recycles workers above the memory limit: their parents move to others. Called periodically. */
  checkMemory(): void {
    const { maxRssBytes } = this.#options;
    if (maxRssBytes === Infinity) return;
    for (const worker of this.#workers) {
      if (worker !== undefined && rssBytesOf(worker.pid) > maxRssBytes) this.#recycle(worker);
    }
  }

  #recycle(worker: SharedProcess): void {
    this.#recycled.add(worker);
    worker.retire();
    if (this.#leaseCountOf(worker) === 0) this.#end(worker);
  }

  /**
   * Takes options for workers that are started from now on, and recycles those with another environment or other
   * flags. Some of them stay where too many are recycled already: the others need numbers.
   */
  renew(options: WorkersOptions): void {
    const isOther = !isDeepStrictEqual(this.#options.inherited, options.inherited);
    this.#options = options;
    if (!isOther) return;
    for (const worker of this.#workers) {
      if (worker === undefined || this.#recycled.has(worker)) continue;
      if (this.#recycled.size < this.count) this.#recycle(worker);
    }
  }

  /** Releases the lease that a loop has requested by this number. */
  release(tenant: Tenant, request: number): void {
    const lease = this.#leasesOf(tenant).find((each) => each.request === request);
    lease?.worker.release(lease.id);
  }

  /**
   * Reclaims the leases of a loop, or of every loop of a process, that has ended. Resolves when no shared
   * worker runs its tasks any more, and its own workers have exited by themselves.
   */
  async tenantEnded(process: TenantProcess, loop?: number): Promise<void> {
    const leases = [...this.#leases.values()].filter(
      ({ tenant }) => tenant.process === process && (loop === undefined || tenant.loop === loop),
    );
    for (const { worker, id } of leases) {
      worker.release(id);
      this.#endAbandoned(worker, id);
    }
    const isOver = ({ worker, id }: Lease): boolean =>
      !this.#running.has(worker) ||
      !(this.#leases.has(id) || this.#activeLeases.of(worker.number) === id);
    do await wait(ownWorkersLeaveMs, undefined, { ref: false });
    while (!leases.every(isOver));
  }

  /** Kills a worker that is still in that loop's task after a while: others wait for it. */
  #endAbandoned(worker: SharedProcess, id: number): void {
    const poll = (): void => {
      if (!this.#leases.has(id)) clearInterval(timer);
      else if (this.#activeLeases.of(worker.number) === id) worker.kill();
    };
    const timer = setInterval(poll, abandonedMs).unref();
  }

  #leaseEnded(id: number, exit: WorkerExit): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    this.#leases.delete(id);
    lease.events.onEnded(exit);
    if (this.#leaseCountOf(lease.worker) > 0) return;
    if (this.#recycled.has(lease.worker)) this.#end(lease.worker);
    else this.#endWhenIdle(lease.worker);
  }

  #endWhenIdle(worker: SharedProcess): void {
    clearTimeout(this.#idleTimers.get(worker));
    this.#idleTimers.set(worker, setTimeout(() => this.#end(worker), idleMs).unref());
  }

  /** Ends a worker without leases. */
  #end(worker: SharedProcess): void {
    this.#forget(worker);
    worker.close();
  }

  /** Grants no lease in this worker any more. */
  #forget(worker: SharedProcess): void {
    clearTimeout(this.#idleTimers.get(worker));
    this.#idleTimers.delete(worker);
    this.#recycled.delete(worker);
    if (this.#workers[worker.number] === worker) this.#workers[worker.number] = undefined;
  }

  #exited(worker: SharedProcess, exit: WorkerExit): void {
    this.#forget(worker);
    this.#running.delete(worker);
    // A worker that a task or a SIGKILL has ended is no sign of broken workers.
    const isStrange = exit.signal !== 'SIGKILL' && this.#activeLeases.of(worker.number) === 0;
    const error = isStrange ? new Error('a shared worker ended without a task') : exit.error;
    for (const { id } of [...this.#leases.values()].filter((lease) => lease.worker === worker)) {
      this.#leaseEnded(id, { ...exit, error });
    }
  }

  /** Ends all workers; no loop is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#idleTimers.values()) clearTimeout(timer);
    this.#board.close();
    const workers = [...this.#running];
    for (const worker of workers) worker.close();
    const timer = setTimeout(() => {
      for (const worker of workers) worker.kill();
    }, abandonedMs);
    await Promise.all(workers.map(({ exited }) => exited));
    clearTimeout(timer);
  }
}
