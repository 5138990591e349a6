// The parent's half of the memory statistics of a worker: one request at a time, because a busy worker answers
// when its loop turns. Until then the last answer counts. The worker's half is own-memory.ts.

import { type Deferred, defer } from '../../lib/index.js';
import type { Link } from '../link.js';
import { frame, type WorkerMemory } from '../protocol.js';

export class MemoryRequest {
  /** Last answer; `undefined` before the first. */
  last: WorkerMemory | undefined;
  readonly #link: Link;
  #pending: Deferred<void> | undefined;

  constructor(link: Link) {
    this.#link = link;
  }

  /** True: a request is not answered yet. */
  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Resolves when the worker has answered, or has ended. */
  send(): Promise<void> {
    if (this.#pending === undefined) {
      this.#pending = defer();
      this.#link.post(frame.requestMemory, 0, 0, undefined);
    }
    return this.#pending.promise;
  }

  answered(memory: WorkerMemory): void {
    this.last = memory;
    this.end();
  }

  end(): void {
    this.#pending?.resolve();
    this.#pending = undefined;
  }
}
