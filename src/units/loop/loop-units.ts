// The instances in one loop: starts and stops them at the director's request.

import type { Server } from 'node:net';
import type { EventBus, HandOffTarget } from '../../bus/index.js';
import { CodedError } from '../../errors.js';
import { type Deferred, defer } from '../../lib/index.js';
import { ask } from '../ask.js';
import { currentInstance } from '../current.js';
import { remoteDeploy } from '../director/remote.js';
import { loopAddress, parseHandOffTarget, type ToUnits } from '../protocol.js';
import type { InstanceHealth } from '../types.js';
import { Instance, type InstanceOptions } from '../unit/instance.js';
import { type UnitCode, unitMaker } from '../unit/make-unit.js';
import { BlockingThreads } from './blocking.js';

type Start = Extract<ToUnits, { type: 'start' }>;
type Replace = Extract<ToUnits, { type: 'replace' }>;
type HandOff = Extract<ToUnits, { type: 'handOff' }>;
type Restore = Extract<ToUnits, { type: 'restore' }>;
type Stop = Extract<ToUnits, { type: 'stop' }>;

export class LoopUnits {
  /** The number of the loop. */
  readonly #loop: number;
  readonly #bus: EventBus;
  readonly #copy: (value: unknown) => unknown;
  readonly #quiet: InstanceOptions['quiet'];
  /** By deployment, then by number. */
  readonly #instances = new Map<number, Map<number, Instance>>();
  /** By deployment, then by version: functions of an old version have modules that are old, too. */
  readonly #threads = new Map<number, Map<string | undefined, BlockingThreads>>();

  /** Starts whose code is being loaded; rejecting ends them. */
  readonly #loading = new Map<Start, Deferred<never>>();

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
      case 'replace':
        return await this.#replace(message);
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

  /** Resolves with the code of a start. Rejects when instances of it are stopped before it is loaded. */
  async #untilStopped(start: Start, loading: Promise<UnitCode>): Promise<UnitCode> {
    const stopped = defer<never>();
    this.#loading.set(start, stopped);
    try {
      return await Promise.race([loading, stopped.promise]);
    } finally {
      this.#loading.delete(start);
    }
  }

  #stopLoading(isMeant: (start: Start) => boolean): void {
    for (const [start, stopped] of this.#loading) {
      if (!isMeant(start)) continue;
      const text = `${start.name} could not start: it was stopped while its code was loaded`;
      stopped.reject(new CodedError('UNIT_START_FAILED', text));
    }
  }

  /**
   * Makes instances, which have not started. Rejects with `UNIT_INVALID`, `UNIT_VERSION_CHANGED`, and with
   * `UNIT_START_FAILED` when they are stopped before their code is loaded.
   */
  async #make(start: Start): Promise<{ readonly made: Instance[]; readonly code: UnitCode }> {
    const { deployment, name, source, config, instances, blockingThreads } = start;
    const { isIncoming, isStrict } = start;
    const loop = this.#loop;
    const code = await this.#untilStopped(start, unitMaker(source, isStrict, this.#copy));
    const ofDeployment =
      this.#threads.get(deployment) ?? new Map<string | undefined, BlockingThreads>();
    const threads = ofDeployment.get(code.version) ?? new BlockingThreads(blockingThreads);
    this.#threads.set(deployment, ofDeployment.set(code.version, threads));
    const made = instances.map(
      (instance) =>
        new Instance({
          id: { deployment, instance, loop },
          name,
          version: code.version,
          config: this.#copy(config),
          isIncoming,
          bus: this.#bus,
          threads,
          quiet: this.#quiet,
          deploy: remoteDeploy(this.#bus, { deployment, instance, loop }),
        }),
    );
    return { made, code };
  }

  /** Starts all or none; resolves with the version of their code. */
  async #start(start: Start): Promise<string | undefined> {
    const { deployment, instances, startTimeoutMs } = start;
    const { made, code } = await this.#make(start);
    const ofDeployment = this.#instances.get(deployment) ?? new Map<number, Instance>();
    this.#instances.set(deployment, ofDeployment);
    for (const each of made) ofDeployment.set(each.id.instance, each);
    const starting = made.map((each) => each.start(code.make, startTimeoutMs));
    const started = await Promise.allSettled(starting);
    const failed = started.find((each) => each.status === 'rejected');
    if (failed === undefined) return code.version;
    await this.#end(deployment, instances, startTimeoutMs).catch(() => {}); // the first error counts
    throw failed.reason;
  }

  /** Resolves with the version of the new one. After any failure but that of its `stop()` the old one goes on. */
  async #replace(replace: Replace): Promise<string | undefined> {
    const { deployment, instance, start, stopTimeoutMs } = replace;
    const old = this.#find({ deployment, instance });
    const { made, code } = await this.#make(start);
    const [next] = made;
    if (next === undefined) throw new Error('there is nothing to start');
    const { startTimeoutMs } = start;
    try {
      await next.start(code.make, startTimeoutMs);
      const state = this.#copy(await old.save(stopTimeoutMs));
      old.handOff(await next.restore(state, old.busName, startTimeoutMs));
    } catch (error) {
      old.cancelMove();
      await next.stop(stopTimeoutMs).catch(() => {}); // the first error counts
      await this.#endThreads(deployment);
      throw error;
    }
    this.#instances.get(deployment)?.set(instance, next);
    try {
      await old.stop(stopTimeoutMs);
    } finally {
      await this.#endThreads(deployment);
    }
    return code.version;
  }

  /** Ends the threads of versions that have no instance here any more. */
  async #endThreads(deployment: number): Promise<void> {
    const here = [...(this.#instances.get(deployment)?.values() ?? [])];
    const versions = new Set(here.map(({ version }) => version));
    for (const [version, threads] of this.#threads.get(deployment) ?? []) {
      if (versions.has(version)) continue;
      this.#threads.get(deployment)?.delete(version);
      await threads.close();
    }
  }

  #find({ deployment, instance }: Pick<HandOff, 'deployment' | 'instance'>): Instance {
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
    this.#stopLoading(
      (start) =>
        start.deployment === deployment && start.instances.some((each) => instances.includes(each)),
    );
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
    const threads = [...(this.#threads.get(deployment)?.values() ?? [])];
    this.#threads.delete(deployment);
    this.#instances.delete(deployment);
    await Promise.all(threads.map((each) => each.close()));
  }

  /** Stops all of them, because the loop ends. Never rejects. */
  async endAll(timeoutMs: number): Promise<void> {
    this.#stopLoading(() => true);
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
