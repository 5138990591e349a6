// The hosts of a server, which all loops of all its processes share: `run`, `parallel` and `pmap` of a
// program in P × L loops have one host for each core, not P × L times as many. A loop that needs a host
// asks for a place in one where it has none; then the two talk directly (host/shared-entry.ts), and the
// supervisor hears of them again when a place is empty or one of them has ended.

import { setTimeout as wait } from 'node:timers/promises';
import { CodedError } from '../errors.js';
import { type GivenPlace, type HostExit, SharedProcess, Turns } from '../host/index.js';
import { errorOf } from '../internal/index.js';
import { callNative, type NativeBoard, requireNative } from '../native.js';
import { rssBytesOf } from '../proc/index.js';
import type { Owner } from './owner.js';

/** Nobody has had a place in a host for so long: it leaves, in ms. */
const idleMs = 10_000;
/** A task whose parent is gone may end by its signal for so long, then its host is killed; in ms. */
const abandonedMs = 2000;
/** A host that a loop had for itself has left so long after its parent, in ms. */
const ownHostsLeaveMs = 1000;
/** After the drain of a server without a supervisor, in ms. */
const orphanGraceMs = 2000;

/** Of the server. */
export interface HostsOptions {
  readonly owner: Owner | undefined;
  readonly drainTimeoutMs: number;
  /** A host with more is replaced; `Infinity`: never. */
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
  onEnded(exit: HostExit): void;
}

interface Place {
  readonly tenant: Tenant;
  readonly request: number;
  readonly id: number;
  readonly host: SharedProcess;
  readonly events: PlaceEvents;
}

