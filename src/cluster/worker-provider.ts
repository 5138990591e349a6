// A machine that works for its cluster: `manycore worker`. Its workers are lent to pools, and where it takes
// durable tasks those have the same ones. Not here: how (worker-lending.ts, task-runner.ts).

import type { Slots } from './slots.js';
import type { WorkersOptions } from './task-options.js';
import type { TaskRunner } from './task-runner.js';
import { WorkerLending } from './worker-lending.js';

export interface WorkerProviderParts {
  readonly slots: Slots;
  /** `undefined`: its workers are for durable tasks alone. */
  readonly lending: WorkersOptions | undefined;
  /** `undefined`: it takes none. */
  readonly tasks: TaskRunner | undefined;
  readonly drainTimeoutMs: number;
  /** Its workers have ended. */
  readonly onClosed: () => void;
}

export class WorkerProvider implements AsyncDisposable {
  readonly #slots: Slots;
  readonly #lending: WorkerLending | undefined;
  readonly #tasks: TaskRunner | undefined;
  readonly #drainTimeoutMs: number;
  readonly #onClosed: () => void;

  /** @internal Begins to lend. */
  constructor({ slots, lending, tasks, drainTimeoutMs, onClosed }: WorkerProviderParts) {
    this.#slots = slots;
    this.#lending = lending && new WorkerLending(lending, slots, drainTimeoutMs);
    this.#tasks = tasks;
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#onClosed = onClosed;
  }

  /** Workers that work for a pool now. */
  get lentWorkers(): number {
    return this.#lending?.lentWorkers ?? 0;
  }

  /** Durable tasks that run now. */
  get runningTasks(): number {
    return this.#tasks?.running ?? 0;
  }

  /** As many as there are. */
  get workers(): number {
    return this.#slots.count;
  }

  /** Takes nothing more; resolves when its workers have ended, each after what it does, or at the deadline. */
  async close(): Promise<void> {
    await Promise.all([this.#lending?.close(), this.#tasks?.close(this.#drainTimeoutMs)]);
    this.#onClosed();
  }

  /** As `close()`, with the workers ended at once: durable tasks are done by others. */
  async destroy(): Promise<void> {
    await Promise.all([this.#lending?.destroy(), this.#tasks?.close(0)]);
    this.#onClosed();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
