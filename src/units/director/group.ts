// A group: units that were deployed together, and restart together when an instance of one is lost or fails, by the
// strategies of Erlang's supervisors. One restart runs at a time: it stops what it concerns, the last unit first,
// and starts it in order. A loss meanwhile joins it: the restart goes back to the first unit that it concerns.
// Failures count for the group. docs/design/groups.md has the rules.
// Not here: where lost instances start (restarts.ts), and why they were lost.

import { CodedError } from '../../errors.js';
import {
  type Deferred,
  defer,
  type IntensityOptions,
  Lifecycle,
  RestartIntensity,
  setTimeout,
} from '../../lib/index.js';
import { groupFailed } from '../errors.js';
import type { GroupAnswer } from '../protocol.js';
import type { Deployment, DeploymentGroup, RestartStrategy } from '../types.js';
import type { DirectedDeployment, Placed } from './deployment.js';

/** The part of restarts that a group uses. */
export interface GroupRestarts {
  /** Starts lost instances, as soon as loops are there. */
  readonly begin: (lost: readonly Placed[]) => void;
  /** True: its start is under way. */
  readonly isPending: (placed: Placed) => boolean;
  /** Forgets the restarts of a deployment that has failed. */
  readonly forget: (deployment: number) => void;
  /** Resolves when no start of these is under way; those that have not begun never begin. */
  readonly withdraw: (placed: readonly Placed[]) => Promise<void>;
}

export interface GroupParts {
  readonly id: number;
  readonly strategy: RestartStrategy;
  readonly intensity: IntensityOptions;
  readonly restarts: GroupRestarts;
}

/** A restart that is due. */
interface Wanted {
  /** Units from this one on are stopped. */
  readonly stopFrom: number;
  /** Units from this one on are started, as far as they do not run. */
  readonly startFrom: number;
  /** Time before the first start, in ms. */
  readonly delayMs: number;
}

/** `starting`: losses wait until all units run. */
type State = 'starting' | 'running' | 'failed' | 'ending' | 'ended';

export class DirectedGroup implements DeploymentGroup {
  readonly id: number;
  readonly ended: Promise<void>;
  readonly intensity: RestartIntensity;
  readonly #parts: GroupParts;
  readonly #ended = defer<void>();
  readonly #members: DirectedDeployment[] = [];
  readonly #left = new Set<DirectedDeployment>();
  readonly #life: Lifecycle<State>;
  #wanted: Wanted | undefined;
  #running: Promise<void> | undefined;
  #changed: Deferred<void> = defer();
  #failing: Promise<void> | undefined;
  #failure: CodedError | undefined;
  /** True: all its instances have been given up. */
  #isGivenUp = false;
  #undeployed: Promise<void> | undefined;

