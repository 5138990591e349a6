// Units and their context: Vert.x's verticle, under a plainer name.

import type { Bus } from '../bus/index.js';
import type { TaskResult } from '../pool/index.js';

/**
 * The context that an instance of a unit gets at its start. Everything made through it ends with the
 * instance.
 */
export interface UnitContext<Config = unknown> {
  /** Closes its consumers when the instance ends; from then on it throws `BUS_CLOSED`. */
  readonly bus: Bus;
  /** The configuration of the deployment, a copy for each instance. */
  readonly config: Config;
  /** The name of the deployment. */
  readonly name: string;
  /** The number of the instance in its deployment, from 0 on. */
  readonly instance: number;
  /** The number of its loop, the same for life: an instance that moves becomes a new one there. */
  readonly loop: number;
  /** Aborted when the instance is to end. */
  readonly signal: AbortSignal;
  /**
   * Runs a function that blocks in a thread beside the loop, with what it captured; resolves with its result.
   * Calls run one after the other, unless `ordered` is false. Rejects as `run` does, with `TASK_TIMED_OUT`
   * after `timeoutMs`: then the thread is ended.
   */
  executeBlocking<R>(fn: () => R, options?: BlockingOptions): Promise<TaskResult<R>>;
  /**
   * Starts a timer as Node's `setTimeout`; `ms` in milliseconds. It ends with the instance, after its handlers and
   * before `stop()`. Throws `BUS_CLOSED` after the end of the instance.
   */
  setTimeout<Args extends unknown[]>(
    callback: (...args: Args) => void,
    ms?: number,
    ...args: Args
  ): NodeJS.Timeout;
  /** Starts a timer as Node's `setInterval`, which ends as that of `setTimeout` here. */
  setInterval<Args extends unknown[]>(
    callback: (...args: Args) => void,
    ms?: number,
    ...args: Args
  ): NodeJS.Timeout;
  /** As `deploy`; ends before this instance does. */
  deploy<ChildConfig = unknown>(
    unit: UnitLike<ChildConfig>,
    options?: DeployOptions<ChildConfig>,
  ): Promise<Deployment>;
}

