// One instance of a unit, in its loop: started with its context, ended once, whatever its start did.
// Everything that it has made through its context ends with it, and so do servers that it has not closed.

import { setMaxListeners } from 'node:events';
import type { Server } from 'node:net';
import { type EventBus, type HandOffTarget, Scope, type ScopedBus } from '../../bus/index.js';
import { CodedError } from '../../errors.js';
import { beforeDeadline, isWebServer, Lifecycle, messageOf } from '../../lib/index.js';
import { closeServer } from '../../serve/index.js';
import { runAs } from '../current.js';
import { BlockingQueue, type BlockingThreads } from '../loop/blocking.js';
import type { InstanceId } from '../protocol.js';
import type { BlockingOptions, InstanceHealth, UnitContext, UnitObject } from '../types.js';
import { lateUseOf } from './late-use.js';
import { UnitTimers } from './timers.js';

/** `restoring`: it has started, and waits for its state from another loop; `moving`: the other way round. */
type State = 'starting' | 'restoring' | 'running' | 'moving' | 'stopping' | 'ended';

export interface InstanceOptions {
  readonly id: InstanceId;
  /** The name of the deployment. */
  readonly name: string;
  /** That of its code. */
  readonly version: string | undefined;
  readonly config: unknown;
  /** True: it comes from another loop, or replaces another instance. */
  readonly isIncoming: boolean;
  /** The bus of the loop. */
  readonly bus: EventBus;
  readonly threads: BlockingThreads;
  /** As `ProgramLoop.quiet`. */
  readonly quiet: (server: Server) => Promise<void>;
  /** Deploys a child. */
  readonly deploy: UnitContext['deploy'];
}

/** Makes the object that has an instance's methods. */
export type MakeUnit = (context: UnitContext) => UnitObject | Promise<UnitObject>;

export class Instance {
  readonly id: InstanceId;
  readonly name: string;
  readonly version: string | undefined;
  readonly #scope: Scope;
  readonly #context: UnitContext;
  readonly #abort = new AbortController();
  readonly #servers = new Set<Server>();
  readonly #timers: UnitTimers;
  readonly #quiet: (server: Server) => Promise<void>;
  readonly #life: Lifecycle<State>;
  #unit: UnitObject = {};
  #ending: Promise<void> | undefined;
  readonly #isIncoming: boolean;
  /** For one that comes from another loop: settles when it has its state, or never will. */
  #restored: Promise<unknown> = Promise.resolve();