export class Hosts {
  readonly count: number;
  readonly #owner: Owner | undefined;
  readonly #orphanMs: number;
  readonly #board: NativeBoard;
  readonly #turns: Turns;
  /** By their numbers. */
  readonly #hosts: (SharedProcess | undefined)[];
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
  constructor(count: number, { owner, drainTimeoutMs, maxRssBytes }: HostsOptions) {
    this.count = count;
    this.#owner = owner;
    this.#maxRssBytes = maxRssBytes;
    this.#orphanMs = drainTimeoutMs + orphanGraceMs;
    // While worn ones end, there are others instead.
    const numbers = 2 * count;
    this.#board = callNative(() => requireNative().NativeBoard.create(numbers, 1));
    this.#turns = new Turns(this.#board);
    this.#hosts = new Array(numbers).fill(undefined);
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
      const host = this.#hostFor(tenant);
      clearTimeout(this.#idleTimers.get(host));
      this.#places.set(id, { tenant, request, id, host, events });
      host.join(id, tenant.process.pid ?? 0, fds);
      events.onGiven({ host: host.host, pid: host.pid, place: id });
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
  #hostFor(tenant: Tenant): SharedProcess {
    const taken = new Set(this.#placesOf(tenant).map(({ host }) => host));
    const others = this.#hosts.filter(
      (host): host is SharedProcess =>
        host !== undefined && !taken.has(host) && !this.#worn.has(host),
    );
    const rank = (host: SharedProcess): number =>
      this.#tenantsOf(host) + (this.#turns.of(host.host) === 0 ? 0 : this.#places.size);
    const [best] = others.sort((a, b) => rank(a) - rank(b));
    if (best !== undefined && this.#turns.of(best.host) === 0) return best;
    const sound = this.#hosts.filter((host) => host !== undefined && !this.#worn.has(host));
    const number = this.#hosts.indexOf(undefined);
    if (number >= 0 && sound.length < this.count) return this.#start(number);
    if (best !== undefined) return best;
    throw new CodedError('HOST_START_FAILED', 'the loop has a place in every host of the server');
  }

  #start(number: number): SharedProcess {
    this.#turns.set(number, 0);
    const made = new SharedProcess({
      host: number,
      turnsFd: this.turnsFd,
      uid: this.#owner?.uid,
      gid: this.#owner?.gid,
      orphanMs: this.#orphanMs,
      onParted: (id) => {
        if (this.#places.get(id)?.host !== made) return;
        this.#parted(id, { exitCode: 0, signal: null, error: undefined });
      },
      onExit: (exit) => this.#exited(made, exit),
    });
    this.#hosts[number] = made;
    this.#running.add(made);
    return made;
  }

  #placesOf({ process, loop }: Tenant): Place[] {
    return [...this.#places.values()].filter(
      ({ tenant }) => tenant.process === process && tenant.loop === loop,
    );
  }

  #tenantsOf(host: SharedProcess | undefined): number {
    return [...this.#places.values()].filter((place) => place.host === host).length;
  }

  /** Asks whoever uses a host that takes too much memory to go elsewhere. Called once in a while. */
  checkMemory(): void {
    if (this.#maxRssBytes === Infinity) return;
    for (const host of this.#hosts) {
      if (host === undefined || rssBytesOf(host.pid) <= this.#maxRssBytes) continue;
      this.#worn.add(host);
      host.retire();
      if (this.#tenantsOf(host) === 0) this.#end(host);
    }
  }

  /** A loop gives back a place; requests are numbered by its process. */
  part(process: TenantProcess, request: number): void {
    for (const { tenant, request: asked, host, id } of this.#places.values()) {
      if (tenant.process === process && asked === request) host.part(id);
    }
  }

  /**
   * The loop, or every loop of the process, has ended: what it has begun in hosts is for nobody. Resolves
   * when none of them works for it any more, nor one that it had for itself: those leave by themselves.
   */
  async tenantEnded(process: TenantProcess, loop?: number): Promise<void> {
    const places = [...this.#places.values()].filter(
      ({ tenant }) => tenant.process === process && (loop === undefined || tenant.loop === loop),
    );
    for (const { host, id } of places) {
      host.part(id);
      this.#endAbandoned(host, id);
    }
    const isOver = ({ host, id }: Place): boolean =>
      !this.#running.has(host) || !(this.#places.has(id) || this.#turns.of(host.host) === id);
    do await wait(ownHostsLeaveMs, undefined, { ref: false });
    while (!places.every(isOver));
  }

  /** One that is in the middle of that loop's task does not hear it, and others wait for it. */
  #endAbandoned(host: SharedProcess, id: number): void {
    const look = (): void => {
      if (!this.#places.has(id)) clearInterval(timer);
      else if (this.#turns.of(host.host) === id) host.kill();
    };
    const timer = setInterval(look, abandonedMs).unref();
  }

  #parted(id: number, exit: HostExit): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    place.events.onEnded(exit);
    if (this.#tenantsOf(place.host) > 0) return;
    if (this.#worn.has(place.host)) this.#end(place.host);
    else this.#endWhenIdle(place.host);
  }

  #endWhenIdle(host: SharedProcess): void {
    clearTimeout(this.#idleTimers.get(host));
    this.#idleTimers.set(host, setTimeout(() => this.#end(host), idleMs).unref());
  }

  /** Nobody has a place in it. */
  #end(host: SharedProcess): void {
    this.#forget(host);
    host.close();
  }

  /** It gets no place any more. */
  #forget(host: SharedProcess): void {
    clearTimeout(this.#idleTimers.get(host));
    this.#idleTimers.delete(host);
    this.#worn.delete(host);
    if (this.#hosts[host.host] === host) this.#hosts[host.host] = undefined;
  }

  #exited(host: SharedProcess, exit: HostExit): void {
    this.#forget(host);
    this.#running.delete(host);
    // A task that ends its host says nothing of hosts, nor does whoever kills one.
    const isStrange = exit.signal !== 'SIGKILL' && this.#turns.of(host.host) === 0;
    const error = isStrange ? new Error('a shared host ended without a task') : exit.error;
    for (const { id } of [...this.#places.values()].filter((place) => place.host === host)) {
      this.#parted(id, { ...exit, error });
    }
  }

  /** Ends all; no loop is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#idleTimers.values()) clearTimeout(timer);
    this.#board.close();
    const hosts = [...this.#running];
    for (const host of hosts) host.close();
    const timer = setTimeout(() => {
      for (const host of hosts) host.kill();
    }, abandonedMs);
    await Promise.all(hosts.map(({ exited }) => exited));
    clearTimeout(timer);
  }
}
