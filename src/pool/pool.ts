// A pool as its user sees it: calls go in, promises come out. A call is checked, captured and copied here,
// synchronously: later changes by the caller do not change what the task sees. From then on the task is the
// dispatcher's.
// Long (over 400 lines), because all methods of users are here, each with its contract.

import { EventEmitter } from 'node:events';
import { addSource, type SourceWorkers } from '../agent/index.js';
import type { ChannelKind } from '../channels/index.js';
import { type AnyFunction, type FunctionSnapshot, receive, send } from '../context/index.js';
import { CodedError } from '../errors.js';
import {
  abortError,
  announcements,
  clearTimeout,
  functionName,
  integer,
  keepTickShape,
  notFunction,
  number,
  optionsAlone,
  ownOf,
  ownOptions,
  type ProfileAnswer,
  refuseInTransaction,
  startAnswerTimer,
} from '../lib/index.js';
import {
  type Chunk,
  chunkArgs,
  inCallersContext,
  Moving,
  parcelsOf,
  parentExporter,
  parseChunkAnswer,
  sharedMemoryProblem,
  sharedWorkers,
} from '../worker/index.js';
import { DurableCalls } from './calls/durable.js';
import { callInline } from './calls/inline.js';
import { MapperPins } from './calls/mapper-pins.js';
import {
  type ChunkCall,
  ChunkFailure,
  type ChunkResult,
  type PinnedFunction,
} from './calls/pinned.js';
import { Dispatcher } from './dispatcher.js';
import {
  type CallOptions,
  callDefaults,
  checkForEach,
  type FilledCallOptions,
  type FilledPoolOptions,
  fillCallOptions,
  fillPoolOptions,
  fillSize,
  type PoolOptions,
  realmOptions,
} from './options.js';
import {
  busyError,
  cancelledError,
  closedError,
  closeTimedOutError,
  destroyedError,
  fullError,
  inlineError,
} from './refusals.js';
import { type PoolSample, type PoolStats, poolSample, poolStats } from './stats.js';
import { type Estimate, Task } from './task.js';
import { isThere } from './tasks/lanes.js';
import { NestedChunks } from './tasks/nested.js';
import { Packer } from './tasks/packer.js';
import type { TaskStream } from './tasks/stream.js';
import { type CallTrace, callTrace } from './trace.js';
import { budget } from './workers/budget.js';
import { chooseChannel } from './workers/channel.js';
import { lostError, type WorkerExitedError } from './workers/exit-error.js';
import { WorkerManager } from './workers/worker-manager.js';

/** Result of a call of `fn`: its value, or for a generator its items as they are made. */
export type TaskResult<R> =
  R extends AsyncGenerator<infer T>
    ? TaskStream<T>
    : R extends Generator<infer T>
      ? TaskStream<T>
      : Awaited<R>;

/** Calls with the same options. */
export interface Caller {
  run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>>;
  /**
   * Calls as `run`, once in each worker. Rejects with `OPTION_INVALID` for options that mean one worker or
   * one run.
   */
  runOnEach<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>[]>;
}

/**
 * inline: it came with a task and runs its calls there; closing: it takes no more and drains; closed. From
 * `open` by way of `closing` or at once, from `inline` at once, to `closed`.
 */
type PoolState = 'open' | 'inline' | 'closing' | 'closed';

/** Options of the pool of `run`: it may have workers that other threads use as well. */
const programOptions: PoolOptions = Object.freeze({ ...realmOptions });

/** Options of a pool in a worker, which has neither workers nor a channel: its calls stay in memory. */
const inlineOptions: PoolOptions = Object.freeze({ worker: 'thread', channel: 'memory' });
const sampleOf = (pool: Pool): PoolSample => pool.sample();
const workersOf: SourceWorkers<Pool> = {
  refresh: (pool) => pool.refreshMemory(),
  profile: (pool, ...of) => pool.profileWorker(...of),
};
let lastPoolId = 0;
let lastTaskId = 0;

