// The dispatcher decides which task goes when to which worker, and settles each task exactly once. All steps
// between the states of a task (task.ts) are made here.
//
// Work sent ahead (schedule.ts) can be reclaimed until it begins: when another worker has nothing to do, or
// when the caller gives up. Giving up on a running task is a ladder: its signal is aborted, it has
// `graceMs` to end, then its worker is killed.
// Not here: tasks bound to one worker (bound-tasks.ts), tasks in workers that start (offers.ts), starting and
// stopping workers (worker-manager.ts), the calls of users (pool.ts).
// Long (over 400 lines), because every way in which a task changes its state is here.

import { type CodedError, hasCode } from '../errors.js';
import {
  abortError,
  announcements,
  clearTimeout,
  LoopHold,
  nowMs,
  startAnswerTimer,
  startTimer,
  timeoutError,
  unwatchAbort,
  watchAbort,
  whileHeld,
  withoutStack,
} from '../lib/index.js';
import { isCrash, type WorkerExit } from '../worker/index.js';
import { Histogram } from './histogram.js';
import type { FilledPoolOptions } from './options.js';
import { TaskQueue } from './queue.js';
import { waitedError } from './refusals.js';
import { RoomLine } from './room-line.js';
import { chooseWorker, hasRoom, type ScheduleLimits } from './schedule.js';
import { learn, type Task } from './task.js';
import { BoundTasks } from './tasks/bound-tasks.js';
import { nestedBusy } from './tasks/nested.js';
import { Offers } from './tasks/offers.js';
import type { Packer } from './tasks/packer.js';
import { Reclaimer, reclaimAfterMs } from './tasks/reclaim.js';
import { StreamReader } from './tasks/stream.js';
import { type CoreBudget, PoolCores } from './workers/budget.js';
import { exitedError, type WorkerExitedError } from './workers/exit-error.js';
import { hasNeighbours, LastStep } from './workers/last-step.js';
import { LoadWatch } from './workers/load-watch.js';
import type { TaskOwner, TaskWorker, WorkerManager } from './workers/worker-manager.js';

export interface DispatcherOptions {
  readonly poolId: number;
  readonly options: FilledPoolOptions;
  readonly budget: CoreBudget;
  readonly manager: WorkerManager;
  /** Has what the tasks hold until they are settled. */
  readonly packer: Packer;
}

export class Dispatcher implements TaskOwner {
  readonly waited = new Histogram();
  readonly ran = new Histogram();
  completedTasks = 0;
  failedTasks = 0;
  runningTasks = 0;
  readonly #poolId: number;
  readonly #options: FilledPoolOptions;
  readonly #cores: PoolCores;
  readonly #manager: WorkerManager;
  readonly #packer: Packer;
  readonly #queue = new TaskQueue<Task>();
  readonly #bound: BoundTasks;
  readonly #streams = new Map<Task, StreamReader>();
  readonly #workerOf = new Map<Task, TaskWorker>();
  readonly #offers: Offers;
  /** Tasks given up before they began, and not answered yet. */
  readonly #cancelled = new WeakSet<Task>();
  readonly #idleWaiters: (() => void)[] = [];
  readonly #room = new RoomLine(() => this.#freeRoom);
  readonly #limits: ScheduleLimits;
  /** The same limits, where a task may wait in a worker that works for another pool. */
  readonly #limitsElsewhere: ScheduleLimits;
  #sequence = 0;
  readonly #reclaimer: Reclaimer;
  readonly #lastStep: LastStep;
  readonly #loadWatch: LoadWatch;
  /** Holds the event loop while tasks wait: meanwhile no worker may exist that would hold it. */
  readonly #loop = new LoopHold();
  #isPumping = false;

