// A deployment on the director's side: its instances, with their loops, and one change at a time.

import { CodedError } from '../../errors.js';
import { invalid, Lifecycle } from '../../lib/index.js';
import { checkInstances, type FilledDeployOptions, healthTimeoutMs } from '../options.js';
import type { InstanceId, UnitSource } from '../protocol.js';
import type { Deployment, InstanceHealth, InstanceState, InstanceStatus } from '../types.js';

/** An instance on the director's side. */
export interface Placed {
  readonly deployment: number;
  readonly instance: number;
  /** `undefined` while it is lost. */
  loop: number | undefined;
  pid: number | undefined;
  state: InstanceState;
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
  /** Moves one; it is on that loop then, or still where it was. */
  readonly move: (placed: Placed, loop: number) => Promise<void>;
  readonly health: (timeoutMs: number) => Promise<InstanceHealth[]>;
  readonly onEnded: () => void;
}

type State = 'running' | 'ending' | 'ended';

export class DirectedDeployment implements Deployment {
  readonly id: number;
  readonly name: string;
  readonly source: UnitSource;
  readonly options: FilledDeployOptions;
  readonly config: unknown;
  readonly parent: InstanceId | undefined;
  readonly #parts: DeploymentParts;
  readonly #life: Lifecycle<State>;
  #placed: Placed[] = [];
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

  mayHaveChildren(instance: number): boolean {
    const placed = this.#placed.find((each) => each.instance === instance);
    return placed !== undefined && ['starting', 'running', 'moving'].includes(placed.state);
  }

  /** Rejects with `UNIT_START_FAILED`; then it has ended. */
  async begin(): Promise<void> {
    try {
      await this.#inTurn(() => this.#add(this.options.instances));
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async #add(count: number): Promise<void> {
    const first = this.#placed.length;
    const added = this.#parts.place(count).map(({ loop, pid }, at): Placed => {
      return { deployment: this.id, instance: first + at, loop, pid, state: 'starting' };
    });
    this.#placed.push(...added);
    try {
      await this.#parts.start(added);
    } catch (error) {
      this.#placed = this.#placed.filter((each) => !added.includes(each));
      throw error;
    }
  }

  /** The loop has ended: returns its instances, as `lost` where they are to start again. */
  loopEnded(loop: number): readonly Placed[] {
    const left = this.#placed.filter((each) => each.loop === loop);
    for (const each of left) {
      // A pending start or move fails by itself, and a stop has done its work.
      if (each.state === 'running') each.state = 'lost';
      each.loop = undefined;
      each.pid = undefined;
    }
    return left;
  }

  async status(): Promise<readonly InstanceStatus[]> {
    return this.#placed.map(({ instance, loop, pid, state }) => ({ instance, loop, pid, state }));
  }

  async health({ timeoutMs = healthTimeoutMs } = {}): Promise<readonly InstanceHealth[]> {
    return await this.#parts.health(timeoutMs);
  }

  async scale(instances: number): Promise<void> {
    checkInstances(instances, 0);
    await this.#inTurn(async () => {
      const missing = instances - this.#placed.length;
      if (missing > 0) await this.#add(missing);
      else if (missing < 0) await this.#remove(this.#placed.slice(instances));
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

  async #remove(some: readonly Placed[]): Promise<void> {
    try {
      await this.#parts.stop(some);
    } finally {
      this.#placed = this.#placed.filter((each) => !some.includes(each));
    }
  }

  undeploy(): Promise<void> {
    if (this.#life.is('ended')) return this.#undeployed ?? Promise.resolve();
    this.#undeployed ??= this.#inTurn(async () => {
      this.#life.transition('ending');
      try {
        await this.#remove(this.#placed);
      } finally {
        this.#end();
      }
    });
    return this.#undeployed;
  }

  #end(): void {
    this.#life.tryTransition('ending');
    this.#life.tryTransition('ended');
    this.#parts.onEnded();
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
