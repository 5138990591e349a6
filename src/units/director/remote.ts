// Deployments on the side of a loop: requests to the director over the bus.

import { type Bus, setFollower } from '../../bus/index.js';
import { ask } from '../ask.js';
import { fillDeployAll, fillDeployOptions, healthTimeoutMs, sourceOf } from '../options.js';
import {
  directorAddress,
  type GroupAnswer,
  type InstanceId,
  parseDeployed,
  parseGroup,
  parseHealth,
  parseStatus,
  type ToDirector,
} from '../protocol.js';
import type {
  DeployAllOptions,
  Deployment,
  DeploymentGroup,
  GroupMember,
  InstanceHealth,
  InstanceStatus,
  UnitContext,
} from '../types.js';
import { remoteEnds } from './remote-ends.js';

type DeployAll = (
  units: readonly GroupMember[],
  options?: DeployAllOptions,
) => Promise<DeploymentGroup>;

/** Ending has deadlines of its own, in the loops. */
const noLimitMs = Infinity;

/** Returns `deploy` of an instance, whose children end before it does; of a loop without `parent`. */
export function remoteDeploy(bus: Bus, parent: InstanceId | undefined): UnitContext['deploy'] {
  return async (unit, options = {}) => {
    const source = sourceOf(unit); // a relative path is one of this process, and an invalid unit fails here
    fillDeployOptions(source, options);
    const named = source.kind === 'module' ? source.url : source.value;
    const message: ToDirector = { type: 'deploy', parent, unit: named, options };
    const deployed = parseDeployed(await ask(bus, directorAddress, message, noLimitMs));
    return new RemoteDeployment(bus, deployed);
  };
}

/** Returns `deployAll` of an instance, or of a loop, as `remoteDeploy`. */
export function remoteDeployAll(bus: Bus, parent: InstanceId | undefined): DeployAll {
  return async (units, options = {}) => {
    fillDeployAll(units, options);
    const named = units.map(({ unit, ...own }) => {
      const source = sourceOf(unit); // as in `remoteDeploy`
      return { ...own, unit: source.kind === 'module' ? source.url : unit };
    });
    const message: ToDirector = { type: 'deployAll', parent, units: named, options };
    return new RemoteGroup(bus, parseGroup(await ask(bus, directorAddress, message, noLimitMs)));
  };
}

class RemoteGroup implements DeploymentGroup {
  readonly deployments: readonly Deployment[];
  readonly #id: number;
  readonly #bus: Bus;
  #ended: Promise<void> | undefined;

  constructor(bus: Bus, { id, deployments }: GroupAnswer) {
    this.#id = id;
    this.#bus = bus;
    this.deployments = deployments.map((each) => new RemoteDeployment(bus, each));
  }

  get ended(): Promise<void> {
    if (this.#ended === undefined) {
      const message = { type: 'awaitGroupEnd', group: this.#id } as const;
      this.#ended = ask(this.#bus, directorAddress, message, noLimitMs).then(() => {});
      this.#ended.catch(() => {}); // without a waiter it must not be unhandled
    }
    return this.#ended;
  }

  async undeploy(): Promise<void> {
    const message = { type: 'undeployGroup', group: this.#id } as const;
    await ask(this.#bus, directorAddress, message, noLimitMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.undeploy();
  }
}

class RemoteDeployment implements Deployment {
  readonly id: number;
  readonly name: string;
  readonly #bus: Bus;
  #ended: Promise<void> | undefined;

  constructor(bus: Bus, { id, name }: { readonly id: number; readonly name: string }) {
    this.id = id;
    this.name = name;
    this.#bus = bus;
    setFollower(this, remoteEnds(bus, this));
  }

  get ended(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = this.#ask({ type: 'awaitEnd', deployment: this.id }).then(() => {});
      this.#ended.catch(() => {}); // without a waiter it must not be unhandled
    }
    return this.#ended;
  }

  async status(): Promise<readonly InstanceStatus[]> {
    return parseStatus(await this.#ask({ type: 'status', deployment: this.id }));
  }

  async health({ timeoutMs = healthTimeoutMs } = {}): Promise<readonly InstanceHealth[]> {
    return parseHealth(await this.#ask({ type: 'askHealth', deployment: this.id, timeoutMs }));
  }

  async scale(instances: number): Promise<void> {
    await this.#ask({ type: 'scale', deployment: this.id, instances });
  }

  async move(instance: number, loop: number): Promise<void> {
    await this.#ask({ type: 'move', deployment: this.id, instance, loop });
  }

  async redeploy(): Promise<void> {
    await this.#ask({ type: 'redeploy', deployment: this.id });
  }

  async undeploy(): Promise<void> {
    await this.#ask({ type: 'undeploy', deployment: this.id });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.undeploy();
  }

  async #ask(message: ToDirector): Promise<unknown> {
    return await ask(this.#bus, directorAddress, message, noLimitMs);
  }
}
