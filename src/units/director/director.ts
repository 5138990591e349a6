// The director: places instances on loops, and has the loops start and stop them. It lives in the process
// that started the loops. A change starts all its instances, or none stays. Placement is even: on the loop
// with the fewest of the deployment, among those the one with the fewest of all. Not here: restarts of lost
// instances (restarts.ts).
// Long (over 400 lines), because placing, starting, stopping and losing instances change one table.

import type { Bus } from '../../bus/index.js';
import type { ClusterTicket } from '../../cluster/index.js';
import { CodedError } from '../../errors.js';
import { announcements, invalid, messageOf, type ServerBlockedMessage } from '../../lib/index.js';
import type { LostProcess } from '../../serve/index.js';
import { ask } from '../ask.js';
import { silentLoop, startFailed, stopFailed } from '../errors.js';
import { blame } from '../loop/blame.js';
import { fillDeployOptions, sourceOf } from '../options.js';
import {
  farewellAddress,
  type InstanceId,
  loopAddress,
  parseHealth,
  parseVersion,
  type ToDirector,
} from '../protocol.js';
import type {
  DeployAllOptions,
  Deployment,
  DeployOptions,
  GroupMember,
  InstanceHealth,
} from '../types.js';
import { byLoop, DirectedDeployment, type Placed } from './deployment.js';
import type { DirectedGroup } from './group.js';
import { Groups } from './groups.js';
import type { LoopEntry } from './loop-entry.js';
import { moveInstance, startMessage } from './move.js';
import { spread } from './placement.js';
import { announceVersion, redeploy } from './redeploy.js';
import { sendEnds } from './remote-ends.js';
import { Restarts } from './restarts.js';

/** The processes under the loops. */
export interface Capacity {
  /** The number of loops when none is missing. */
  readonly loops: number;
  /** Starts one process more; rejects when that is impossible. */
  readonly grow: () => Promise<void>;
}

export class Director {
  /** The program's, for its loops; must be set before the first loop arrives. */
  cluster: ClusterTicket | undefined;
  readonly #bus: Bus;
  readonly #capacity: Capacity;
  readonly #onIdle: () => void;
  readonly #loops = new Map<number, LoopEntry>();
  readonly #deployments = new Map<number, DirectedDeployment>();
  readonly #groups = new Groups();
  readonly #restarts: Restarts;
  #lastId = 0;

