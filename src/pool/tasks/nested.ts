// Maps inside tasks, on the side of the pool: a chunk that a worker offers goes to an idle worker, if there
// is one and a core for it; otherwise the offering worker runs it itself.

import type { AnyFunction } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import {
  type ChunkAnswer,
  ItemFailure,
  type NestedChunk,
  type NestedOwner,
} from '../../worker/index.js';
import { ChunkFailure, type PinnedFunction } from '../calls/pinned.js';
import { callDefaults } from '../options.js';

/** Refuses a chunk; the worker that offers it runs it itself. */
export function nestedBusy(): CodedError {
  return new CodedError('POOL_BUSY', 'all workers are at work: run the chunk where it is');
}

export interface NestedPool {
  /** True: a worker has nothing to do and a core is free. Starts one more worker where allowed. */
  offersWorker(): boolean;
  pin(mapper: AnyFunction): PinnedFunction;
}

export class NestedChunks implements NestedOwner {
  readonly #pool: NestedPool;
  readonly #pinned = new Map<AnyFunction, PinnedFunction>();

  constructor(pool: NestedPool) {
    this.#pool = pool;
  }

  async runNested({ mapper, chunk, name, signal }: NestedChunk): Promise<ChunkAnswer> {
    try {
      if (!this.#pool.offersWorker()) {
        throw nestedBusy();
      }
      let pinned = this.#pinned.get(mapper);
      if (pinned === undefined) {
        pinned = this.#pool.pin(mapper);
        this.#pinned.set(mapper, pinned);
      }
      return await pinned.run(chunk, {
        name,
        expectedMs: undefined,
        options: { ...callDefaults, whenBusy: 'reject', signal },
      });
    } catch (thrown) {
      if (thrown instanceof ChunkFailure) throw new ItemFailure(thrown.at, thrown.error);
      throw new ItemFailure(-1, thrown);
    }
  }

  forgetNested(mapper: AnyFunction): void {
    this.#pinned.get(mapper)?.unpin();
    this.#pinned.delete(mapper);
  }
}
