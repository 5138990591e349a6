// A deployment on the director's side: its instances, with their loops, and one change at a time.

import { setFollower } from '../../bus/index.js';
import { CodedError } from '../../errors.js';
import { announcements, defer, invalid, Lifecycle, messageOf } from '../../lib/index.js';
import { startFailed, unitStack } from '../errors.js';
import { checkInstances, type FilledDeployOptions, healthTimeoutMs } from '../options.js';
import type { InstanceId, UnitSource } from '../protocol.js';
import type { Deployment, InstanceHealth, InstanceState, InstanceStatus } from '../types.js';
import { InstanceEnds } from './instance-ends.js';

/** An instance on the director's side. */
export interface Placed {
  readonly deployment: number;
  readonly instance: number;
  /** `undefined` while it is lost. */
  loop: number | undefined;
  pid: number | undefined;
  state: InstanceState;
  /** That of its code, once it runs; `undefined` for one that came as a value. */
  version: string | undefined;
  /** True: it starts again after a loss. */
  isRestarting: boolean;
}

/** The director's methods for a deployment. */
export interface DeploymentParts {
  readonly id: number;
  readonly source: UnitSource;
  readonly options: FilledDeployOptions;
  readonly parent: InstanceId | undefined;
  /** Chooses loops for `count` more instances. Throws `UNIT_START_FAILED`. */
  readonly place: (count: number) => readonly { readonly loop: number; readonly pid: number }[];
  /** Starts all or none. */
  readonly start: (placed: readonly Placed[]) => Promise<void>;
  /** Stops all; they are gone even when it rejects. */
  readonly stop: (placed: readonly Placed[]) => Promise<void>;
  /** Resolves when no start of these after a loss is under way. Never rejects. */
  readonly settled: (placed: readonly Placed[]) => Promise<void>;
  /** Moves one; it is on that loop then, or still where it was. */
  readonly move: (placed: Placed, loop: number) => Promise<void>;
  /** Replaces all by the code that their file has now, or none. */
  readonly redeploy: () => Promise<void>;
  readonly health: (timeoutMs: number) => Promise<InstanceHealth[]>;
  readonly onEnded: () => void;
}

/** The reason of an end by a restart of others. */
const ofGroup = 'another instance of its group was lost or failed';

type State = 'running' | 'ending' | 'ended';

export class DirectedDeployment implements Deployment {
  readonly id: number;
  readonly name: string;
  /** A module has the version of the last deployment. */
  source: UnitSource;
  readonly options: FilledDeployOptions;
  readonly config: unknown;
  readonly parent: InstanceId | undefined;
  readonly ended: Promise<void>;
  readonly ends: InstanceEnds;
  readonly #ended = defer<void>();
  readonly #parts: DeploymentParts;
  readonly #life: Lifecycle<State>;
  #placed: Placed[] = [];
  /** Instances that are being removed: they do not start again. */
  readonly #leaving = new WeakSet<Placed>();
  #change: Promise<unknown> = Promise.resolve();
  #undeployed: Promise<void> | undefined;