  /** `onIdle` is called when the last deployment has ended. */
  constructor(bus: Bus, capacity: Capacity, onIdle: () => void) {
    this.#bus = bus;
    this.#capacity = capacity;
    this.#onIdle = onIdle;
    this.#restarts = new Restarts({
      capacity,
      loops: () => this.loops,
      deployments: () => [...this.#deployments.values()],
      ownerOf: (placed) => this.#ownerOf(placed),
      groupOf: ({ deployment }) => this.#groups.ruling(deployment),
      place: (deployment) => this.#place(deployment, 1)[0],
      start: (deployment, placed) => this.#start(deployment, [placed]),
    });
  }

  get loops(): readonly LoopEntry[] {
    const loops = [...this.#loops.values()].filter(({ isLeaving }) => !isLeaving);
    return loops.sort((a, b) => a.loop - b.loop);
  }

  get deployments(): readonly Deployment[] {
    return [...this.#deployments.values()];
  }

  /** The program has left its cluster: its loops leave it, too. */
  leaveCluster(): void {
    this.cluster = undefined;
    this.#bus.publish(farewellAddress, null);
  }

  async handle(message: ToDirector): Promise<unknown> {
    switch (message.type) {
      case 'cluster':
        return this.cluster ?? null;
      case 'arrived':
        return this.#arrived(message);
      case 'leaving':
        return this.#leaving(message.loop);
      case 'instanceLost':
        await new Promise((resolve) => setImmediate(resolve)); // the caller of the start is notified first
        return this.#instanceLost(message);
      case 'deploy': {
        const { id, name } = await this.deploy(message.unit, message.options, message.parent);
        return { id, name };
      }
      case 'deployAll': {
        const { units, options, parent } = message;
        return (await this.deployAll(units, options, parent)).answer;
      }
      case 'undeployGroup':
        return await this.#groups.find(message.group)?.undeploy();
      case 'awaitGroupEnd':
        return await this.#groups.find(message.group)?.ended;
      case 'scale':
        return await this.#find(message.deployment).scale(message.instances);
      case 'move':
        return await this.#find(message.deployment).move(message.instance, message.loop);
      case 'redeploy':
        return await this.#find(message.deployment).redeploy();
      case 'undeploy':
        return await this.#deployments.get(message.deployment)?.undeploy();
      case 'status':
        return await this.#find(message.deployment).status();
      case 'awaitEnd':
        return await this.#deployments.get(message.deployment)?.ended;
      case 'monitor': {
        const ends = this.#deployments.get(message.deployment)?.ends;
        if (ends !== undefined) sendEnds(this.#bus, ends.follow, message.to);
        return ends !== undefined;
      }
      case 'askHealth':
        return await this.#find(message.deployment).health({ timeoutMs: message.timeoutMs });
    }
  }

  #find(id: number): DirectedDeployment {
    const deployment = this.#deployments.get(id);
    if (deployment !== undefined) return deployment;
    throw new CodedError('UNIT_UNDEPLOYED', `deployment ${id} has ended: deploy the unit again`);
  }

  /** Rejects with `UNIT_START_FAILED`, `UNIT_INVALID`, `OPTION_INVALID`. */
  async deploy(
    unit: unknown,
    given: DeployOptions | undefined,
    parent: InstanceId | undefined,
    group?: DirectedGroup,
  ): Promise<Deployment> {
    const source = sourceOf(unit);
    const options = fillDeployOptions(source, given, this.#capacity.loops);
    const family = parent && this.#deployments.get(parent.deployment);
    if (parent !== undefined && family?.mayHaveChildren(parent.instance) !== true) {
      throw new CodedError('UNIT_UNDEPLOYED', 'an instance that has ended cannot deploy units');
    }
    this.#lastId += 1;
    const made: DirectedDeployment = new DirectedDeployment({
      id: this.#lastId,
      source,
      options,
      parent,
      place: (count) => this.#place(made, count),
      start: (placed) => this.#start(made, placed),
      stop: (placed) => this.#stop(made, placed),
      settled: (placed) => this.#restarts.settled(placed),
      move: (placed, loop) => this.#move(made, placed, loop),
      redeploy: () => this.#redeploy(made),
      health: (timeoutMs) => this.#health(made, timeoutMs),
      onEnded: () => {
        this.#deployments.delete(made.id);
        this.#restarts.forget(made.id);
        this.#groups.delete(made);
        if (this.#deployments.size === 0) this.#onIdle();
      },
    });
    this.#deployments.set(made.id, made);
    if (group !== undefined) this.#groups.add(made, group);
    await made.begin();
    return made;
  }

  /** Deploys units as a group. Rejects as `deploy`, and with `UNIT_FAILED`. */
  deployAll(
    units: readonly GroupMember[],
    options: DeployAllOptions | undefined,
    parent: InstanceId | undefined,
  ): Promise<DirectedGroup> {
    return this.#groups.deployAll(units, options, {
      newId: () => ++this.#lastId,
      restarts: this.#restarts,
      deploy: (unit, own, group) => this.deploy(unit, own, parent, group),
    });
  }

  /** Chooses a loop for each of `count` more instances. */
  #place(deployment: DirectedDeployment, count: number): LoopEntry[] {
    const loops = this.#allowed(deployment);
    if (loops.length === 0) {
      throw new CodedError(
        'UNIT_START_FAILED',
        'no loop is there: all have ended, and are replaced',
      );
    }
    const all = [...this.#deployments.values()].flatMap((each) => each.placed);
    return spread(count, loops, { own: deployment.placed, all });
  }

  /** Returns the loops of the processes it may use: those with instances of it, then the emptiest. */
  #allowed(deployment: DirectedDeployment): readonly LoopEntry[] {
    const loops = this.#restarts.allowed(deployment.id, this.loops);
    const { processes } = deployment.options;
    if (processes === Infinity) return loops;
    const all = [...this.#deployments.values()].flatMap((each) => each.placed);
    const inPid = (placed: readonly Placed[], pid: number): number =>
      placed.filter((each) => each.loop !== undefined && this.#loops.get(each.loop)?.pid === pid)
        .length;
    const pids = [...new Set(loops.map(({ pid }) => pid))].sort(
      (a, b) =>
        inPid(deployment.placed, b) - inPid(deployment.placed, a) || inPid(all, a) - inPid(all, b),
    );
    const allowed = new Set(pids.slice(0, processes));
    return loops.filter(({ pid }) => allowed.has(pid));
  }

  async #move(deployment: DirectedDeployment, placed: Placed, to: number): Promise<void> {
    const target = this.loops.find(({ loop }) => loop === to);
    if (target === undefined) {
      const numbers = this.loops.map(({ loop }) => loop).join(', ');
      throw invalid('loop', to, `the number of a loop that is there: ${numbers}`);
    }
    await moveInstance(deployment, placed, {
      target,
      bus: this.#bus,
      isThere: (loop) => this.#loops.has(loop),
      endChildren: (loop) => this.#endChildren(deployment.id, [placed], loop),
      lose: () => {
        deployment.ends.report(placed, 'lost', 'its loop or thread has ended during a move');
        void this.#endChildren(deployment.id, [placed]);
        this.#restarts.again([placed]);
      },
    });
  }

  async #redeploy(deployment: DirectedDeployment): Promise<void> {
    await redeploy(deployment, {
      bus: this.#bus,
      childrenOf: (placed) => new Set(this.#childrenOf(deployment.id, [placed])),
      end: (children) => this.#end(children),
      settled: (placed) => this.#restarts.settled([placed]),
      endOf: (placed, loop) => this.#restarts.endOf(placed, loop),
      lose: (placed) => {
        deployment.ends.report(
          placed,
          'lost',
          'its loop or thread has ended during a redeployment',
        );
        void this.#endChildren(deployment.id, [placed]);
        this.#restarts.again([placed]);
      },
    });
  }

  /** Starts all or none; rejects with the first failure. */
  async #start(deployment: DirectedDeployment, placed: readonly Placed[]): Promise<void> {
    const { startTimeoutMs } = deployment.options;
    const { name } = deployment;
    const onLoop = async ([loop, some]: readonly [number, readonly Placed[]]): Promise<void> => {
      const instances = some.map(({ instance }) => instance);
      const isStrict = !some.some(({ isRestarting }) => isRestarting); // a lost one has to start, edited or not
      const request = startMessage(deployment, instances, { isStrict });
      let version: string | undefined;
      try {
        version = parseVersion(
          await ask(this.#bus, loopAddress(loop), request, 2 * startTimeoutMs),
        );
      } catch (error) {
        throw startFailed(name, silentLoop(loop, error, 'startTimeoutMs', startTimeoutMs));
      }
      for (const each of some) {
        each.version = version;
        if (each.loop === loop) each.state = 'running';
      }
      announceVersion(deployment, some);
    };
    const started = await Promise.allSettled([...byLoop(placed)].map(onLoop));
    const failed = started.find((each) => each.status === 'rejected');
    const isLost = placed.some((each) => each.loop === undefined);
    if (failed === undefined && !isLost) return;
    await this.#stop(deployment, placed).catch(() => {}); // the first error counts
    throw failed?.reason ?? startFailed(name, new Error('its loop has ended'));
  }

  /** Stops all; they are gone even when it rejects, with the first failure. */
  async #stop(deployment: DirectedDeployment, placed: readonly Placed[]): Promise<void> {
    const { id, name } = deployment;
    const { stopTimeoutMs } = deployment.options;
    for (const each of placed) each.state = 'stopping';
    await this.#endChildren(id, placed);
    const onLoop = async ([loop, some]: readonly [number, readonly Placed[]]): Promise<void> => {
      const instances = some.map(({ instance }) => instance);
      const message = { type: 'stop', deployment: id, instances, stopTimeoutMs } as const;
      try {
        if (this.#loops.has(loop)) await ask(this.#bus, loopAddress(loop), message, stopTimeoutMs);
      } catch (error) {
        if (!this.#loops.has(loop)) return; // they ended with it
        throw stopFailed(name, silentLoop(loop, error, 'stopTimeoutMs', stopTimeoutMs));
      }
    };
    const stopped = await Promise.allSettled([...byLoop(placed)].map(onLoop));
    this.#groups.ruling(id)?.changed();
    const failed = stopped.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Undeploys the children that these instances deployed on `loop`; `undefined`: on any. */
  async #endChildren(id: number, placed: readonly Placed[], loop?: number): Promise<void> {
    await this.#end(this.#childrenOf(id, placed, loop));
  }

  /** Undeploys these, and their groups as a whole. Never rejects. */
  async #end(deployments: readonly DirectedDeployment[]): Promise<void> {
    await Promise.allSettled(this.#groups.together(deployments).map((each) => each.undeploy()));
  }

  #childrenOf(id: number, placed: readonly Placed[], loop?: number): DirectedDeployment[] {
    const parents = new Set(placed.map(({ instance }) => instance));
    return [...this.#deployments.values()].filter(({ parent }) => {
      if (parent?.deployment !== id || !parents.has(parent.instance)) return false;
      return loop === undefined || parent.loop === loop;
    });
  }

  async #health(deployment: DirectedDeployment, timeoutMs: number): Promise<InstanceHealth[]> {
    const message = { type: 'health', deployment: deployment.id, timeoutMs } as const;
    // A loop answers for threads that do not.
    const isBlocking = deployment.options.on === 'blocking';
    const deadlineMs = isBlocking ? timeoutMs + threadsMs : timeoutMs;
    const asked = [...byLoop(deployment.placed)].map(async ([loop, some]) => {
      try {
        const options = { timeoutMs: deadlineMs };
        const request = this.#bus.request(loopAddress(loop), message, options);
        return parseHealth(Object((await request).body).value);
      } catch (error) {
        return some.map(({ instance }) => ({ instance, isWell: false, detail: messageOf(error) }));
      }
    });
    const lost = deployment.placed.filter(({ loop }) => loop === undefined);
    const unwell = lost.map(({ instance, state }) => ({ instance, isWell: false, detail: state }));
    const known = [...(await Promise.all(asked)).flat(), ...unwell];
    return known.sort((a, b) => a.instance - b.instance);
  }

  /** A loop has arrived: gets the instances of one that has ended. */
  #arrived({ loop, pid, index }: Extract<ToDirector, { type: 'arrived' }>): void {
    const entry = { loop, pid, index, isLeaving: false };
    this.#loops.set(loop, entry);
    this.#restarts.loopArrived(entry);
  }

  /** Announces a blocked loop of the supervisor with the names of its units; returns its number, if it has one. */
  announceBlocked({ pid, loop: index, ...blocked }: ServerBlockedMessage): number | undefined {
    const entry = [...this.#loops.values()].find(
      (each) => each.pid === pid && each.index === index,
    );
    if (entry === undefined) return undefined;
    const { loop } = entry;
    const here = [...this.#deployments.values()].filter(({ placed }) =>
      placed.some((each) => each.loop === loop),
    );
    announcements.unitBlocked.publish({
      ...blocked,
      pid: entry.pid,
      loop,
      ...blame(here, blocked),
    });
    return loop;
  }

  #leaving(loop: number): void {
    const entry = this.#loops.get(loop);
    if (entry !== undefined) entry.isLeaving = true;
  }

  /** The thread of an instance has ended: starts another, within the restart limits. */
  #instanceLost(lost: Extract<ToDirector, { type: 'instanceLost' }>): void {
    const deployment = this.#deployments.get(lost.deployment);
    const placed = deployment?.placed.find(({ instance }) => instance === lost.instance);
    if (placed === undefined || placed.loop !== lost.loop) return;
    if (placed.state !== 'running' && placed.state !== 'moving') return;
    Object.assign(placed, { loop: undefined, pid: undefined });
    if (placed.state === 'moving') return; // the pending move fails by itself
    placed.state = 'lost';
    deployment?.ends.add(placed);
    deployment?.ends.lost(placed, lost.why);
    void this.#endChildren(placed.deployment, [placed]);
    this.#restarts.failed([placed], lost);
  }

  /** Returns the deployment; `undefined`: the instance is scaled down or undeployed. */
  #ownerOf(placed: Placed): DirectedDeployment | undefined {
    const deployment = this.#deployments.get(placed.deployment);
    return deployment?.keeps(placed) === true ? deployment : undefined;
  }

  /** The channel to a loop has closed. */
  lost(loop: number): void {
    const entry = this.#loops.get(loop);
    if (entry === undefined) return;
    this.#loops.delete(loop);
    const left = [...this.#deployments.values()].flatMap((each) => each.loopEnded(loop));
    const lost = left.filter(({ state }) => state === 'lost');
    for (const each of lost) void this.#endChildren(each.deployment, [each]);
    this.#restarts.loopLost(entry, { lost, all: left });
  }

  /** A process was lost; its loops may be lost already, or will be. */
  processLost(lost: LostProcess): void {
    this.#restarts.processLost(lost);
  }

  /** Undeploys all, the last one first; then rejects with the first failure. */
  async close(): Promise<void> {
    const roots = [...this.#deployments.values()].filter(({ parent }) => parent === undefined);
    const all = this.#groups.together(roots.reverse());
    const ends = await Promise.allSettled(all.map((each) => each.undeploy()));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }
}

/** Time in which a loop reports which of its threads have not answered, in ms. */
const threadsMs = 1000;