export interface CloseOptions {
  /**
   * Maximum time for the pending calls, in ms; then they are rejected with `POOL_CLOSED` and the workers
   * are ended. Default: no limit.
   */
  readonly timeoutMs?: number | undefined;
}

export interface PoolEvents {
  /**
   * A worker ended by itself while it ran no task: an uncaught error after the answer, a kill from outside.
   * `cause` has that error. Without a listener it is not emitted.
   */
  error: [error: WorkerExitedError];
}

const closeOptionNames: ReadonlySet<string> = new Set(['timeoutMs']);

export class Pool extends EventEmitter<PoolEvents> implements Caller, AsyncDisposable {
  readonly #id: number;
  readonly #options: FilledPoolOptions;
  readonly #channel: ChannelKind;
  readonly #manager: WorkerManager;
  readonly #dispatcher: Dispatcher;
  readonly #estimates = new Map<number, Estimate>();
  readonly #packer: Packer;
  readonly #durable: DurableCalls;
  readonly #setup: FunctionSnapshot | undefined;
  #state: PoolState;
  #ending: Promise<void> | undefined;
  readonly #pins = new MapperPins({
    pin: (snapshot) => parentExporter().pin(snapshot),
    drop: ({ id }) => {
      for (const worker of this.#manager.workers) worker.forget(id);
      parentExporter().unpin(id);
    },
  });
  /** Number of calls and maps so far. */
  #uses = 0;
  /** Number of maps that have not ended: a pool that closes waits for them. */
  #openMaps = 0;
  readonly #unregister: () => void;
  #onMapsOver: (() => void) | undefined;

  /**
   * Starts `size.min` workers; the others as calls come, or by `warm`. Throws `OPTION_INVALID`,
   * `CHANNEL_UNAVAILABLE`.
   */
  constructor(options?: PoolOptions) {
    super();
    const isShared = options === programOptions && sharedMemoryProblem() === undefined;
    const shared = isShared ? sharedWorkers() : undefined;
    this.#options = fillPoolOptions(shared === undefined ? options : { size: shared.count });
    this.#channel = chooseChannel(this.#options);
    this.#packer = new Packer(this.sharesMemory, this.#options.worker === 'thread');
    this.#durable = new DurableCalls(this.#options);
    this.#state = options === inlineOptions ? 'inline' : 'open';
    keepTickShape();
    lastPoolId += 1;
    this.#id = lastPoolId;
    const isSized = ownOf(options ?? {}).size !== undefined || this.#options.cluster !== undefined;
    if (isSized || shared !== undefined) budget().raise(this.#options.maxWorkers);
    const setup = setupOf(this.#options);
    this.#setup = setup && this.#exportSetup(setup);
    if (this.#setup !== undefined) this.#packer.hold(this.#setup);
    this.#manager = new WorkerManager({
      poolId: this.#id,
      options: this.#options,
      channel: this.#channel,
      setup: this.#setup,
      tasks: () => this.#dispatcher,
      shared,
      nested: new NestedChunks({
        offersWorker: () => this.#dispatcher.offersWorker(),
        pin: (mapper) => this.pin(mapper),
      }),
      onLost: (worker, exit) => {
        if (this.listenerCount('error') > 0) this.emit('error', lostError(worker.label, exit));
      },
    });
    this.#dispatcher = new Dispatcher({
      poolId: this.#id,
      options: this.#options,
      budget: budget(),
      manager: this.#manager,
      packer: this.#packer,
    });
    this.#unregister =
      this.#state === 'open' ? addSource('pool', this, sampleOf, workersOf) : () => {};
    if (this.#state === 'open') announcements.poolOpen.publish({ pool: this.#id });
    if (this.#options.workersAtOnce > 0) this.#manager.grow();
  }

  /** @internal Makes the pool that `run` and `parallel` share. */
  static ofProgram(): Pool {
    return openPool(programOptions);
  }

  /** A pool travels, but its workers do not. */
  [send](): null {
    if (this.isOfPartitions) {
      throw new CodedError(
        'TRANSFER_UNSUPPORTED',
        'a pool of sandboxes would run its calls in the worker that it is sent to: make it there',
      );
    }
    return null;
  }

  /**
   * @internal Makes the pool that arrives as a capture or argument of a task: it runs its calls there. Its
   * worker is one core, which is busy with the task.
   */
  static [receive](): Pool {
    return openPool(inlineOptions);
  }

  /**
   * Runs `fn` with `args` in a worker, with everything that it captured, and resolves with its result.
   * Rejects with what it threw, or with a `CodedError`: `TRANSFER_…` when something cannot travel (then
   * nothing was sent), `WORKER_EXITED`, `POOL_QUEUE_FULL`, `POOL_CLOSED`.
   */
  run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>>;
  run(fn: AnyFunction, ...args: unknown[]): Promise<unknown> {
    return this.call(fn, args, callDefaults);
  }

  /** Returns the same calls with options. Throws `OPTION_INVALID` at once. */
  with(options: CallOptions): Caller;
  with(options: CallOptions, ...more: unknown[]): Caller {
    optionsAlone('pool.with(options).run(fn, …)', more);
    const filled = fillCallOptions(options);
    return {
      run: (fn, ...args) => this.call(fn, args, filled),
      runOnEach: (fn, ...args) => this.#callOnEach(fn, args, filled),
    };
  }

  /**
   * Runs `fn` with `args` once in each worker that exists or starts now, after its own tasks, and resolves
   * with the results in the order of the workers' numbers. Rejects as `run`, with the first failure; the
   * other workers go on. A worker that starts later has not run it: use `setup` for what every worker
   * needs.
   */
  runOnEach<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>[]> {
    return this.#callOnEach(fn, args, callDefaults);
  }

  async #callOnEach<R>(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<R[]> {
    refuseInTransaction('a call of a pool');
    checkForEach(options);
    if (this.#state === 'inline') return [await this.call<R>(fn, args, options)];
    if (this.#state !== 'open') throw closedError();
    if (typeof fn !== 'function')
      throw notFunction('what each worker should run', fn, 'a function, and its arguments follow');
    const workers = this.#manager.workers.filter(isThere);
    return Promise.all(
      workers.map(({ id }) => this.call<R>(fn, args, { ...options, workerId: id })),
    );
  }

  /** @internal Runs a call of `run` and `with`. */
  call<R>(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<R>;
  call(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<unknown> {
    const trace = callTrace();
    const isTraced = trace !== undefined && this.#state !== 'inline';
    return isTraced ? this.#beginTraced(trace, fn, args, options) : this.#begin(fn, args, options);
  }

  /** A method of its own: as a closure in `call`, each call would allocate a context for its captures. */
  #beginTraced(
    trace: CallTrace,
    fn: AnyFunction,
    args: unknown[],
    options: FilledCallOptions,
  ): Promise<unknown> {
    return trace.around('call', fn, () => this.#begin(fn, args, options));
  }

  /** Throws `TRANSFER_…`, for the option that the user wrote; the pool then holds nothing. */
  #exportSetup(joint: AnyFunction): FunctionSnapshot {
    try {
      return this.#packer.exportFunction(joint);
    } catch (error) {
      try {
        const { setup, teardown } = this.#options;
        if (setup !== undefined) this.#packer.exportFunction(setup);
        if (teardown !== undefined) this.#packer.exportFunction(teardown);
      } finally {
        this.#packer.close();
      }
      throw error;
    }
  }

  #begin(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<unknown> {
    refuseInTransaction('a call of a pool');
    // Not async: a promise more for each call would show (bench/cases/throughput.js).
    try {
      if (typeof fn !== 'function')
        throw notFunction('what should run', fn, 'a function, and its arguments follow');
      if (this.#state !== 'open' && this.#state !== 'inline') throw closedError();
      if (options.signal?.aborted) throw abortError(options.signal);
      if (options.whenBusy === 'inline' && this.isOfPartitions) throw inlineError();
      if (options.durable !== undefined) return this.#durable.run(fn, args, options);
      if (this.#state === 'inline') return this.#callInline(fn, args, options);
      if (options.whenBusy !== 'queue' && !this.#manager.hasIdleWorker) {
        return this.#callWhenBusy(fn, args, options);
      }
      return this.#admit(fn, args, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #callWhenBusy(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<unknown> {
    const manager = this.#manager;
    manager.check();
    if (options.whenBusy === 'inline') {
      manager.warm(1);
      return callInline(fn, args, options);
    }
    manager.warm(this.#dispatcher.waitingTasks + 1);
    if (this.#dispatcher.hasComingRoom) return this.#admit(fn, args, options);
    throw busyError(manager.workers.length);
  }

  async #callInline(
    fn: AnyFunction,
    args: unknown[],
    options: FilledCallOptions,
  ): Promise<unknown> {
    const counts = this.#dispatcher;
    counts.runningTasks += 1;
    try {
      const result = await callInline(fn, args, options);
      counts.completedTasks += 1;
      return result;
    } catch (error) {
      counts.failedTasks += 1;
      throw error;
    } finally {
      counts.runningTasks -= 1;
    }
  }

  #admit(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<unknown> {
    this.#uses += 1;
    this.#manager.anticipate();
    const moving = options.transfer.length > 0 ? new Moving(options.transfer) : undefined;
    const call = this.#packer.exportCall(fn, args, options.retry > 0, moving);
    const { snapshot } = call;
    lastTaskId += 1;
    const { onReport } = options;
    return new Promise((resolve, reject) => {
      const task = new Task(
        lastTaskId,
        snapshot,
        functionName(fn),
        call.args,
        call.packed,
        onReport === undefined ? options : { ...options, onReport: inCallersContext(onReport) },
        this.#estimate(snapshot.id),
        false,
        resolve,
        reject,
      );
      this.#hand(task);
      if (moving !== undefined) this.#detach(task, moving);
    });
  }

  /** Detaches the transfer list, unless the task was refused. */
  #detach(task: Task, moving: Moving): void {
    if (task.state === 'settled') return;
    try {
      moving.detach(parcelsOf(task));
    } catch (error) {
      this.#dispatcher.giveUp(task, error);
    }
  }

  #hand(task: Task): void {
    const { signal } = task.options;
    if (signal !== undefined) {
      // Code run by a capture, as a getter, may have aborted it since the call was checked.
      if (signal.aborted) {
        this.#dispatcher.settleRefused(task, abortError(signal));
        return;
      }
      this.#dispatcher.watchSignal(task);
    }
    if (this.#dispatcher.admit(task)) return;
    this.#dispatcher.settleRefused(task, fullError(this.#options.maxWaitingTasks));
  }

  /** @internal True: its workers are sandboxes. */
  get isOfPartitions(): boolean {
    return this.#options.partition !== undefined;
  }

  /** @internal True: its workers see the arena of this process. Sandboxes share their rings alone. */
  get sharesMemory(): boolean {
    return this.#channel === 'shm' && !this.isOfPartitions;
  }

  /** @internal Maximum number of its workers; 0: its calls run where they are made. */
  get maxWorkers(): number {
    return this.#state === 'inline' ? 0 : this.#manager.maxWorkers;
  }

  /** @internal */
  get channelKind(): ChannelKind {
    return this.#channel;
  }

  /**
   * @internal Pins `mapper` as it is now, for many chunks. Throws `TRANSFER_…` and `POOL_CLOSED`. Not for a
   * pool without workers.
   */
  pin(mapper: AnyFunction): PinnedFunction {
    refuseInTransaction('a map');
    if (this.#state !== 'open') throw closedError();
    this.#manager.anticipate();
    const snapshot = this.#packer.exportFunction(mapper);
    const pin = this.#pins.pin(snapshot);
    this.#packer.hold(pin.snapshot);
    const { runningTasks, waitingTasks } = this.#dispatcher;
    const wasIdle = runningTasks + waitingTasks === 0 && !this.#manager.isShared;
    this.#openMaps += 1;
    this.#uses += 1;
    const uses = this.#uses;
    let isPinned = true;
    return {
      codeId: snapshot.id,
      isAlone: () => wasIdle && this.#openMaps === 1 && this.#uses === uses,
      run: (chunk, call) => this.#runChunk(pin.snapshot, chunk, call),
      unpin: () => {
        if (!isPinned) return;
        isPinned = false;
        this.#openMaps -= 1;
        if (this.#openMaps === 0) this.#onMapsOver?.();
        this.#packer.letGo(pin.snapshot);
        pin.release();
      },
    };
  }

  async #runChunk(
    snapshot: FunctionSnapshot,
    chunk: Chunk,
    { name, options, expectedMs }: ChunkCall,
  ): Promise<ChunkResult> {
    try {
      if (this.#state === 'closed') throw closedError();
      if (options.signal?.aborted) throw abortError(options.signal);
      const args = chunkArgs(chunk);
      const packed = this.#packer.packChunk(args, options.retry > 0);
      this.#packer.hold(snapshot);
      lastTaskId += 1;
      const id = lastTaskId;
      const estimate = { runMs: expectedMs, wasOutlier: false };
      let task: Task | undefined;
      const answer = await new Promise<unknown>((resolve, reject) => {
        task = new Task(id, snapshot, name, args, packed, options, estimate, true, resolve, reject);
        this.#hand(task);
      });
      return { ...parseChunkAnswer(answer), workerLabel: task?.workerLabel };
    } catch (error) {
      throw error instanceof ChunkFailure ? error : new ChunkFailure(error, -1, undefined);
    }
  }

  #estimate(functionId: number): Estimate {
    let estimate = this.#estimates.get(functionId);
    if (estimate === undefined) {
      estimate = { runMs: undefined, wasOutlier: false };
      this.#estimates.set(functionId, estimate);
    }
    return estimate;
  }

  /**
   * Starts workers until `workers` exist (default: all), and resolves when they can take tasks. Rejects
   * with `WORKER_START_FAILED`, `POOL_CLOSED`, `OPTION_INVALID`.
   */
  async warm(workers?: number): Promise<void> {
    if (workers !== undefined) integer('workers', workers, 0, Number.MAX_SAFE_INTEGER);
    if (this.#state === 'inline') return;
    if (this.#state !== 'open') throw closedError();
    await this.#manager.warmUp(workers);
  }

  /**
   * Sets the size of the pool, as the option `size`. Workers above it leave when they have answered their
   * tasks; more start as calls come. Throws `OPTION_INVALID`, `POOL_CLOSED`.
   */
  resize(size: NonNullable<PoolOptions['size']>): void {
    const filled = fillSize(size);
    if (this.#state === 'inline') return;
    if (this.#state !== 'open') throw closedError();
    budget().raise(filled.maxWorkers);
    this.#manager.resize(filled);
    this.#dispatcher.pump(); // tasks of a leaving worker go to another
  }

  /**
   * Replaces all workers: present ones answer their tasks and leave, others start as calls come. Resolves
   * when the last has left. Rejects with `POOL_CLOSED`.
   */
  async recycle(): Promise<void> {
    if (this.#state === 'inline') return;
    if (this.#state !== 'open') throw closedError();
    const recycled = this.#manager.recycle();
    this.#dispatcher.pump();
    await recycled;
  }

  /**
   * Resolves when one more call may wait (`maxWaitingTasks`), or a worker is idle: a producer that awaits
   * it before each call without a `key` never gets `POOL_QUEUE_FULL`. Several producers go one by one, in
   * order: one that does not call in the same turn of the event loop leaves the room to the next. Rejects
   * with `POOL_CLOSED`.
   */
  async hasRoom(): Promise<void> {
    if (this.#state === 'open') await this.#dispatcher.whenRoom();
    if (this.#state !== 'open' && this.#state !== 'inline') throw closedError();
  }

  /**
   * Rejects every call that waits for a worker with `ABORTED` and `reason`, and returns their number;
   * running calls go on.
   */
  cancelWaiting(reason?: unknown): number {
    return this.#dispatcher.rejectWaiting(() => cancelledError(reason));
  }

  /** Returns counts and the present state. */
  stats(): PoolStats {
    return poolStats(this.#channel, this.#manager, this.#dispatcher);
  }

  /** Starts `waited` and `ran` of `stats()` anew. Counts and metrics of the pool go on. */
  resetTimes(): void {
    this.#dispatcher.waited.reset();
    this.#dispatcher.ran.reset();
  }

  /** @internal Sample for the agent. */
  sample(): PoolSample {
    return poolSample(this.#channel, this.#manager, this.#dispatcher);
  }

  /** @internal Requests the memory statistics of all workers; resolves when the last has answered or ended. */
  async refreshMemory(): Promise<void> {
    await Promise.all(this.#manager.workers.map((worker) => worker.requestMemory()));
  }

  /** @internal Profiles one of its workers: `Worker.profile`; `undefined` when it has none with this number. */
  profileWorker(
    id: number,
    seconds: number,
    send: (answer: ProfileAnswer) => void,
  ): (() => void) | undefined {
    return this.#manager.workers.find((worker) => worker.id === id)?.profile(seconds, send);
  }

  /**
   * Takes no more calls, waits for the pending calls and maps, then closes the workers. Twice is fine. A
   * stream that was begun is waited for too: read it or leave it first. Inside a task it ends the task's
   * own copy of the pool, and waits for nothing. Rejects with `OPTION_INVALID`.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const given = ownOptions('the options of close', options, closeOptionNames);
    const timeoutMs = number('timeoutMs', given.timeoutMs ?? Infinity, 0);
    this.#ending ??= this.#state === 'inline' ? this.destroy() : this.#drain();
    const timer = startAnswerTimer(
      timeoutMs,
      () => void this.#end(() => closeTimedOutError(timeoutMs)),
    );
    await this.#ending;
    clearTimeout(timer);
  }

  /** Rejects every call that has no answer with `POOL_CLOSED` and ends the workers. Twice is fine. */
  async destroy(): Promise<void> {
    await this.#end(destroyedError);
  }

  async #end(error: () => CodedError): Promise<void> {
    if (this.#state === 'closed') return this.#ending;
    const isInline = this.#state === 'inline';
    this.#state = 'closed';
    if (isInline) return;
    this.#dispatcher.rejectAll(error);
    this.#durable.end(error());
    const ending = this.#stop('kill');
    this.#ending ??= ending;
    await ending;
  }

  async #drain(): Promise<void> {
    this.#state = 'closing';
    await this.#dispatcher.whenIdle();
    if (this.#openMaps > 0) {
      await new Promise<void>((resolve) => {
        this.#onMapsOver = resolve;
      });
    }
    await this.#dispatcher.whenIdle();
    await this.#durable.over();
    if (this.#state !== 'closing') return; // destroyed meanwhile
    this.#state = 'closed';
    await this.#stop('close');
  }

  async #stop(how: 'close' | 'kill'): Promise<void> {
    this.#unregister();
    await this.#dispatcher.stop(how);
    this.#pins.close();
    if (this.#setup !== undefined) this.#packer.letGo(this.#setup);
    this.#packer.close();
    announcements.poolClose.publish({ pool: this.#id });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Outside the class: esbuild renames a class whose body names itself, and its users would see that name.
 */
function openPool(options: PoolOptions): Pool {
  return new Pool(options);
}

/**
 * Wraps set-up and teardown in one function, so that they share their captures: the worker calls it again
 * with `true` at its end.
 */
function setupOf({
  setup,
  teardown,
}: FilledPoolOptions): ((isEnd?: boolean) => unknown) | undefined {
  if (teardown === undefined) return setup;
  return function setupAndTeardown(isEnd = false) {
    return isEnd ? teardown() : setup?.();
  };
}
