// A machine that works for its cluster: `manycore worker`. Its hosts are lent to pools, and where it takes
// durable tasks those have the same ones. Not here: how (lender.ts, task-worker.ts).

import type { HostsOptions } from './hosts.js';
import { Lender } from './lender.js';
import type { Slots } from './slots.js';
import type { TaskWorker } from './task-worker.js';

export class Worker implements AsyncDisposable {
  readonly #slots: Slots;
  readonly #lender: Lender | undefined;
  readonly #tasks: TaskWorker | undefined;

  /** @internal Begins to lend. */
  constructor(slots: Slots, lending: HostsOptions | undefined, tasks: TaskWorker | undefined) {
    this.#slots = slots;
    this.#lender = lending && new Lender(lending, slots);
    this.#tasks = tasks;
  }

  /** Hosts that work for a pool now. */
  get lentHosts(): number {
    return this.#lender?.lentHosts ?? 0;
  }

  /** Durable tasks that run now. */
  get runningTasks(): number {
    return this.#tasks?.running ?? 0;
  }

  /** As many as there are. */
  get hosts(): number {
    return this.#slots.count;
  }

  /** Takes nothing more, and ends its hosts with what they do; resolves when they have ended. */
  async close(): Promise<void> {
    await Promise.all([this.#lender?.close(), this.#tasks?.close()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
