// The instances in one loop: starts and stops them at the director's request.

import type { Server } from 'node:net';
import type { EventBus, HandOffTarget } from '../../bus/index.js';
import { ask } from '../ask.js';
import { currentInstance } from '../current.js';
import { remoteDeploy } from '../director/remote.js';
import { loopAddress, parseHandOffTarget, type ToUnits } from '../protocol.js';
import type { InstanceHealth } from '../types.js';
import { Instance, type InstanceOptions } from '../unit/instance.js';
import { unitMaker } from '../unit/make-unit.js';
import { BlockingThreads } from './blocking.js';

type Start = Extract<ToUnits, { type: 'start' }>;
type HandOff = Extract<ToUnits, { type: 'handOff' }>;
type Restore = Extract<ToUnits, { type: 'restore' }>;
type AskRestored = Extract<ToUnits, { type: 'askRestored' }>;
type Stop = Extract<ToUnits, { type: 'stop' }>;

export class LoopUnits {
  /** The number of the loop. */
  readonly #loop: number;
  readonly #bus: EventBus;
  readonly #copy: (value: unknown) => unknown;
  readonly #quiet: InstanceOptions['quiet'];
  /** By deployment, then by number. */
  readonly #instances = new Map<number, Map<number, Instance>>();
  /** By deployment. */
  readonly #threads = new Map<number, BlockingThreads>();

  constructor(
    loop: number,
    bus: EventBus,
    copy: (value: unknown) => unknown,
    quiet: InstanceOptions['quiet'],
  ) {
    this.#quiet = quiet;
    this.#loop = loop;
    this.#bus = bus;
    this.#copy = copy;
  }

  /** Returns the instance that listens; its deployment is the group that shares port 0. */
  ownerOf(server: Server): Instance | undefined {
    const instance = currentInstance();
    instance?.addServer(server);
    return instance;
  }

  async handle(message: ToUnits): Promise<unknown> {
    switch (message.type) {
      case 'start':
        return await this.#start(message);
      case 'handOff':
        return await this.#handOff(message);
      case 'restore':
        return await this.#restore(message);
      case 'askRestored':
        return await this.#find(message).isRestored();
      case 'stop':
        return await this.#stop(message);
      case 'health':
        return await this.#health(message.deployment);
      case 'threadHere':
      case 'exit':
        return undefined; // for instances in threads
    }
  }

  /** Starts all or none. */
  async #start(start: Start): Promise<void> {
    const { deployment, name, source, config, instances, blockingThreads } = start;
    const { startTimeoutMs, isIncoming } = start;
    const loop = this.#loop;
    const make = await unitMaker(source, this.#copy);
    const threads = this.#threads.get(deployment) ?? new BlockingThreads(blockingThreads);
    this.#threads.set(deployment, threads);
    const made = instances.map(
      (instance) =>
        new Instance({
          id: { deployment, instance, loop },
          name,
          config: this.#copy(config),
          isIncoming,
          bus: this.#bus,
          threads,
          quiet: this.#quiet,
          deploy: remoteDeploy(this.#bus, { deployment, instance, loop }),
        }),
    );
    const ofDeployment = this.#instances.get(deployment) ?? new Map<number, Instance>();
    this.#instances.set(deployment, ofDeployment);
    for (const each of made) ofDeployment.set(each.id.instance, each);
    const started = await Promise.allSettled(made.map((each) => each.start(make, startTimeoutMs)));
    const failed = started.find((each) => each.status === 'rejected');
    if (failed === undefined) return;
    await this.#end(deployment, instances, startTimeoutMs).catch(() => {}); // the first error counts
    throw failed.reason;
  }

  #find({ deployment, instance }: HandOff | Restore | AskRestored): Instance {
    const found = this.#instances.get(deployment)?.get(instance);
    if (found === undefined) throw new Error(`instance ${instance} is not here any more`);
    return found;
  }

  /**
   * Hands off an instance. When this resolves it is gone from here for all others; when it rejects it goes on
   * here.
   */
  async #handOff(handOff: HandOff): Promise<void> {
    const { deployment, instance, to, saveTimeoutMs, restoreTimeoutMs: timeoutMs } = handOff;
    const moving = this.#find(handOff);
    try {
      const state = await moving.save(saveTimeoutMs);
      const what = { deployment, instance, state, from: moving.busName, timeoutMs };
      const message = { type: 'restore', ...what } as const;
      moving.handOff(parseHandOffTarget(await ask(this.#bus, loopAddress(to), message, timeoutMs)));
    } catch (error) {
      moving.cancelMove();
      throw error;
    }
  }

  #restore(restore: Restore): Promise<HandOffTarget> {
    return this.#find(restore).restore(restore.state, restore.from, restore.timeoutMs);
  }

  #stop({ deployment, instances, stopTimeoutMs }: Stop): Promise<void> {
    return this.#end(deployment, instances, stopTimeoutMs);
  }

  /** Rejects with the first error, when all have ended. */
  async #end(deployment: number, numbers: readonly number[], timeoutMs: number): Promise<void> {
    const ofDeployment = this.#instances.get(deployment);
    const ending = numbers.map(async (number) => {
      const instance = ofDeployment?.get(number);
      await instance?.stop(timeoutMs).finally(() => {
        ofDeployment?.delete(number);
      });
    });
    const ended = await Promise.allSettled(ending);
    if (ofDeployment?.size === 0) await this.#forget(deployment);
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Forgets a deployment that has no instances here any more. */
  async #forget(deployment: number): Promise<void> {
    const threads = this.#threads.get(deployment);
    this.#threads.delete(deployment);
    this.#instances.delete(deployment);
    await threads?.close();
  }

  /** Stops all of them, because the loop ends. Never rejects. */
  async endAll(timeoutMs: number): Promise<void> {
    const all = [...this.#instances].map(([deployment, instances]) =>
      this.#end(deployment, [...instances.keys()], timeoutMs).catch((error: unknown) => {
        process.emitWarning(error instanceof Error ? error : String(error));
      }),
    );
    await Promise.all(all);
  }

  async #health(deployment: number): Promise<InstanceHealth[]> {
    const all = [...(this.#instances.get(deployment)?.values() ?? [])];
    const instances = all.filter(({ isHere }) => isHere);
    return await Promise.all(instances.map((each) => each.health()));
  }
}