  constructor(parts: GroupParts) {
    this.id = parts.id;
    this.#parts = parts;
    this.intensity = new RestartIntensity(parts.intensity);
    this.ended = this.#ended.promise;
    this.ended.catch(() => {}); // without a waiter it must not be unhandled
    this.#life = new Lifecycle(`group ${parts.id}`, 'starting', {
      starting: ['running', 'failed', 'ending'],
      running: ['failed', 'ending'],
      failed: ['ending'],
      ending: ['ended'],
      ended: [],
    });
  }

  get deployments(): readonly Deployment[] {
    return [...this.#members];
  }

  /** The answer to its deployment from a loop. */
  get answer(): GroupAnswer {
    return { id: this.id, deployments: this.#members.map(({ id, name }) => ({ id, name })) };
  }

  /** True: its units are on their own. */
  get isOver(): boolean {
    return this.#isGivenUp || this.#life.is('ended');
  }

  /** True: its units start again together. */
  get isLive(): boolean {
    return this.#life.is('starting', 'running');
  }

  add(member: DirectedDeployment): void {
    this.#members.push(member);
    this.#left.add(member);
  }

  /** All its units run. Throws `UNIT_FAILED` when it was given up meanwhile, and `UNIT_UNDEPLOYED`. */
  begin(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (!this.#life.tryTransition('running')) {
      const message = 'the group was undeployed while its units started: deploy it again';
      throw new CodedError('UNIT_UNDEPLOYED', message);
    }
    this.#runIfWanted();
  }

  /** A first start has failed: throws `error`, unless the group ends; then `begin` throws the reason. */
  startFailed(error: unknown): void {
    if (this.isLive) throw error;
  }

  /** A unit was undeployed. */
  memberEnded(member: DirectedDeployment): void {
    this.#left.delete(member);
    this.changed();
    if (!this.#life.is('starting')) this.#endIfEmpty();
  }

  #endIfEmpty(): void {
    if (this.#left.size > 0) return;
    this.#life.tryTransition('ending');
    if (!this.#life.tryTransition('ended')) return;
    this.#ended.resolve();
  }

  /** The state of an instance has changed. */
  changed(): void {
    this.#changed.resolve();
    this.#changed = defer();
  }

  /** Starts lost instances again, with those that restart with them, after a delay in ms. */
  lost(placed: readonly Placed[], delayMs: number): void {
    if (!this.isLive) return;
    const { strategy, restarts } = this.#parts;
    if (strategy === 'one-for-one') {
      if (delayMs === 0) restarts.begin(placed);
      else setTimeout(() => this.isLive && restarts.begin(placed), delayMs).unref();
      return;
    }
    const numbers = placed.map(({ deployment }) =>
      this.#members.findIndex(({ id }) => id === deployment),
    );
    const first = strategy === 'one-for-all' ? 0 : Math.min(...numbers);
    const stopFrom = strategy === 'one-for-all' ? 0 : first + 1;
    this.#want({ stopFrom, startFrom: first, delayMs });
    this.#runIfWanted();
  }

  #want({ stopFrom, startFrom, delayMs }: Wanted): void {
    const before = this.#wanted ?? { stopFrom: Infinity, startFrom: Infinity, delayMs: 0 };
    this.#wanted = {
      stopFrom: Math.min(before.stopFrom, stopFrom),
      startFrom: Math.min(before.startFrom, startFrom),
      delayMs: Math.max(before.delayMs, delayMs),
    };
    this.changed();
  }

  #runIfWanted(): void {
    if (this.#wanted === undefined || !this.#life.is('running')) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      this.#runIfWanted();
    });
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (this.#wanted !== undefined && this.#life.is('running')) {
      await this.#stop();
      await this.#start();
    }
  }

  /** Stops what is wanted; a loss meanwhile may want more. */
  async #stop(): Promise<void> {
    for (let at = this.#members.length - 1; at >= (this.#wanted?.stopFrom ?? 0); at -= 1) {
      const member = this.#members[at];
      if (member === undefined || !this.#left.has(member) || !this.isLive) continue;
      await this.#parts.restarts.withdraw(member.placed);
      await member.stopToRestart().catch(() => {}); // it was undeployed meanwhile
    }
  }

  async #start(): Promise<void> {
    const wanted = this.#wanted;
    this.#wanted = undefined;
    if (wanted === undefined) return;
    if (wanted.delayMs > 0) await this.#pause(wanted.delayMs);
    for (let at = wanted.startFrom; at < this.#members.length && !this.#isInterrupted; at += 1) {
      const member = this.#members[at];
      if (member !== undefined && this.#left.has(member)) await this.#startMember(member);
    }
    // The restart that interrupts this one starts the rest, too.
    if (this.#isInterrupted) this.#want({ ...wanted, stopFrom: Infinity, delayMs: 0 });
  }

  get #isInterrupted(): boolean {
    return this.#wanted !== undefined || !this.isLive;
  }

  async #pause(delayMs: number): Promise<void> {
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      this.changed();
    }, delayMs);
    while (!isOver && !this.#isInterrupted) await this.#changed.promise;
    clearTimeout(timer);
  }

  async #startMember({ placed }: DirectedDeployment): Promise<void> {
    const { restarts } = this.#parts;
    const lost = placed.filter(({ state }) => state === 'lost');
    const isStarting = (each: Placed): boolean => each.state === 'lost' || restarts.isPending(each);
    restarts.begin(lost);
    while (!this.#isInterrupted && lost.some(isStarting)) await this.#changed.promise;
  }

  /** Ends all instances, after too many failures. */
  giveUp(placed: readonly Placed[], why: string): void {
    if (!this.#life.tryTransition('failed')) return;
    const ids = new Set(placed.map(({ deployment }) => deployment));
    const guilty = this.#members.filter(({ id }) => ids.has(id)).map(({ name }) => name);
    const names = this.#members.map(({ name }) => name);
    this.#failure = groupFailed(names, guilty, why);
    this.changed();
    this.#failing = this.#fail(this.#failure);
  }

  /** Never rejects. */
  async #fail(error: CodedError): Promise<void> {
    await this.#running;
    for (const each of [...this.#members].reverse()) {
      if (!this.#left.has(each)) continue;
      await this.#parts.restarts.withdraw(each.placed);
      await each.failAll(error).catch(() => {}); // it was undeployed meanwhile
      this.#parts.restarts.forget(each.id);
    }
    this.#isGivenUp = true;
    this.#ended.reject(error);
  }

  undeploy(): Promise<void> {
    this.#undeployed ??= this.#undeploy();
    return this.#undeployed;
  }

  async #undeploy(): Promise<void> {
    this.#life.tryTransition('ending');
    this.changed();
    await this.#failing;
    let failure: { readonly error: unknown } | undefined;
    for (const each of [...this.#members].reverse()) {
      await each.undeploy().catch((error: unknown) => {
        failure ??= { error };
      });
    }
    this.#endIfEmpty();
    if (failure !== undefined) throw failure.error;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.undeploy();
  }
}
