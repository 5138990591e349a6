// The workers of one pool: started by load, replaced when they end, retired when idle, too old or too
// large. Their tasks are the dispatcher's.
//
// A worker that ends before it did anything counts as a failed start (starts.ts).
// Long (over 400 lines), because growing, shrinking, resizing and replacing change one list of workers.

import type { ChannelKind } from '../../channels/index.js';
import type { FunctionSnapshot } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import {
  announcements,
  clearTimeout,
  isMainRealm,
  nowMs,
  setTimeout,
  startTimer,
  type WorkerLimit,
  whileHeld,
} from '../../lib/index.js';
import {
  allowedCores,
  coresToPin,
  engineOf,
  type FilledPartition,
  failureOfStart,
  type NestedOwner,
  type SharedWorkers,
  type StartFailure,
  sandboxAround,
  type TaskListener,
  Worker,
  type WorkerExit,
  type WorkerOwner,
} from '../../worker/index.js';
import { type FilledPoolOptions, optionsAt, type PoolSize } from '../options.js';
import type { PartitionLimits } from '../stats.js';
import type { Task } from '../task.js';
import { idleEnd } from './early-end.js';
import { freePlace } from './options-by-place.js';
import { type Load, workersToStart, workersToStop } from './scale.js';
import { type PoolHealth, Starts } from './starts.js';

export type TaskWorker = Worker<Task>;

/** Has the tasks of the workers, and follows what concerns them. */
export interface TaskOwner extends TaskListener<Task> {
  /** Number of tasks that wait for any worker. */
  readonly queuedTasks: number;
  /** A worker can take tasks. */
  onReady(worker: TaskWorker): void;
  /**
   * A worker ended, with tasks that it had not answered. Returns true when one of them had begun, or
   * loaded.
   */
  onExit(worker: TaskWorker, exit: WorkerExit, unanswered: Task[]): boolean;
  /** After `onExit`: waiting tasks may be sent elsewhere, or need another worker. */
  onExited(): void;
  /** No worker starts: waiting tasks are rejected with `error`, or unless `isLasting` tried again. */
  onGiveUp(error: CodedError, isLasting: boolean): void;
}

export interface WorkerManagerOptions {
  readonly poolId: number;
  readonly options: FilledPoolOptions;
  readonly channel: ChannelKind;
  readonly setup: FunctionSnapshot | undefined;
  /** Returns the owner of the tasks, which may be made after the manager. */
  readonly tasks: () => TaskOwner;
  /** Finds workers for maps that run in workers. */
  readonly nested: NestedOwner;
  /** Source of workers that other pools use as well; `undefined`: they are started here. */
  readonly shared: SharedWorkers | undefined;
  /** Called for a worker that ended by itself or by an uncaught error, and not under a task. */
  readonly onLost: (worker: TaskWorker, exit: WorkerExit) => void;
}

/** A caller that waits until `workers` workers are ready. */
interface WarmWaiter {
  readonly workers: number;
  resolve(): void;
  reject(error: CodedError): void;
}

/** Time from the need of a spare to its start, in ms. */
const spareDelayMs = 10;

const noneOverLimit: Readonly<Record<WorkerLimit, number>> = Object.freeze({
  memory: 0,
  tasks: 0,
  output: 0,
  result: 0,
  data: 0,
  protocol: 0,
});

function limitsOf(partition: FilledPartition): PartitionLimits {
  const { memoryMb, fileMb, resultMb, outputMb } = partition;
  // Around a virtual machine is a sandbox, with limits of its own.
  const around = partition.kind === 'vm' ? sandboxAround(partition) : partition;
  const { cpuPercent, maxProcesses } = around;
  const engine = partition.kind === 'vm' ? engineOf(partition) : undefined;
  return { engine, memoryMb, cpuPercent, maxProcesses, fileMb, resultMb, outputMb };
}

