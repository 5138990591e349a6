// The workers of a server, which all loops of all its processes share: `run`, `parallel` and `pmap` of a
// program in P × L loops have one worker for each core, not P × L times as many. A loop that needs a worker
// asks for a place in one where it has none; then the two talk directly (worker/shared-entry.ts), and the
// supervisor hears of them again when a place is empty or one of them has ended.

import { setTimeout as wait } from 'node:timers/promises';
import { CodedError } from '../errors.js';
import { errorOf } from '../internal/index.js';
import { callNative, type NativeBoard, requireNative } from '../native.js';
import { rssBytesOf } from '../proc/index.js';
import { type GivenPlace, SharedProcess, Turns, type WorkerExit } from '../worker/index.js';
import type { Owner } from './owner.js';

/** Nobody has had a place in a worker for so long: it leaves, in ms. */
const idleMs = 10_000;
/** A task whose parent is gone may end by its signal for so long, then its worker is killed; in ms. */
const abandonedMs = 2000;
/** A worker that a loop had for itself has left so long after its parent, in ms. */
const ownWorkersLeaveMs = 1000;
/** After the drain of a server without a supervisor, in ms. */
const orphanGraceMs = 2000;

/** Of the server. */
export interface WorkersOptions {
  readonly owner: Owner | undefined;
  readonly drainTimeoutMs: number;
  /** A worker with more is replaced; `Infinity`: never. */
  readonly maxRssBytes: number;
}

/** A loop, as long as it lives. */
export interface Tenant {
  readonly process: TenantProcess;
  /** Its number there, which is not used again. */
  readonly loop: number;
}

/** Stands for a process of the server. */
export interface TenantProcess {
  readonly pid: number | undefined;
}

export interface PlaceEvents {
  onGiven(place: GivenPlace): void;
  /** Once; nothing follows. */
  onEnded(exit: WorkerExit): void;
}

interface Place {
  readonly tenant: Tenant;
  readonly request: number;
  readonly id: number;
  readonly worker: SharedProcess;
  readonly events: PlaceEvents;
}

export class Workers {
  readonly count: number;
  readonly #owner: Owner | undefined;
  readonly #orphanMs: number;
  readonly #board: NativeBoard;
  readonly #turns: Turns;
  /** By their numbers. */
  readonly #workers: (SharedProcess | undefined)[];
  readonly #places = new Map<number, Place>();
  readonly #idleTimers = new Map<SharedProcess, NodeJS.Timeout>();
  readonly #maxRssBytes: number;
  /** They end once nobody has a place in them. */
  readonly #worn = new Set<SharedProcess>();
  /** All that have not exited. */
  readonly #running = new Set<SharedProcess>();
  #lastPlace = 0;
  #isClosed = false;

  /** None is started yet. Throws `NATIVE_REFUSED`. */
  constructor(count: number, { owner, drainTimeoutMs, maxRssBytes }: WorkersOptions) {
    this.count = count;
    this.#owner = owner;
    this.#maxRssBytes = maxRssBytes;
    this.#orphanMs = drainTimeoutMs + orphanGraceMs;
    // While worn ones end, there are others instead.
    const numbers = 2 * count;
    this.#board = callNative(() => requireNative().NativeBoard.create(numbers, 1));
    this.#turns = new Turns(this.#board);
    this.#workers = new Array(numbers).fill(undefined);
  }

  /** The memory of `Turns`, for the processes. */
  get turnsFd(): number {
    return this.#board.fd();
  }

