// The running task. A task runs with its own AbortSignal: aborted when the caller aborts or the time is
// over, so that an async task can stop by itself before its worker is ended. The signal is created at the
// first request: most tasks make none.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Chunk } from '../protocol.js';
import { workerOfOtherCopy } from './inside.js';

/** Answer of a task without a result. */
export interface Failure {
  readonly error: unknown;
}

/** Sends a value to the caller of `task`; resolves when it was taken, in a partition with the answer. */
export type Reporter = (task: RunningTask, value: unknown) => Promise<unknown>;

/** One task in the worker, from its call to its answer. */
export class RunningTask {
  readonly slot: number;
  /** The chunk of a map that the task runs, if any. */
  chunk: Chunk | undefined = undefined;
  readonly reporter: Reporter;
  #isOver = false;
  #listener: ((failure: Failure | undefined) => void) | undefined;
  #controller: AbortController | undefined;
  #isAborted = false;

  constructor(slot: number, reporter: Reporter) {
    this.slot = slot;
    this.reporter = reporter;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#isAborted;
  }

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }

  /** True: it was answered. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Calls `listener` once it is answered, before the next task begins: a promise would be later. */
  whenOver(listener: (failure: Failure | undefined) => void): void {
    this.#listener = listener;
  }

  end(failure: Failure | undefined): void {
    this.#isOver = true;
    this.#listener?.(failure);
  }
}

const storage = new AsyncLocalStorage<RunningTask>();
let synchronous: RunningTask | undefined;

/** Calls `work` as the body of `task`; `isAlone`: no other task can run before this one ends. */
export function callInTask<T>(task: RunningTask, isAlone: boolean, work: () => T): T {
  if (!isAlone) return storage.run(task, work);
  synchronous = task;
  return work();
}

/** Forgets the task that `callInTask` left behind, when it was answered. */
export function leaveTask(task: RunningTask, failure: Failure | undefined): void {
  if (synchronous === task) synchronous = undefined;
  task.end(failure);
}

/**
 * Returns the signal of the calling task: aborted when its caller aborts or its time is over. `undefined`
 * outside of a task, also in one that runs inline in the caller.
 */
export function taskSignal(): AbortSignal | undefined {
  const task = runningTask();
  return task === undefined ? workerOfOtherCopy()?.taskSignal() : task.signal;
}

/** Returns the calling task, as `taskSignal`. */
export function runningTask(): RunningTask | undefined {
  return storage.getStore() ?? synchronous;
}
