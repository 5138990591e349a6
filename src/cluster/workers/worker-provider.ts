// A node that lends workers: `manycore worker`. Its workers are granted to pools or run durable
// tasks. Not here: how (worker-lending.ts, task-runner.ts).

import type { WorkersOptions } from '../tasks/task-options.js';
import type { TaskRunner } from '../tasks/task-runner.js';
import type { Slots } from './slots.js';
import { WorkerLending } from './worker-lending.js';

export interface WorkerProviderParts {
  readonly slots: Slots;
  /** `undefined`: the workers are for durable tasks only. */
  readonly lending: WorkersOptions | undefined;
  /** `undefined`: takes no durable tasks. */
  readonly tasks: TaskRunner | undefined;
  readonly drainTimeoutMs: number;
  /** Called when the workers have ended. */
  readonly onClosed: () => void;
}

export class WorkerProvider implements AsyncDisposable {
  readonly #slots: Slots;
  readonly #lending: WorkerLending | undefined;
  readonly #tasks: TaskRunner | undefined;
  readonly #drainTimeoutMs: number;
  readonly #onClosed: () => void;

  /** @internal Starts granting workers. */
  constructor({ slots, lending, tasks, drainTimeoutMs, onClosed }: WorkerProviderParts) {
    this.#slots = slots;
    this.#lending = lending && new WorkerLending(lending, slots, drainTimeoutMs);
    this.#tasks = tasks;
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#onClosed = onClosed;
  }

  /** Number of workers that work for a pool now. */
  get lentWorkers(): number {
    return this.#lending?.lentWorkers ?? 0;
  }

  /** Number of durable tasks that run now. */
  get runningTasks(): number {
    return this.#tasks?.running ?? 0;
  }

  /** Number of workers in all. */
  get workers(): number {
    return this.#slots.count;
  }

  /**
   * Stops taking work; resolves when the workers have ended, each after its current task or at the
   * deadline.
   */
  async close(): Promise<void> {
    await Promise.all([this.#lending?.close(), this.#tasks?.close(this.#drainTimeoutMs)]);
    this.#onClosed();
  }

  /** As `close()`, but ends the workers at once: other nodes run their durable tasks. */
  async destroy(): Promise<void> {
    await Promise.all([this.#lending?.destroy(), this.#tasks?.close(0)]);
    this.#onClosed();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