  /**
   * A loop asks for a place, by a number of its own; the descriptors stay the caller's. What goes wrong
   * is an `onEnded` with the error.
   */
  join(tenant: Tenant, request: number, fds: readonly number[], events: PlaceEvents): void {
    this.#lastPlace += 1;
    const id = this.#lastPlace;
    try {
      if (this.#isClosed) throw new CodedError('SERVE_CLOSED', 'the server is closed');
      const worker = this.#workerFor(tenant);
      clearTimeout(this.#idleTimers.get(worker));
      this.#places.set(id, { tenant, request, id, worker, events });
      worker.join(id, tenant.process.pid ?? 0, fds);
      events.onGiven({ worker: worker.worker, pid: worker.pid, place: id });
    } catch (thrown) {
      const error = errorOf(thrown);
      const exit = { exitCode: null, signal: null, error };
      if (this.#places.has(id)) this.#parted(id, exit);
      else events.onEnded(exit);
    }
  }

  /**
   * One in which it has no place, and which is not worn: that has nothing to do, a new one, or the one
   * with the fewest tenants.
   */
  #workerFor(tenant: Tenant): SharedProcess {
    const taken = new Set(this.#placesOf(tenant).map(({ worker }) => worker));
    const others = this.#workers.filter(
      (worker): worker is SharedProcess =>
        worker !== undefined && !taken.has(worker) && !this.#worn.has(worker),
    );
    const rank = (worker: SharedProcess): number =>
      this.#tenantsOf(worker) + (this.#turns.of(worker.worker) === 0 ? 0 : this.#places.size);
    const [best] = others.sort((a, b) => rank(a) - rank(b));
    if (best !== undefined && this.#turns.of(best.worker) === 0) return best;
    const sound = this.#workers.filter((worker) => worker !== undefined && !this.#worn.has(worker));
    const number = this.#workers.indexOf(undefined);
    if (number >= 0 && sound.length < this.count) return this.#start(number);
    if (best !== undefined) return best;
    throw new CodedError(
      'WORKER_START_FAILED',
      'the loop has a place in every worker of the server',
    );
  }

  #start(number: number): SharedProcess {
    this.#turns.set(number, 0);
    const made = new SharedProcess({
      worker: number,
      turnsFd: this.turnsFd,
      uid: this.#owner?.uid,
      gid: this.#owner?.gid,
      orphanMs: this.#orphanMs,
      onParted: (id) => {
        if (this.#places.get(id)?.worker !== made) return;
        this.#parted(id, { exitCode: 0, signal: null, error: undefined });
      },
      onExit: (exit) => this.#exited(made, exit),
    });
    this.#workers[number] = made;
    this.#running.add(made);
    return made;
  }

  #placesOf({ process, loop }: Tenant): Place[] {
    return [...this.#places.values()].filter(
      ({ tenant }) => tenant.process === process && tenant.loop === loop,
    );
  }

  #tenantsOf(worker: SharedProcess | undefined): number {
    return [...this.#places.values()].filter((place) => place.worker === worker).length;
  }

  /** Asks whoever uses a worker that takes too much memory to go elsewhere. Called once in a while. */
  checkMemory(): void {
    if (this.#maxRssBytes === Infinity) return;
    for (const worker of this.#workers) {
      if (worker === undefined || rssBytesOf(worker.pid) <= this.#maxRssBytes) continue;
      this.#worn.add(worker);
      worker.retire();
      if (this.#tenantsOf(worker) === 0) this.#end(worker);
    }
  }

  /** A loop gives back a place; requests are numbered by its process. */
  part(process: TenantProcess, request: number): void {
    for (const { tenant, request: asked, worker, id } of this.#places.values()) {
      if (tenant.process === process && asked === request) worker.part(id);
    }
  }

  /**
   * The loop, or every loop of the process, has ended: what it has begun in workers is for nobody. Resolves
   * when none of them works for it any more, nor one that it had for itself: those leave by themselves.
   */
  async tenantEnded(process: TenantProcess, loop?: number): Promise<void> {
    const places = [...this.#places.values()].filter(
      ({ tenant }) => tenant.process === process && (loop === undefined || tenant.loop === loop),
    );
    for (const { worker, id } of places) {
      worker.part(id);
      this.#endAbandoned(worker, id);
    }
    const isOver = ({ worker, id }: Place): boolean =>
      !this.#running.has(worker) || !(this.#places.has(id) || this.#turns.of(worker.worker) === id);
    do await wait(ownWorkersLeaveMs, undefined, { ref: false });
    while (!places.every(isOver));
  }

  /** One that is in the middle of that loop's task does not hear it, and others wait for it. */
  #endAbandoned(worker: SharedProcess, id: number): void {
    const look = (): void => {
      if (!this.#places.has(id)) clearInterval(timer);
      else if (this.#turns.of(worker.worker) === id) worker.kill();
    };
    const timer = setInterval(look, abandonedMs).unref();
  }

  #parted(id: number, exit: WorkerExit): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    place.events.onEnded(exit);
    if (this.#tenantsOf(place.worker) > 0) return;
    if (this.#worn.has(place.worker)) this.#end(place.worker);
    else this.#endWhenIdle(place.worker);
  }

  #endWhenIdle(worker: SharedProcess): void {
    clearTimeout(this.#idleTimers.get(worker));
    this.#idleTimers.set(worker, setTimeout(() => this.#end(worker), idleMs).unref());
  }

  /** Nobody has a place in it. */
  #end(worker: SharedProcess): void {
    this.#forget(worker);
    worker.close();
  }

  /** It gets no place any more. */
  #forget(worker: SharedProcess): void {
    clearTimeout(this.#idleTimers.get(worker));
    this.#idleTimers.delete(worker);
    this.#worn.delete(worker);
    if (this.#workers[worker.worker] === worker) this.#workers[worker.worker] = undefined;
  }

  #exited(worker: SharedProcess, exit: WorkerExit): void {
    this.#forget(worker);
    this.#running.delete(worker);
    // A task that ends its worker says nothing of workers, nor does whoever kills one.
    const isStrange = exit.signal !== 'SIGKILL' && this.#turns.of(worker.worker) === 0;
    const error = isStrange ? new Error('a shared worker ended without a task') : exit.error;
    for (const { id } of [...this.#places.values()].filter((place) => place.worker === worker)) {
      this.#parted(id, { ...exit, error });
    }
  }

  /** Ends all; no loop is left. */
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