  constructor(options: InstanceOptions) {
    const { id, name, version, config, isIncoming, bus, threads, quiet, deploy } = options;
    this.id = id;
    this.version = version;
    this.#quiet = quiet;
    this.name = name;
    this.#isIncoming = isIncoming;
    const lateUse = lateUseOf(this.#what);
    this.#scope = new Scope(bus, { isIncoming, unit: name, lateUse });
    this.#timers = new UnitTimers(lateUse);
    this.#life = new Lifecycle(this.#what, 'starting', {
      starting: ['running', 'restoring', 'stopping'],
      restoring: ['running', 'stopping'],
      running: ['moving', 'stopping'],
      moving: ['running', 'stopping'],
      stopping: ['ended'],
      ended: [],
    });
    const { instance, loop } = id;
    const { signal } = this.#abort;
    setMaxListeners(0, signal); // everything that the unit begins gets it
    const queue = new BlockingQueue(threads);
    this.#context = Object.freeze({
      bus: this.#scope.bus,
      config,
      name,
      instance,
      loop,
      signal,
      setTimeout: this.#timers.setTimeout,
      setInterval: this.#timers.setInterval,
      executeBlocking: <R>(fn: () => R, options?: BlockingOptions) => queue.execute(fn, options),
      deploy,
    });
  }

  /** Instances of one deployment share the port that they get for port 0. */
  get group(): string {
    return String(this.id.deployment);
  }

  /** The unit's bus, for code without a context. */
  get bus(): ScopedBus {
    return this.#scope.bus;
  }

  get #what(): string {
    return `instance ${this.id.instance} of ${this.name}`;
  }

  /** Rejects with `UNIT_START_FAILED`; what it had begun has ended then, within `timeoutMs` more. */
  async start(make: MakeUnit, timeoutMs: number): Promise<void> {
    const begin = async (): Promise<void> => {
      const unit = await make(this.#context);
      this.#unit = unit;
      await unit.start?.(this.#context);
    };
    const onDeadline = (): Error =>
      new Error(
        `start() has not ended within ${timeoutMs} ms: is something awaited that never comes?`,
      );
    try {
      await beforeDeadline(runAs(this, begin), {
        deadlineMs: timeoutMs,
        onDeadline,
        signal: this.#abort.signal,
      });
      this.#life.transition(this.#isIncoming ? 'restoring' : 'running');
    } catch (cause) {
      await this.#end(timeoutMs, false).catch(() => {}); // the first error counts
      const message = `${this.#what} could not start: ${messageOf(cause)}`;
      throw new CodedError('UNIT_START_FAILED', message, { cause });
    }
  }

  /**
   * Returns the state to take to another loop. From now on its consumers hold messages, until it is handed
   * off or stays. Rejects with what `save` throws, or when that, or a handler, takes longer.
   */
  async save(timeoutMs: number): Promise<unknown> {
    this.#life.transition('moving');
    let isGivenUp = false;
    const save = async (): Promise<unknown> => {
      await this.#scope.hold();
      if (isGivenUp) return undefined; // a handler has ended too late
      return await runAs(this, async () => await this.#unit.save?.());
    };
    const onDeadline = (): Error =>
      new Error(`its handlers and save() have not ended within ${timeoutMs} ms`);
    try {
      const { signal } = this.#abort;
      return await beforeDeadline(save(), { deadlineMs: timeoutMs, onDeadline, signal });
    } catch (error) {
      isGivenUp = true;
      throw error;
    }
  }

  /** Keeps it on this loop after all. */
  cancelMove(): void {
    if (!this.#life.is('moving')) return;
    this.#life.transition('running');
    this.#scope.release();
  }

  /** Hands off its consumers to `target`; it is to be stopped then. Throws where that is not possible. */
  handOff(target: HandOffTarget): void {
    if (!this.#life.is('moving')) throw new Error('it has ended meanwhile');
    if (!this.#scope.handOff(target)) throw new Error('the other loop has ended');
  }

  /** The name of the loop's bus. */
  get busName(): string {
    return this.#scope.busName;
  }

  /** For one that comes from another loop. Rejects with what `restore` throws, or when it takes longer. */
  restore(state: unknown, from: string, timeoutMs: number): Promise<HandOffTarget> {
    const restore = async (): Promise<HandOffTarget> => {
      const onDeadline = (): Error => new Error(`restore() has not ended within ${timeoutMs} ms`);
      const call = runAs(this, async () => await this.#unit.restore?.(state));
      await beforeDeadline(call, {
        deadlineMs: timeoutMs,
        onDeadline,
        signal: this.#abort.signal,
      });
      this.#life.transition('running');
      return this.#scope.acceptHandOff(from);
    };
    const restored = restore();
    this.#restored = restored.catch(() => {});
    return restored;
  }

  /**
   * For one whose old loop is lost. Resolves with true when it has its state and its peers have its
   * consumers; false: it got no state.
   */
  async isRestored(): Promise<boolean> {
    await this.#restored;
    if (!this.#life.is('running')) return false;
    await this.#scope.arrived();
    return true;
  }

  /** True: other code may use it. */
  get isHere(): boolean {
    return !this.#life.is('restoring');
  }

  /** Adds a server of this instance alone, which ends with it when it is not closed before. */
  addServer(server: Server): void {
    this.#servers.add(server);
  }

  /** Rejects with `UNIT_STOP_FAILED`; it is gone all the same. A start in progress rejects, without `stop()`. */
  async stop(timeoutMs: number): Promise<void> {
    if (this.#life.is('ended')) return;
    await this.#end(timeoutMs, !this.#life.is('starting'));
  }

  #end(timeoutMs: number, hasStarted: boolean): Promise<void> {
    this.#ending ??= this.#endOnce(timeoutMs, hasStarted);
    return this.#ending;
  }

  async #endOnce(timeoutMs: number, hasStarted: boolean): Promise<void> {
    this.#life.tryTransition('stopping');
    this.#abort.abort();
    const finish = async (): Promise<void> => {
      await Promise.all([...this.#servers].map(this.#quiet)); // before stop() closes them
      await this.#scope.end();
      this.#timers.end();
      if (hasStarted) await runAs(this, async () => await this.#unit.stop?.());
      await Promise.all([...this.#servers].map(closeServer));
    };
    const onDeadline = (): Error => new Error(`it has not ended within ${timeoutMs} ms`);
    try {
      await beforeDeadline(finish(), {
        deadlineMs: timeoutMs,
        onDeadline,
      });
    } catch (cause) {
      const message = `${this.#what} did not stop well: ${messageOf(cause)}`;
      throw new CodedError('UNIT_STOP_FAILED', message, { cause });
    } finally {
      for (const server of this.#servers) destroyServer(server);
      this.#scope.close();
      this.#timers.close(); // stop() may have begun some
      this.#life.tryTransition('ended');
    }
  }

  async health(): Promise<InstanceHealth> {
    const { instance } = this.id;
    try {
      if (!this.#life.is('running', 'moving'))
        return { instance, isWell: false, detail: this.#life.state };
      return { instance, isWell: true, detail: await this.#unit.health?.() };
    } catch (error) {
      return { instance, isWell: false, detail: messageOf(error) };
    }
  }
}

function destroyServer(server: Server): void {
  if (isWebServer(server)) server.closeAllConnections();
}