  constructor(given: DispatcherOptions) {
    this.#poolId = given.poolId;
    this.#options = given.options;
    this.#cores = new PoolCores(given.budget, this.pump);
    this.#manager = given.manager;
    this.#packer = given.packer;
    this.#limits = {
      concurrentTasks: given.options.concurrentTasksPerWorker,
      maxInFlight: given.options.maxTasksAhead,
      mayWaitElsewhere: false,
    };
    this.#limitsElsewhere = { ...this.#limits, mayWaitElsewhere: true };
    this.#bound = new BoundTasks({
      manager: this.#manager,
      concurrentTasks: given.options.concurrentTasksPerWorker,
      isQueueEmpty: () => this.#queue.length === 0,
      trySendTo: (task, worker) => this.#trySendTo(task, worker),
      requeue: (task) => this.#queue.unshift([task], task.options.priority),
      refuse: (task, error) => this.settleRefused(task, error),
    });
    this.#loadWatch = new LoadWatch(given.options.graceMs);
    this.#offers = new Offers({
      manager: this.#manager,
      queue: this.#queue,
      loadWatch: this.#loadWatch,
      onBegun: (task, worker, isFirst) => this.#begun(task, worker, isFirst),
    });
    this.#lastStep = new LastStep({
      neighbourGraceMs: given.options.neighbourGraceMs,
      onCondemned: (worker) => {
        this.#manager.condemn(worker);
        // A replacement starts, which has to run even while this one goes on.
        this.#cores.giveForGood(worker);
        this.pump();
      },
    });
    this.#reclaimer = new Reclaimer({
      manager: this.#manager,
      concurrentTasks: given.options.concurrentTasksPerWorker,
      // Shared workers send no notice when they are free for this pool, so tasks of lanes count as well.
      waitingTasks: () => (this.#manager.isShared ? this.waitingTasks : this.#queue.length),
      onReclaimed: (tasks, worker) => this.#requeue(tasks, worker),
      sendImpatiently: () => this.#pump(false),
    });
  }

  get queuedTasks(): number {
    return this.#queue.length;
  }

  /** Includes tasks that wait for one worker. */
  get waitingTasks(): number {
    return this.#queue.length + this.#bound.length;
  }

  /** True: a task would run at once. If only a worker is missing, one more is started. */
  offersWorker(): boolean {
    if (this.waitingTasks > 0 || this.#cores.areSpent) return false;
    if (this.#manager.hasIdleWorker) return true;
    this.#manager.warm(1);
    return false;
  }

  /** True: a worker that starts now will take one task more. */
  get hasComingRoom(): boolean {
    return this.#manager.comingRoom > this.#queue.length;
  }

  /** Sends the task or queues it; false when the queue is full: nothing was done. */
  admit(task: Task): boolean {
    const isAdmitted = this.#tryAdmit(task);
    this.#room.used();
    return isAdmitted;
  }

  #tryAdmit(task: Task): boolean {
    const lane = this.#bound.laneOf(task);
    if (lane === undefined) {
      if (this.#queue.length === 0 && this.#trySend(task, true)) return true;
    } else if (this.#bound.isNext(lane) && this.#trySendTo(task, lane)) return true;
    if (this.#mustNotWait(task)) {
      this.settleRefused(task, nestedBusy());
      return true;
    }
    if (this.#isFull()) return false;
    if (lane === undefined) this.#queue.push(task, task.options.priority);
    else this.#bound.wait(task, lane);
    this.#loop.hold();
    if (task.options.maxQueueMs !== Infinity) this.#limitWait(task);
    this.#waits(task);
    this.#manager.grow();
    if (lane === undefined) this.#offers.make(task);
    this.#reclaimer.watch();
    return true;
  }

  /** Accounts an offered task as running. */
  #begun(task: Task, worker: TaskWorker, isFirst: boolean): void {
    this.#queue.remove(task, task.options.priority);
    if (this.waitingTasks === 0) this.#loop.release();
    if (isFirst) this.#cores.take();
    this.#sent(task, worker);
  }

  /** Records when a task begins to wait: in the queue, or in a worker that is still to start. */
  #waits(task: Task): void {
    task.queuedMs = nowMs();
    if (!announcements.taskQueued.hasSubscribers) return;
    const { waitingTasks } = this;
    announcements.taskQueued.publish({ ...this.#describe(task), waitingTasks });
  }

  /** Tasks that a starting worker will take do not count: they wait for no other task. */
  #isFull(): boolean {
    const { maxWaitingTasks } = this.#options;
    if (this.waitingTasks < maxWaitingTasks) return false;
    return this.waitingTasks - this.#manager.comingRoom >= maxWaitingTasks;
  }

  #limitWait(task: Task): void {
    const { maxQueueMs } = task.options;
    task.timer = startTimer(maxQueueMs, () => {
      this.#leaveQueue(task, waitedError(task.name, maxQueueMs, this.#manager.whyTasksWait));
    });
  }

  #leaveQueue(task: Task, error: unknown): void {
    if (!this.#offers.withdraw(task)) {
      this.giveUp(task, error);
      return;
    }
    if (!this.#bound.remove(task)) this.#queue.remove(task, task.options.priority);
    if (this.waitingTasks === 0) this.#loop.release();
    this.#settle(task, undefined, error, true);
    this.#room.notify();
    this.#notifyIdle();
  }

  /** Rejects a task that was never admitted. */
  settleRefused(task: Task, error: CodedError): void {
    this.#settle(task, undefined, error, true);
  }

  /** Sends as many waiting tasks as possible. */
  readonly pump = (): void => this.#pump(true);

  /** Sends waiting tasks; `isPatient` as of `chooseWorker`. */
  #pump(isPatient: boolean): void {
    if (this.#isPumping) return; // a core was given back meanwhile: the loop below goes on
    this.#isPumping = true;
    this.#bound.leaveGone();
    let task = this.#queue.peek();
    while (task !== undefined && this.#trySend(task, isPatient)) {
      this.#queue.shift();
      task = this.#queue.peek();
    }
    this.#bound.pump();
    this.#isPumping = false;
    if (this.waitingTasks === 0) this.#loop.release();
    else if (task !== undefined) this.#manager.grow();
    if (!this.#room.isEmpty) this.#room.notify();
  }

  /**
   * True for a chunk of a map inside a worker: that worker waits for it. With shared workers it would wait
   * for itself when a task of another pool, which waits for a chunk of its own, is in between.
   */
  #mustNotWait(task: Task): boolean {
    return this.#manager.isShared && task.isChunk && task.options.whenBusy === 'reject';
  }

  /**
   * Sends the task to `worker` if it can begin there at once, since work ahead of a worker may be
   * reclaimed.
   */
  #trySendTo(task: Task, worker: TaskWorker): boolean {
    if (!hasRoom(worker, undefined, this.#limits)) return false;
    if (worker.inFlight > 0 && this.#bound.needsEmptyWorker(task)) return false;
    if (worker.inFlight === 0 && !this.#cores.tryTake()) return false;
    return this.#tryWorker(task, worker);
  }

  /** Returns true when the task leaves the queue: for a worker, for a lane, or because it is settled. */
  #trySend(task: Task, isPatient: boolean): boolean {
    if (this.#bound.isBound(task)) return this.#bound.trySend(task);
    while (true) {
      // A task with a transfer list cannot be reclaimed from a worker.
      const mustBeAlone = task.options.timeoutMs !== Infinity || task.options.transfer.length > 0;
      const runMs = mustBeAlone ? undefined : task.estimate.runMs;
      // A task with a timeout waits here, where the time does not count.
      const mayWait = !mustBeAlone && !this.#mustNotWait(task);
      const mayWaitElsewhere =
        mayWait && this.#manager.hasWorkerElsewhere && this.#manager.isComplete;
      const limits = mayWaitElsewhere ? this.#limitsElsewhere : this.#limits;
      const worker = chooseWorker(this.#bound.workersFor(task), runMs, limits, isPatient);
      if (worker === undefined) return false;
      if (worker.inFlight === 0 && !this.#cores.tryTake()) return false;
      if (this.#tryWorker(task, worker)) return true;
    }
  }

  /** Sends as `#trySend`, to one worker, for which a core is held if it had nothing to do. */
  #tryWorker(task: Task, worker: TaskWorker): boolean {
    try {
      if (worker.trySend(task) === 'sent') {
        this.#sent(task, worker);
        return true;
      }
      // A full channel drains, a closed one ends: either way not this worker now.
      worker.isFull = true;
    } catch (error) {
      this.#settle(task, undefined, error, true);
    }
    if (worker.inFlight === 0) this.#cores.give(worker);
    return task.state === 'settled';
  }

  #sent(task: Task, worker: TaskWorker): void {
    this.#sequence += 1;
    worker.lastUsed = this.#sequence;
    task.sequence = this.#sequence;
    task.state = 'sent';
    task.countedMs = task.estimate.runMs ?? reclaimAfterMs;
    worker.pendingMs += task.countedMs;
    this.runningTasks += 1;
    this.waited.record(task.queuedMs === 0 ? 0 : nowMs() - task.queuedMs);
    const isBehind = worker.inFlight > this.#options.concurrentTasksPerWorker;
    // A shared worker may have been used by another pool at the same moment.
    if (isBehind || worker.isShared) this.#reclaimer.watch();
    if (this.#options.minSpareWorkers > 0) this.#manager.grow();
    if (task.options.maxQueueMs !== Infinity) clearTimeout(task.timer);
    if (task.options.timeoutMs !== Infinity) this.#startTimeout(task, worker);
    if (task.options.signal !== undefined) this.#workerOf.set(task, worker);
    if (announcements.taskStart.hasSubscribers) {
      const waitedMs = task.queuedMs === 0 ? 0 : nowMs() - task.queuedMs;
      announcements.taskStart.publish({ ...this.#describe(task), worker: worker.id, waitedMs });
    }
  }

  #startTimeout(task: Task, worker: TaskWorker): void {
    const { timeoutMs } = task.options;
    const timer = startAnswerTimer(timeoutMs, () => {
      if (task.timer !== timer || task.state === 'settled' || !worker.has(task)) return;
      // The worker ran a task of another pool first, so the task's time has not begun. Twice, and the
      // worker is stuck.
      const isBehind = worker.isBehindOthers && (worker.isBusyElsewhere || !task.wasLate);
      if (isBehind && worker.tryReclaim(task)) {
        task.wasLate ||= !worker.isBusyElsewhere;
        this.#requeue([task], worker);
        this.pump();
        this.#reclaimer.watch();
      } else this.#abandon(task, worker, timeoutError(task.name, timeoutMs));
    });
    task.timer = timer;
  }

  /** A worker has answered, or the task was removed from it. */
  #left(task: Task, worker: TaskWorker): void {
    worker.pendingMs = worker.inFlight === 0 ? 0 : Math.max(0, worker.pendingMs - task.countedMs);
    this.runningTasks -= 1;
    if (worker.inFlight === 0) this.#cores.give(worker);
  }

  onReady(worker: TaskWorker): void {
    this.#offers.end(worker);
    this.#next(worker);
  }

  onResult(worker: TaskWorker, task: Task, ranMs: number, result: unknown): void {
    this.#answered(worker, task, ranMs);
    this.#settle(task, result, undefined, false);
    this.#next(worker);
    this.#manager.answered(worker);
  }

  onError(worker: TaskWorker, task: Task, ranMs: number, error: unknown): void {
    this.#answered(worker, task, ranMs);
    this.#settle(task, undefined, error, true, worker.label);
    this.#next(worker);
    this.#manager.answered(worker);
  }

  onStream(worker: TaskWorker, task: Task, slot: number): void {
    if (task.state === 'settled') {
      worker.grant(slot, 0); // given up before it began
      return;
    }
    const stream = new StreamReader((items) => worker.grant(slot, items), this.#options.graceMs);
    this.#streams.set(task, stream);
    task.state = 'streaming';
    task.resolveWithStream(stream);
  }

  onReport(
    worker: TaskWorker,
    task: Task,
    value: unknown,
    taken: (answer?: unknown) => void,
  ): void {
    void this.#reported(worker, task, value, taken);
  }

  onItem(task: Task, item: unknown): void {
    this.#streams.get(task)?.push(item);
  }

  onItemLost(worker: TaskWorker, task: Task, error: CodedError): void {
    if (task.state === 'settled' || this.#streams.get(task)?.hasLeft === true) return;
    this.#abandon(task, worker, error);
  }

  onDrain(worker: TaskWorker): void {
    worker.isFull = false;
    this.#next(worker);
  }

  onExited(): void {
    this.pump();
    this.#notifyIdle();
  }

  async #reported(
    worker: TaskWorker,
    task: Task,
    value: unknown,
    taken: (answer?: unknown) => void,
  ): Promise<void> {
    try {
      taken(task.state === 'settled' ? undefined : await task.options.onReport?.(value));
      return;
    } catch (error) {
      if (task.state === 'settled') throw error; // without a caller: an unhandled rejection
      this.#abandon(task, worker, error);
    }
    taken();
  }

  #answered(worker: TaskWorker, task: Task, ranMs: number): void {
    this.#left(task, worker);
    worker.abandoned.delete(task); // given up, but ended by itself
    if (worker.abandoned.size > 0) this.#lastStep.answered(worker);
    if (task.isChunk) task.workerLabel = worker.label;
    if (!this.#cancelled.has(task)) {
      learn(task.estimate, ranMs);
      this.ran.record(ranMs);
    }
    if (announcements.taskEnd.hasSubscribers) {
      announcements.taskEnd.publish({ ...this.#describe(task), worker: worker.id, ranMs });
    }
  }

  /** Sends more after `worker` may have got room. */
  #next(worker: TaskWorker): void {
    if (this.waitingTasks > 0) this.pump();
    else if (!this.#room.isEmpty) this.#room.notify();
    if (worker.inFlight === 0 && this.#reclaimer.hasWorkBehind) this.#reclaimer.watch();
    if (this.#idleWaiters.length > 0) this.#notifyIdle();
  }

  /**
   * Settles a task for its caller, exactly once. `workerLabel`: source of an error from a
   * worker.
   */
  #settle(
    task: Task,
    result: unknown,
    error: unknown,
    isError: boolean,
    workerLabel?: string,
  ): void {
    if (task.state === 'settled') return;
    const stream = this.#streams.get(task);
    task.state = 'settled';
    clearTimeout(task.timer);
    if (task.abortListener !== undefined) {
      if (task.options.signal !== undefined) unwatchAbort(task.options.signal, task.abortListener);
      this.#workerOf.delete(task);
    }
    this.#packer.settled(task);
    if (isError) this.failedTasks += 1;
    else this.completedTasks += 1;
    if (isError && announcements.taskError.hasSubscribers) {
      announcements.taskError.publish({ ...this.#describe(task), worker: 0, ranMs: 0, error });
    }
    if (stream !== undefined) {
      this.#streams.delete(task);
      if (isError) stream.fail(error, workerLabel, task.failedAt >= 0);
      else stream.finish(result);
    } else if (!isError) task.resolve(result);
    else if (workerLabel === undefined) task.rejectHere(error);
    else task.rejectFromWorker(error, workerLabel);
  }

  /** Watches the caller's signal, from before the task is admitted until it is settled. */
  watchSignal(task: Task): void {
    const { signal } = task.options;
    if (signal === undefined) return;
    task.abortListener = () => {
      // The cause has the stack of the abort.
      const error = withoutStack(() => abortError(signal));
      if (task.state === 'waiting') {
        this.#leaveQueue(task, error);
        return;
      }
      const worker = this.#workerOf.get(task);
      if (worker !== undefined) this.#abandon(task, worker, error);
    };
    watchAbort(signal, task.abortListener);
  }

  /** Rejects a task with `error`, wherever it is. */
  giveUp(task: Task, error: unknown): void {
    const worker = this.#manager.workers.find((each) => each.has(task));
    if (task.state === 'waiting') this.#leaveQueue(task, error);
    else if (worker !== undefined) this.#abandon(task, worker, error);
  }

  /**
   * Gives up on a task in a worker: reclaimed if it waits behind another task, else the ladder. One that
   * has not begun is cancelled; a worker that does not answer the cancellation is stopped, or loads its
   * modules for ever.
   */
  #abandon(task: Task, worker: TaskWorker, error: unknown): void {
    // A shared worker may work for another pool.
    const isNext = worker.isShared
      ? hasCode(error, 'TASK_TIMED_OUT') && worker.inFlight === 1
      : worker.isNext(task);
    if (!isNext && worker.tryReclaim(task)) {
      this.#loadWatch.watch(worker);
      this.#left(task, worker);
      this.#settle(task, undefined, error, true);
      this.#next(worker);
      return;
    }
    if (worker.tryCancel(task)) this.#cancelled.add(task);
    else worker.abort(task);
    worker.abandoned.add(task);
    this.#settle(task, undefined, error, true);
    this.#requeue(
      [...worker.calls()].filter(
        (other) => other !== task && !this.#offers.has(other) && worker.tryReclaim(other),
      ),
      worker,
    );
    this.pump();
    const wasBehind = hasNeighbours(worker);
    startAnswerTimer(this.#options.graceMs, () => {
      if (!worker.has(task)) return;
      this.#lastStep.begin(task, worker, !this.#cancelled.has(task), wasBehind);
    })?.unref();
  }

  #requeue(tasks: Task[], worker: TaskWorker): void {
    if (tasks.length > 0) this.#loadWatch.watch(worker);
    for (const task of tasks.sort((a, b) => b.sequence - a.sequence)) {
      this.#left(task, worker);
      if (task.state !== 'settled') this.#wait(task);
    }
  }

  /** Puts a task back to the front of the queue. */
  #wait(task: Task): void {
    clearTimeout(task.timer);
    if (this.#mustNotWait(task)) {
      this.#settle(task, undefined, nestedBusy(), true);
      return;
    }
    task.state = 'waiting';
    this.#queue.unshift([task], task.options.priority);
    this.#loop.hold();
    if (task.options.maxQueueMs !== Infinity) this.#limitWait(task);
  }

  onExit(worker: TaskWorker, exit: WorkerExit, unanswered: Task[]): boolean {
    let hadBegun = worker.lostLoad !== undefined;
    this.#bound.leave(worker);
    const running = unanswered.filter((task) => !this.#offers.has(task));
    for (const task of unanswered) {
      if (!this.#offers.forget(task)) continue;
      const wasLoading = this.#wasLoading(worker, task);
      // Readiness is sent before anything begins: only a broken channel may have held it back.
      if (!(wasLoading ? this.#endedIt(task, exit) : worker.hasBegun(task))) continue;
      this.#queue.remove(task, task.options.priority);
      this.#settle(task, undefined, this.#exitError(worker, exit, task), true, worker.label);
    }
    if (running.length > 0) this.#cores.give(worker);
    this.runningTasks -= running.length;
    for (const task of running.sort((a, b) => b.sequence - a.sequence)) {
      const wasLoading = this.#wasLoading(worker, task);
      const hasBegun = wasLoading ? this.#endedIt(task, exit) : worker.hasBegun(task);
      hadBegun ||= hasBegun;
      if (task.state === 'settled') continue;
      if (hasBegun && (task.retriesLeft === 0 || task.state === 'streaming')) {
        const error = this.#exitError(worker, exit, task);
        this.#settle(task, undefined, error, true, worker.label);
        continue;
      }
      if (hasBegun) task.retriesLeft -= 1;
      this.#wait(task);
    }
    return hadBegun;
  }

  /** True: `worker` ended by itself while it loaded the modules of this task, which has not begun. */
  #wasLoading(worker: TaskWorker, task: Task): boolean {
    return !worker.wasEnded && worker.lostLoad?.call === task;
  }

  /**
   * For a task whose modules were loading. A signal may have come from outside, so it counts from the
   * second time on.
   */
  #endedIt(task: Task, { signal }: WorkerExit): boolean {
    task.lostLoads += 1;
    return task.lostLoads > 1 || signal === null || isCrash(signal);
  }

  #exitError(worker: TaskWorker, exit: WorkerExit, task: Task): WorkerExitedError {
    return exitedError(
      worker.label,
      exit,
      task.name,
      task.options.retry - task.retriesLeft,
      this.#lastStep.blameOf(worker),
      worker.lostLoad?.call === task ? worker.lostLoad.specifier : undefined,
    );
  }

  /**
   * Rejects what waits when no worker starts. A task with retries uses one to wait on, unless the cause is
   * lasting.
   */
  onGiveUp(error: CodedError, isLasting: boolean): void {
    const kept: Task[] = [];
    this.#offers.end(undefined);
    for (let task = this.#queue.shift(); task !== undefined; task = this.#queue.shift()) {
      if (isLasting || task.retriesLeft === 0) this.#settle(task, undefined, error, true);
      else kept.push(task);
    }
    for (const task of kept) {
      task.retriesLeft -= 1;
      this.#queue.push(task, task.options.priority);
    }
    if (this.waitingTasks === 0) this.#loop.release();
    this.#room.notify();
    this.#notifyIdle();
  }

  /** Rejects all waiting tasks and returns their number; running tasks go on. */
  rejectWaiting(error: () => CodedError): number {
    this.#offers.end(undefined);
    const count = this.waitingTasks;
    for (let task = this.#queue.shift(); task !== undefined; task = this.#queue.shift()) {
      this.#settle(task, undefined, error(), true);
    }
    for (const task of this.#bound.takeAll()) this.#settle(task, undefined, error(), true);
    this.#loop.release();
    this.#room.notify();
    this.#notifyIdle();
    return count;
  }

  /** Rejects all tasks without an answer. */
  rejectAll(error: () => CodedError): void {
    this.rejectWaiting(error);
    for (const worker of this.#manager.workers) {
      for (const task of worker.calls()) this.#settle(task, undefined, error(), true);
    }
  }

  /** Resolves when one more task may be called: there is room in the queue, or a worker is idle. */
  whenRoom(): Promise<void> {
    const room = this.#room.wait();
    if (room === undefined) return Promise.resolve();
    this.#manager.warm(1);
    return whileHeld(room);
  }

  get #freeRoom(): number {
    const idle = this.#manager.hasIdleWorker ? 1 : 0;
    return Math.max(idle, this.#options.maxWaitingTasks - this.waitingTasks);
  }

  #notifyIdle(): void {
    if (this.runningTasks > 0 || this.waitingTasks > 0) return;
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  /** Resolves when no task waits or runs. */
  whenIdle(): Promise<void> {
    if (this.runningTasks === 0 && this.waitingTasks === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  async stop(how: 'close' | 'kill'): Promise<void> {
    this.#reclaimer.stop();
    this.#loop.end();
    this.#cores.end();
    this.#room.end();
    await this.#manager.stop(how);
  }

  #describe(task: Task): { pool: number; task: number; name: string } {
    return { pool: this.#poolId, task: task.id, name: task.name };
  }
}