export interface BlockingOptions {
  /** Begins after the previous call of this instance has ended. Default: true. */
  readonly ordered?: boolean | undefined;
  /** Default: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** The methods of a unit; all but one may be missing. */
export interface UnitObject<Config = unknown> {
  /** Resolves when the instance is ready; the deployment waits for it. */
  start?(context: UnitContext<Config>): unknown;
  /** Called once, when its consumers have ended what they had begun. */
  stop?(): unknown;
  /** Returns any detail for the status; throws, or rejects, when the instance is not well. */
  health?(): unknown;
  /**
   * Called when the instance moves to another loop and its running handlers have ended. The state that it
   * returns, or resolves to, is sent there. Its consumers get no message from then on.
   */
  save?(): unknown;
  /** Called on the new loop after `start`, with what `save` returned, before the first message. */
  restore?(state: unknown): unknown;
}

/**
 * A class (each instance is one of its own), an object (each instance is a copy), or a function: it serves as
 * `start`, and may return a function that serves as `stop`, or an object with the other methods.
 */
export type Unit<Config = unknown> =
  | (new () => UnitObject<Config>)
  | UnitObject<Config>
  | ((context: UnitContext<Config>) => unknown);

/** A unit, or the path of a module that exports one by default, or that exports `start`. */
export type UnitLike<Config = unknown> = Unit<Config> | string | URL;

/**
 * `loop`: instances run on a loop; `blocking`: each in a thread of its own beside one, where it may block.
 */
export type UnitPlacement = 'loop' | 'blocking';

export interface DeployOptions<Config = unknown> {
  /** Number of instances, spread evenly over the loops. Default: 1. */
  readonly instances?: number | undefined;
  /**
   * `blocking`: each instance has a thread of its own beside its loop for life, which it may block; it
   * cannot listen on a port. Default: `loop`.
   */
  readonly on?: UnitPlacement | undefined;
  /** Any value that can travel. Default: `undefined`. */
  readonly config?: Config | undefined;
  /** The name in messages and in the status. Default: that of the class, function or file. */
  readonly name?: string | undefined;
  /** Limits the instances to the loops of so many processes. Default: all. */
  readonly processes?: number | undefined;
  /**
   * Threads for `executeBlocking` in each loop at most, started on demand. `cores`: as many as cores are
   * granted, divided among the loops that have instances at first. Default: 20.
   */
  readonly blockingThreads?: number | 'cores' | undefined;
  /** Time limit for `start` of one instance, in ms. Default: 30,000. */
  readonly startTimeoutMs?: number | undefined;
  /** Time limit for one instance to end, in ms. Default: 30,000. */
  readonly stopTimeoutMs?: number | undefined;
  /**
   * An instance that ends its process or thread, or cannot be started again, is given up after more than `max`
   * (0 or more, or `Infinity`) restarts within `withinMs`. Default: 5 within 60,000.
   */
  readonly restarts?: RestartsOption | undefined;
}

export interface RestartsOption {
  readonly max?: number | undefined;
  readonly withinMs?: number | undefined;
}

/**
 * `moving`: to another loop, or to another version. `lost`: its loop or its thread has ended, and it is started
 * again on another. `failed`: it was given up after too many restarts.
 */
export type InstanceState = 'starting' | 'running' | 'moving' | 'stopping' | 'lost' | 'failed';

export interface InstanceStatus {
  /** The number of the instance in the deployment. */
  readonly instance: number;
  /** The number of its loop, and that loop's process; `undefined` while it is lost or failed. */
  readonly loop: number | undefined;
  readonly pid: number | undefined;
  readonly state: InstanceState;
  /**
   * A short hash of its file and of what that imports from the program; `undefined` before it runs, and for a unit
   * that was deployed as a value. Instances that were started again after an edit have another one.
   */
  readonly version: string | undefined;
}

export interface InstanceHealth {
  readonly instance: number;
  readonly isWell: boolean;
  /** The return value of `health()`, or the error that it threw. */
  readonly detail: unknown;
}

/**
 * Restarts of a group when an instance is lost or fails. `one-for-one`: it alone starts again. `one-for-all`: all
 * instances of all units stop, the last unit first, and start in order. `rest-for-one`: it, and so all instances of
 * the units that were deployed after its own.
 */
export type RestartStrategy = 'one-for-one' | 'one-for-all' | 'rest-for-one';

/** A unit of a group, with the options of its deployment. Restarts are those of the group. */
export interface GroupMember extends Omit<DeployOptions, 'restarts'> {
  readonly unit: UnitLike<never>;
}

export interface DeployAllOptions {
  /** Default: `one-for-one`. */
  readonly strategy?: RestartStrategy | undefined;
  /**
   * The group is given up after more than `max` restarts within `withinMs`, whichever units they are of. Default: 5
   * within 60,000.
   */
  readonly restarts?: RestartsOption | undefined;
}

/** Units that were deployed together. */
export interface DeploymentGroup extends AsyncDisposable {
  /** In order. */
  readonly deployments: readonly Deployment[];
  /**
   * Resolves when all deployments have ended; rejects with `UNIT_FAILED` when the group was given up after too many
   * restarts. Needs no handler.
   */
  readonly ended: Promise<void>;
  /**
   * Undeploys all, the last one first. Rejects with the first `UNIT_STOP_FAILED`; all are gone all the same. A
   * second call does nothing.
   */
  undeploy(): Promise<void>;
}

/** A deployed unit, with all its instances. */
export interface Deployment extends AsyncDisposable {
  /** Not given twice by the same loops. */
  readonly id: number;
  readonly name: string;
  /**
   * Resolves when the deployment has ended; rejects with `UNIT_FAILED` when instances were given up after too many
   * restarts. Needs no handler.
   */
  readonly ended: Promise<void>;
  status(): Promise<readonly InstanceStatus[]>;
  /**
   * Calls `health()` of every instance that has one; an instance that does not answer in time is not well.
   */
  health(options?: { readonly timeoutMs?: number | undefined }): Promise<readonly InstanceHealth[]>;
  /**
   * Sets the number of instances. More: all new ones start, or none stays (`UNIT_START_FAILED`). Fewer: those
   * with the highest numbers end. Failed ones among the rest start anew. Rejects with `UNIT_UNDEPLOYED`.
   */
  scale(instances: number): Promise<void>;
  /**
   * Moves an instance to another loop, by the numbers of `status()` and `Loops.loops`, with the state that
   * its `save` returns and all messages, in their order. Does nothing when it is there already. Rejects with
   * `UNIT_MOVE_FAILED`: then it goes on where it was; with `UNIT_STOP_FAILED` when it has moved, and the old
   * one did not stop well; with `OPTION_INVALID` for unknown numbers, and `UNIT_UNDEPLOYED`.
   */
  move(instance: number, loop: number): Promise<void>;
  /**
   * Replaces the instances, one after the other, by the version that their file, and what it imports, has now.
   * The new one starts beside the old one on the same loop, gets its state (`save`, `restore`) and all messages,
   * in their order; then the old one ends. Does nothing without an edit. Rejects with `UNIT_REDEPLOY_FAILED`:
   * then all go on as they were, except those in threads or new processes that the message names; with `UNIT_STOP_FAILED` when all are replaced, and an old one did not stop well;
   * with `UNIT_INVALID` for a unit that was deployed as a value, and `UNIT_UNDEPLOYED`.
   */
  redeploy(): Promise<void>;
  /**
   * Ends all instances: their consumers take nothing new, handlers end what they have begun, then `stop()`
   * is called. A start in progress rejects with `UNIT_START_FAILED`. Rejects with `UNIT_STOP_FAILED` when
   * `stop()` threw or took too long; the instances are gone all the same. A second call does nothing.
   */
  undeploy(): Promise<void>;
}
