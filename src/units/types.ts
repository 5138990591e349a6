// What a unit is and what it is given: Vert.x's verticle, under a plainer name.

import type { Bus } from '../bus/index.js';
import type { TaskResult } from '../pool/index.js';

/** What an instance of a unit is given at its start. Whatever it makes through this ends with it. */
export interface UnitContext<Config = unknown> {
  /** Its consumers are closed when the instance ends. */
  readonly bus: Bus;
  /** As it was given at the deployment, a copy for each instance. */
  readonly config: Config;
  /** Of the deployment. */
  readonly name: string;
  /** Its number among the instances of its deployment, from 0 on. */
  readonly instance: number;
  /** The number of its loop, which it keeps for life; one that moves is a new instance there. */
  readonly loop: number;
  /** Aborted when the instance is to end. */
  readonly signal: AbortSignal;
  /**
   * Runs a function that blocks in a thread beside the loop, with what it captured; resolves with its
   * result. One after the other, unless `ordered` is false. Rejects as `run` does, with `TASK_TIMED_OUT`
   * after `timeoutMs`: then the thread is ended.
   */
  executeBlocking<R>(fn: () => R, options?: BlockingOptions): Promise<TaskResult<R>>;
  /** As `deploy`; ends before this instance does. */
  deploy<ChildConfig = unknown>(
    unit: UnitLike<ChildConfig>,
    options?: DeployOptions<ChildConfig>,
  ): Promise<Deployment>;
}

export interface BlockingOptions {
  /** Begins when what this instance asked for before has ended. Default: true. */
  readonly ordered?: boolean | undefined;
  /** Default: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** All but one of these may be missing. */
export interface UnitObject<Config = unknown> {
  /** Resolves when the instance is ready; the deployment waits for it. */
  start?(context: UnitContext<Config>): unknown;
  /** Called once, when its consumers have ended what they had begun. */
  stop?(): unknown;
  /** What it says of itself; throws, or rejects, when it is not well. */
  health?(): unknown;
  /**
   * Called when the instance goes to another loop and its handlers have ended what they had begun: what it
   * returns, or resolves to, goes there. Nothing comes to its consumers from then on.
   */
  save?(): unknown;
  /** Called on the new loop after `start`, with what `save` returned, before anything comes. */
  restore?(state: unknown): unknown;
}

/**
 * A class (each instance is one of its own), an object (each instance is a copy), or a function: it is
 * `start`, and may return what is called as `stop`, or an object with the other methods.
 */
export type Unit<Config = unknown> =
  | (new () => UnitObject<Config>)
  | UnitObject<Config>
  | ((context: UnitContext<Config>) => unknown);

/** A unit, or the path of a module whose default export is one, or which exports `start`. */
export type UnitLike<Config = unknown> = Unit<Config> | string | URL;

/** Where instances run: on a loop, or each in a thread of its own beside one, where it may block. */
export type UnitPlacement = 'loop' | 'blocking';

export interface DeployOptions<Config = unknown> {
  /** How many, spread evenly over the loops. Default: 1. */
  readonly instances?: number | undefined;
  /**
   * `blocking`: each instance has a thread of its own beside its loop for life, which it may block; it
   * cannot listen on a port. Default: `loop`.
   */
  readonly on?: UnitPlacement | undefined;
  /** Any value that can travel. Default: `undefined`. */
  readonly config?: Config | undefined;
  /** In messages and in the status. Default: the name of the class, function or file. */
  readonly name?: string | undefined;
  /** Only the loops of so many processes have instances. Default: all. */
  readonly processes?: number | undefined;
  /**
   * As many threads for `executeBlocking` in each loop at most, as they are needed. `cores`: as many as cores are
   * granted, shared out among the loops that have instances at first. Default: 20.
   */
  readonly blockingThreads?: number | 'cores' | undefined;
  /** How long `start` of one instance may take, in ms. Default: 30,000. */
  readonly startTimeoutMs?: number | undefined;
  /** How long one instance may take to end, in ms. Default: 30,000. */
  readonly stopTimeoutMs?: number | undefined;
}

/** `moving`: it goes to another loop. `lost`: its loop or its thread has ended, and it is started again on another. */
export type InstanceState = 'starting' | 'running' | 'moving' | 'stopping' | 'lost';

export interface InstanceStatus {
  /** Its number in the deployment. */
  readonly instance: number;
  /** The number of its loop, and the process in which that is; `undefined` while it is lost. */
  readonly loop: number | undefined;
  readonly pid: number | undefined;
  readonly state: InstanceState;
}

export interface InstanceHealth {
  readonly instance: number;
  readonly isWell: boolean;
  /** What `health()` returned, or what it threw. */
  readonly detail: unknown;
}

/** A unit that was deployed, with all its instances. */
export interface Deployment extends AsyncDisposable {
  /** Not given twice by the same loops. */
  readonly id: number;
  readonly name: string;
  status(): Promise<readonly InstanceStatus[]>;
  /** Asks every instance that has a `health()`; who does not answer within so long is not well. */
  health(options?: { readonly timeoutMs?: number | undefined }): Promise<readonly InstanceHealth[]>;
  /**
   * So many instances from now on. More: all that are new start, or none stays (`UNIT_START_FAILED`).
   * Fewer: those with the highest numbers end. Rejects with `UNIT_UNDEPLOYED`.
   */
  scale(instances: number): Promise<void>;
  /**
   * Takes an instance to another loop, by the numbers of `status()` and `Loops.loops`, with what its `save`
   * returns and all messages, in their order. Does nothing where it is there already. Rejects with
   * `UNIT_MOVE_FAILED`: then it goes on where it was; with `UNIT_STOP_FAILED` when it has moved, and the old
   * one did not stop well; with `OPTION_INVALID` for numbers that are none, and `UNIT_UNDEPLOYED`.
   */
  move(instance: number, loop: number): Promise<void>;
  /**
   * Ends all instances: their consumers take nothing new, handlers end what they have begun, then `stop()`
   * is called. Rejects with `UNIT_STOP_FAILED` when that threw or took too long; the instances are gone all
   * the same. A second call does nothing.
   */
  undeploy(): Promise<void>;
}