  constructor(parts: DeploymentParts) {
    this.id = parts.id;
    this.source = parts.source;
    this.options = parts.options;
    this.name = parts.options.name;
    this.config = parts.options.config;
    this.parent = parts.parent;
    this.#parts = parts;
    this.ends = new InstanceEnds(parts.id, parts.options.name);
    setFollower(this, this.ends.follow);
    this.ended = this.#ended.promise;
    this.ended.catch(() => {}); // without a waiter it must not be unhandled
    this.#life = new Lifecycle(`deployment ${parts.id}`, 'running', {
      running: ['ending'],
      ending: ['ended'],
      ended: [],
    });
  }

  /** The instances, by number. */
  get placed(): readonly Placed[] {
    return this.#placed;
  }

  /** False: the instance is removed, or is about to be. */
  keeps(placed: Placed): boolean {
    return this.#placed.includes(placed) && !this.#leaving.has(placed);
  }

  mayHaveChildren(instance: number): boolean {
    const placed = this.#placed.find((each) => each.instance === instance);
    return placed !== undefined && ['starting', 'running', 'moving'].includes(placed.state);
  }

  /** Rejects with `UNIT_START_FAILED`, also where it was undeployed meanwhile; then it has ended. */
  async begin(): Promise<void> {
    try {
      await this.#inTurn(() => this.#startUpTo(this.options.instances));
    } catch (error) {
      this.#end();
      throw error;
    }
    if (this.#undeployed === undefined) return;
    // The answers of the loops have crossed the undeployment, which reports its own error.
    await this.#undeployed.catch(() => {});
    throw startFailed(this.name, new Error('it was undeployed meanwhile: deploy it again'));
  }

  /** Starts those below this number that are missing or failed, all or none. */
  async #startUpTo(count: number): Promise<void> {
    const failed = this.#placed.filter(
      ({ instance, state }) => state === 'failed' && instance < count,
    );
    const kept = this.#placed.filter((each) => !failed.includes(each));
    const taken = new Set(kept.map(({ instance }) => instance));
    const numbers = Array.from({ length: count }, (_, at) => at).filter((at) => !taken.has(at));
    if (numbers.length === 0) return;
    const places = this.#parts.place(numbers.length);
    const added = numbers.map((instance, at): Placed => {
      const place = { loop: places[at]?.loop, pid: places[at]?.pid };
      const state = { state: 'starting', version: undefined, isRestarting: false } as const;
      return { deployment: this.id, instance, ...place, ...state };
    });
    this.#placed = inOrder([...kept, ...added]);
    try {
      await this.#parts.start(added);
    } catch (error) {
      const others = this.#placed.filter((each) => !added.includes(each));
      this.#placed = inOrder([...others, ...failed]);
      throw error;
    }
  }

  /** Gives instances up, which have no loop. */
  fail(placed: readonly Placed[], error: CodedError): void {
    for (const each of placed) {
      each.state = 'failed';
      this.ends.report(each, 'failed', error.message);
    }
    this.#ended.reject(error);
  }

  /** Stops its instances, which are `lost` then. Rejects with `UNIT_UNDEPLOYED`. */
  async stopToRestart(): Promise<void> {
    await this.#inTurn(async () => {
      const stopped = await this.#stopRunning('again');
      for (const each of stopped) this.ends.report(each, 'restarted', ofGroup);
    });
  }

  /** Stops its instances, and gives them up. Rejects with `UNIT_UNDEPLOYED`. */
  async failAll(error: CodedError): Promise<void> {
    await this.#inTurn(async () => {
      await this.#stopRunning('never');
      this.fail(this.#placed, error);
      const instances = this.#placed.map(({ instance }) => instance);
      const { name: unit, id: deployment } = this;
      announcements.unitFailed.publish({ unit, deployment, instances, error });
    });
  }

  /** Returns those that it has stopped. */
  async #stopRunning(next: 'again' | 'never'): Promise<readonly Placed[]> {
    const running = this.#placed.filter(({ state }) => state === 'running');
    await this.#parts.stop(running).catch((error: unknown) => {
      const stack = unitStack(error);
      const lost = { unit: this.name, deployment: this.id, why: messageOf(error), stack };
      const instances = running.map(({ instance }) => instance);
      announcements.unitLost.publish({ ...lost, instances, next, delayMs: undefined });
    });
    for (const each of running) {
      Object.assign(each, { loop: undefined, pid: undefined, state: 'lost' });
    }
    return running;
  }

  get hasFailed(): boolean {
    return this.#placed.every(({ state }) => state === 'failed');
  }

  /** The loop has ended: returns its instances, as `lost` where they are to start again. */
  loopEnded(loop: number): readonly Placed[] {
    const left = this.#placed.filter((each) => each.loop === loop);
    for (const each of left) {
      if (each.state === 'running') this.ends.add(each);
      // A pending start or move fails by itself, and a stop has done its work.
      if (each.state === 'running' || each.isRestarting) each.state = 'lost';
      each.loop = undefined;
      each.pid = undefined;
    }
    return left;
  }

  async status(): Promise<readonly InstanceStatus[]> {
    return this.#placed.map(({ instance, loop, pid, state, version }) => ({
      instance,
      loop,
      pid,
      state,
      version,
    }));
  }

  async health({ timeoutMs = healthTimeoutMs } = {}): Promise<readonly InstanceHealth[]> {
    return await this.#parts.health(timeoutMs);
  }

  async scale(instances: number): Promise<void> {
    checkInstances(instances, 0);
    await this.#inTurn(async () => {
      const surplus = this.#placed.slice(instances);
      if (surplus.length > 0) await this.#remove(surplus);
      await this.#startUpTo(instances);
    });
  }

  async move(instance: number, loop: number): Promise<void> {
    await this.#inTurn(async () => {
      const placed = this.#placed.find((each) => each.instance === instance);
      if (placed === undefined) {
        const last = this.#placed.length - 1;
        throw invalid('instance', instance, `the number of one of ${this.name}, from 0 to ${last}`);
      }
      if (placed.loop !== loop) await this.#parts.move(placed, loop);
    });
  }

  async redeploy(): Promise<void> {
    await this.#inTurn(() => this.#parts.redeploy());
  }

  async #remove(some: readonly Placed[]): Promise<void> {
    const there = some.filter(({ state }) => state === 'running');
    for (const each of some) {
      this.ends.lost(each, 'its loop has ended');
      this.#leaving.add(each);
    }
    try {
      await this.#parts.stop(some);
    } finally {
      await this.#parts.settled(some);
      const late = some.filter(({ state }) => state === 'running'); // the stop came before the start
      await this.#parts.stop(late).catch(() => {}); // the first error counts
      this.#placed = this.#placed.filter((each) => !some.includes(each));
      for (const each of there) this.ends.report(each, 'undeployed', 'it was undeployed');
    }
  }

  undeploy(): Promise<void> {
    if (this.#life.is('ended')) return this.#undeployed ?? Promise.resolve();
    this.#undeployed ??= this.#undeploy();
    return this.#undeployed;
  }

  /** A start in progress is ended first, or its turn would last until its deadline. */
  async #undeploy(): Promise<void> {
    const starting = this.#placed.filter(({ state }) => state === 'starting');
    const cancelled = starting.length === 0 ? undefined : this.#parts.stop(starting);
    cancelled?.catch(() => {}); // awaited below
    await this.#change;
    if (this.#life.is('running')) {
      await this.#inTurn(async () => {
        this.#life.transition('ending');
        try {
          await this.#remove(this.#placed);
        } finally {
          this.#end();
        }
      });
    }
    await cancelled;
  }

  #end(): void {
    this.#life.tryTransition('ending');
    this.#life.tryTransition('ended');
    this.ends.close();
    this.#parts.onEnded();
    this.#ended.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.undeploy();
  }

  /** Makes one change after the other. */
  #inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.#change.then(async () => {
      if (!this.#life.is('running')) {
        const message = `${this.name} has ended: deploy it again`;
        throw new CodedError('UNIT_UNDEPLOYED', message);
      }
      await change();
    });
    this.#change = done.catch(() => {});
    return done;
  }
}

function inOrder(placed: readonly Placed[]): Placed[] {
  return [...placed].sort((a, b) => a.instance - b.instance);
}

/** Instances by loop, to be started or stopped there. */
type ByLoop = ReadonlyMap<number, readonly Placed[]>;

export function byLoop(placed: readonly Placed[]): ByLoop {
  const loops = new Map<number, Placed[]>();
  for (const each of placed) {
    if (each.loop === undefined) continue;
    const there = loops.get(each.loop);
    if (there === undefined) loops.set(each.loop, [each]);
    else there.push(each);
  }
  return loops;
}