export class WorkerManager implements WorkerOwner<Task> {
  readonly workers: TaskWorker[] = [];
  /** For `stats()`. */
  readonly counts = { startedWorkers: 0, exitedWorkers: 0, lostWorkers: 0 };
  /** For `stats()`; `undefined` in a pool without partitions. */
  readonly partition: PartitionLimits | undefined;
  readonly overLimit: Record<WorkerLimit, number> | undefined;
  readonly #poolId: number;
  readonly #options: FilledPoolOptions;
  readonly #setup: FunctionSnapshot | undefined;
  readonly #channel: ChannelKind;
  readonly #tasks: () => TaskOwner;
  readonly #onLost: WorkerManagerOptions['onLost'];
  readonly #nested: NestedOwner;
  readonly #shared: SharedWorkers | undefined;
  readonly #starts: Starts;
  /** Sums over workers that have ended. */
  readonly #formerBytes = { sentBytes: 0, receivedBytes: 0 };
  readonly #condemned = new Set<TaskWorker>();
  /** The place of each worker in the pool (options-by-place.ts). */
  readonly #places = new Map<TaskWorker, number>();
  readonly #exitWaiters: (() => void)[] = [];
  readonly #warmWaiters: WarmWaiter[] = [];
  /** Allowed number of workers; `resize` changes it. */
  #size: PoolSize;
  /** Callbacks for the end of each worker. */
  readonly #leaving = new Map<TaskWorker, (() => void)[]>();
  #idleTimer: NodeJS.Timeout | undefined;
  #spareTimer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(given: WorkerManagerOptions) {
    const { poolId, options, channel, setup, tasks, nested, shared, onLost } = given;
    this.#poolId = poolId;
    this.#shared = shared;
    this.#options = options;
    this.#size = options;
    this.partition = options.partition && limitsOf(options.partition);
    this.overLimit = options.partition && { ...noneOverLimit };
    this.#channel = channel;
    this.#setup = setup;
    this.#tasks = tasks;
    this.#onLost = onLost;
    this.#nested = nested;
    this.#starts = new Starts({
      poolId,
      kind: options.worker,
      startRetryMs: options.startRetryMs,
      waitingTasks: () => tasks().queuedTasks,
      isWaitedFor: () => tasks().queuedTasks > 0 || this.#warmWaiters.length > 0,
      hasReadyWorker: () => this.#hasReadyWorker,
      hasStartingWorker: () => this.workers.some(({ state }) => state === 'starting'),
      onAgain: () => this.#growAgain(),
      onGiveUp: (error, isLasting) => {
        this.#notifyWarm(error);
        if (!this.#hasReadyWorker) tasks().onGiveUp(error, isLasting);
      },
    });
  }

  get #hasReadyWorker(): boolean {
    return this.workers.some(({ state }) => state === 'ready');
  }

  get health(): PoolHealth {
    return this.#starts.health;
  }

  /** Reason for error messages. */
  get whyTasksWait(): string {
    if (this.#hasReadyWorker) return 'all workers are at work';
    const { reason } = this.#starts.health;
    return reason === undefined ? 'no worker is ready yet' : `no worker starts (${reason})`;
  }

  /** Starts that were delayed because others had failed. */
  get restarts(): number {
    return this.#starts.restarts;
  }

  /** Sum over all workers, ended ones included. */
  bytes(which: 'sentBytes' | 'receivedBytes'): number {
    return this.workers.reduce((sum, worker) => sum + worker[which], this.#formerBytes[which]);
  }

  #load(wantedIdle = 0): Load {
    const load = { idleWorkers: 0, busyWorkers: 0, startingWorkers: 0 };
    for (const worker of this.workers) {
      if (worker.state === 'starting') load.startingWorkers += 1;
      else if (worker.isRetiring) continue;
      else if (worker.inFlight > 0 || worker.isBusyElsewhere) load.busyWorkers += 1;
      else load.idleWorkers += 1;
    }
    const { minWorkers, maxWorkers, workersAtOnce } = this.#size;
    const { minSpareWorkers, maxSpareWorkers } = this.#options;
    const waitingTasks = Math.max(this.#tasks().queuedTasks, wantedIdle);
    return {
      ...load,
      minWorkers,
      maxWorkers,
      workersAtOnce,
      minSpareWorkers,
      maxSpareWorkers,
      waitingTasks,
    };
  }

  /** True: a worker has nothing to do right now. */
  get hasIdleWorker(): boolean {
    return this.workers.some(
      (worker) => worker.isOpen && worker.inFlight === 0 && !worker.isBusyElsewhere,
    );
  }

  /** Number of tasks that the starting workers will take. */
  get comingRoom(): number {
    const starting = this.workers.filter(({ state }) => state === 'starting').length;
    return starting * this.#options.concurrentTasksPerWorker;
  }

  /**
   * The starting worker with the fewest offers that takes one more; `undefined` while a worker is ready.
   */
  get offerable(): TaskWorker | undefined {
    if (this.#hasReadyWorker) return undefined;
    const starting = this.workers.filter(({ takesOffers }) => takesOffers);
    return starting.sort((a, b) => a.inFlight - b.inFlight)[0];
  }

  /** True: other pools use these workers, too. */
  get isShared(): boolean {
    return this.#shared !== undefined;
  }

  /** True: a worker works for another pool, which sends no notice when it is done. */
  get hasWorkerElsewhere(): boolean {
    return this.#shared !== undefined && this.workers.some((worker) => worker.isBusyElsewhere);
  }

  /** True: no more workers will start. */
  get isComplete(): boolean {
    const ready = this.workers.filter(({ state }) => state === 'ready').length;
    return ready >= this.#size.maxWorkers;
  }

  /**
   * Starts workers by load, unless a delay after a failure runs. `wantedIdle`: so many are to be idle or
   * starting, even if fewer tasks wait. Cheap when there is nothing to do.
   */
  grow(wantedIdle = 0): void {
    if (this.#isClosing || this.#starts.isPausing) return;
    if (this.workers.length - this.#condemned.size >= this.#size.maxWorkers) return;
    const before = this.workers.length;
    const load = this.#load(wantedIdle);
    let count = workersToStart({ ...load, minSpareWorkers: 0 });
    if (load.minSpareWorkers > 0 && workersToStart(load) > count) this.#spareLater();
    for (; count > 0; count -= 1) {
      if (!this.#start()) break;
    }
    if (this.workers.length > before && announcements.poolResize.hasSubscribers) {
      announcements.poolResize.publish({
        pool: this.#poolId,
        workersBefore: before,
        workersWanted: this.workers.length,
      });
    }
  }

  /** Starts spares a moment later: a start takes this thread longer than the answer of a short call. */
  #spareLater(): void {
    this.#spareTimer ??= setTimeout(() => {
      this.#spareTimer = undefined;
      this.grow(this.#options.minSpareWorkers);
    }, spareDelayMs);
    this.#spareTimer.unref();
  }

  /** Throws when no call can be taken; only on a cluster. */
  check(): void {
    this.#options.cluster?.check();
  }

  /** Starts workers until `count` are idle or starting, even if no task waits. */
  warm(count: number): void {
    this.grow(count);
  }

  /** Starts one more worker while a call is prepared and no worker is ready. Throws as `check`. */
  anticipate(): void {
    this.check();
    if (!this.#hasReadyWorker) this.warm(this.#tasks().queuedTasks + 1);
  }

  get maxWorkers(): number {
    return this.#size.maxWorkers;
  }

  /** Sets the size. Workers above it leave when they have answered their tasks. */
  resize(size: PoolSize): void {
    this.#size = size;
    const staying = this.workers.filter(({ isRetiring }) => !isRetiring);
    staying.sort((a, b) => a.inFlight - b.inFlight);
    for (const worker of staying.slice(0, Math.max(0, staying.length - size.maxWorkers))) {
      worker.retire();
    }
    this.#growAgain();
    this.#notifyWarm(undefined);
    this.#watchIdle();
  }

  /**
   * Grows as `grow`, and for `warmUp` callers: an expected worker has ended, or more workers are allowed.
   */
  #growAgain(): void {
    if (this.#warmWaiters.length > 0) this.warm(this.#wantedReady);
    else this.grow();
  }

  /** Retires all present workers; others start by load. Resolves when the last has left. */
  async recycle(): Promise<void> {
    const leaving = [...this.workers];
    for (const worker of leaving) worker.retire();
    await whileHeld(Promise.all(leaving.map((worker) => this.#whenExited(worker))));
  }

  #whenExited(worker: TaskWorker): Promise<void> {
    if (!this.workers.includes(worker)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#leaving.set(worker, [...(this.#leaving.get(worker) ?? []), resolve]);
    });
  }

  /**
   * Starts workers until `workers` exist, and resolves when they are ready. Rejects with
   * `WORKER_START_FAILED`, or as `check`.
   */
  async warmUp(workers = Infinity): Promise<void> {
    this.check();
    if (this.#isReady(workers)) return;
    // Registered before anything starts: a start may fail at once, and is repeated while a call waits.
    const ready = new Promise<void>((resolve, reject) => {
      this.#warmWaiters.push({ workers, resolve, reject });
    });
    this.warm(this.#wantedReady);
    await whileHeld(ready);
  }

  /** Largest number of workers that a `warmUp` call waits for. */
  get #wantedReady(): number {
    const largest = Math.max(...this.#warmWaiters.map(({ workers }) => workers));
    return Math.min(largest, this.#size.maxWorkers);
  }

  #isReady(workers: number): boolean {
    const ready = this.workers.filter((worker) => worker.state === 'ready');
    return ready.length >= Math.min(workers, this.#size.maxWorkers);
  }

  #notifyWarm(error: CodedError | undefined): void {
    if (this.#warmWaiters.length === 0) return;
    for (const waiter of this.#warmWaiters.splice(0)) {
      if (error !== undefined) waiter.reject(error);
      else if (this.#isReady(waiter.workers)) waiter.resolve();
      else this.#warmWaiters.push(waiter);
    }
    this.#watchIdle();
  }

  #start(): boolean {
    const options = this.#options;
    const place = freePlace([...this.#places.values()]);
    try {
      const worker = Worker.start<Task>(
        {
          ...options,
          ...optionsAt(options, place),
          kind: options.worker,
          channel: this.#channel,
          setup: this.#setup,
          hasTeardown: options.teardown !== undefined,
          nested: this.#nested,
          shared: this.#shared?.isOver === true ? undefined : this.#shared,
          remote: options.cluster,
          concurrentTasks: options.concurrentTasksPerWorker,
          pinnedCores: this.#nextCores(),
        },
        this,
        this.#tasks(),
      );
      this.workers.push(worker);
      this.#places.set(worker, place);
      this.counts.startedWorkers += 1;
      announcements.workerStart.publish({
        worker: worker.id,
        kind: worker.shownKind,
        pid: worker.pid,
      });
      return true;
    } catch (error) {
      this.#starts.failed(failureOfStart(error), undefined);
      return false;
    }
  }

  #nextCores(): number[] {
    if (this.#options.affinity === 'none') return [];
    const staying = this.workers.filter((worker) => !worker.isRetiring);
    return coresToPin(
      staying.flatMap((worker) => worker.pinnedCores),
      allowedCores(),
    );
  }

  onReady(worker: TaskWorker): void {
    if (announcements.workerReady.hasSubscribers) {
      const startedInMs = nowMs() - worker.startedAtMs;
      announcements.workerReady.publish({
        worker: worker.id,
        kind: worker.shownKind,
        pid: worker.pid,
        startedInMs,
      });
    }
    this.#starts.ready();
    this.#tasks().onReady(worker);
    if (worker.inFlight === 0) this.#watchIdle();
    this.#notifyWarm(undefined);
  }

  /** To be called when a worker has answered, and has got more tasks if there are any. */
  answered(worker: TaskWorker): void {
    if (worker.tasksDone === 1) this.#starts.succeeded();
    if (worker.inFlight === 0) this.#watchIdle();
  }

  /** Excludes a worker that will be killed, so that another may take its place now. */
  condemn(worker: TaskWorker): void {
    worker.isRetiring = true;
    this.#condemned.add(worker);
    this.grow();
  }

  onExit(
    worker: TaskWorker,
    exit: WorkerExit,
    unanswered: Task[],
    startFailure: StartFailure | undefined,
  ): void {
    this.workers.splice(this.workers.indexOf(worker), 1);
    this.#places.delete(worker);
    this.#condemned.delete(worker);
    this.counts.exitedWorkers += 1;
    this.#formerBytes.sentBytes += worker.sentBytes;
    this.#formerBytes.receivedBytes += worker.receivedBytes;
    const isExpected = this.#isClosing || worker.isRetiring || worker.wasEnded;
    if (!isExpected) this.counts.lostWorkers += 1;
    this.#noteLimit(worker, exit);
    if (announcements.workerExit.hasSubscribers) {
      const { exitCode, signal, error } = exit;
      announcements.workerExit.publish({
        worker: worker.id,
        kind: worker.shownKind,
        pid: worker.pid,
        exitCode,
        signal,
        isExpected,
        error,
      });
    }
    const hadBegun = this.#tasks().onExit(worker, exit, unanswered);
    const isReported = hadBegun || startFailure !== undefined;
    if ((!isExpected || exit.isUncaught === true) && !isReported) this.#onLost(worker, exit);
    for (const resolve of this.#leaving.get(worker) ?? []) resolve();
    this.#leaving.delete(worker);
    if (this.workers.length === 0) for (const resolve of this.#exitWaiters.splice(0)) resolve();
    if (!this.#isClosing) {
      const failure = hadBegun ? undefined : (startFailure ?? idleEnd(worker, exit));
      // Before anything requests another worker: its start has to wait.
      if (failure !== undefined) this.#starts.failed(failure, worker);
      else if (!worker.leavesWithProgram) this.#growAgain();
    }
    this.#tasks().onExited();
  }

  #noteLimit({ id: worker, shownKind: kind, pid }: TaskWorker, { limit }: WorkerExit): void {
    if (limit === undefined || this.overLimit === undefined) return;
    this.overLimit[limit.name] += 1;
    const { name, reason } = limit;
    announcements.workerLimit.publish({ worker, kind, pid, limit: name, reason });
  }

  #watchIdle(): void {
    if (this.#idleTimer !== undefined || this.workers.length <= this.#size.minWorkers) return;
    if (this.#isClosing || this.#warmWaiters.length > 0) return; // warmUp() waits until all are ready at once
    const idle = new Map(this.#idleWorkers().map((worker) => [worker, worker.lastUsed]));
    this.#idleTimer = startTimer(this.#options.idleTimeMs, () => {
      this.#idleTimer = undefined;
      this.#shrink(idle);
    });
    this.#idleTimer?.unref();
  }

  #idleWorkers(): TaskWorker[] {
    return this.workers.filter((worker) => worker.inFlight === 0 && worker.state === 'ready');
  }

  /**
   * Retires one worker that has been idle all the time, the least recently used; checks again while there
   * are more. All of them in a context of node:vm: each file of a test runner leaves a pool behind.
   * `before`: the idle workers at the start of that time, and their `lastUsed`. No clock is read for each
   * task.
   */
  #shrink(before: ReadonlyMap<TaskWorker, number>): void {
    if (this.#isClosing || workersToStop(this.#load()) === 0) return;
    const idle = this.#idleWorkers().filter((worker) => before.get(worker) === worker.lastUsed);
    idle.sort((a, b) => a.lastUsed - b.lastUsed);
    const maxStops = isMainRealm ? 1 : workersToStop(this.#load());
    for (const worker of idle.slice(0, maxStops)) worker.retire();
    this.#watchIdle();
  }

  /** Starts nothing more and closes every worker; resolves when the last has left. */
  async stop(how: 'close' | 'kill'): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#idleTimer);
    this.#notifyWarm(
      new CodedError('POOL_CLOSED', 'the pool was closed while its workers started'),
    );
    this.#starts.stop();
    for (const worker of [...this.workers]) {
      if (how === 'kill') worker.kill();
      else if (worker.state === 'starting') worker.terminate();
      else worker.close();
    }
    if (this.workers.length === 0) return;
    const timer = startTimer(this.#options.graceMs, () => {
      for (const worker of this.workers) worker.kill();
    });
    const exited = new Promise<void>((resolve) => {
      this.#exitWaiters.push(resolve);
    });
    await whileHeld(exited);
    clearTimeout(timer);
  }
}
