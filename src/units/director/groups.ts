// The groups of a director: made and ended as a whole, and found by their deployments.

import { fillDeployAll } from '../options.js';
import type { DeployAllOptions, Deployment, DeployOptions, GroupMember } from '../types.js';
import type { DirectedDeployment } from './deployment.js';
import { DirectedGroup, type GroupRestarts } from './group.js';

export interface GroupsParts {
  /** Returns an id that no deployment and no group has. */
  readonly newId: () => number;
  readonly restarts: GroupRestarts;
  /** Rejects as `Director.deploy`. */
  readonly deploy: (
    unit: unknown,
    options: DeployOptions,
    group: DirectedGroup,
  ) => Promise<Deployment>;
}

export class Groups {
  /** By deployment. */
  readonly #groups = new Map<number, DirectedGroup>();

  /** Deploys units in order, all or none. Rejects as `deploy`, and with `UNIT_FAILED`. */
  async deployAll(
    units: readonly GroupMember[],
    given: DeployAllOptions | undefined,
    { newId, restarts, deploy }: GroupsParts,
  ): Promise<DirectedGroup> {
    const { strategy, restarts: intensity } = fillDeployAll(units, given);
    const group = new DirectedGroup({ id: newId(), strategy, intensity, restarts });
    try {
      for (const { unit, ...options } of units) {
        if (!group.isLive) break;
        await deploy(unit, options, group).catch((error: unknown) => group.startFailed(error));
      }
      group.begin();
      return group;
    } catch (error) {
      await group.undeploy().catch(() => {}); // the first error counts
      throw error;
    }
  }

  add(member: DirectedDeployment, group: DirectedGroup): void {
    this.#groups.set(member.id, group);
    group.add(member);
  }

  /** The deployment has ended. */
  delete(member: DirectedDeployment): void {
    const group = this.#groups.get(member.id);
    this.#groups.delete(member.id);
    group?.memberEnded(member);
  }

  /** Returns the group that decides on restarts of a deployment. */
  ruling(deployment: number): DirectedGroup | undefined {
    const group = this.#groups.get(deployment);
    return group?.isOver === true ? undefined : group;
  }

  /** Returns the group with this id; `undefined`: all its deployments have ended. */
  find(id: number): DirectedGroup | undefined {
    return [...this.#groups.values()].find((each) => each.id === id);
  }

  /** Returns each deployment, or its group in its place. */
  together(
    deployments: readonly DirectedDeployment[],
  ): readonly (DirectedDeployment | DirectedGroup)[] {
    return [...new Set(deployments.map((each) => this.#groups.get(each.id) ?? each))];
  }
}
