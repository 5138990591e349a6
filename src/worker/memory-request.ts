// The parent's half of what a worker tells of its memory: one question at a time, because a worker that is at work
// answers when its loop comes to it. Until then what it told last counts. The worker's half is own-memory.ts.

import { type Deferred, defer } from '../internal/index.js';
import type { Link } from './link.js';
import { frame, type WorkerMemory } from './protocol.js';

export class MemoryRequest {
  /** `undefined` until it has answered once. */
  last: WorkerMemory | undefined;
  readonly #link: Link;
  #pending: Deferred<void> | undefined;

  constructor(link: Link) {
    this.#link = link;
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
