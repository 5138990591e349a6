// Blocking work beside the loop of an instance: in threads that a deployment's instances on one loop share,
// and that are started on demand. Not here: how functions travel (pool/).

import { CodedError } from '../../errors.js';
import { ownOptions } from '../../lib/index.js';
import { Pool, type TaskResult } from '../../pool/index.js';
import type { BlockingOptions } from '../types.js';

const maxOrderedCalls = 100_000;
const names = new Set(['ordered', 'timeoutMs']);

/** The threads of one deployment in one loop. */
export class BlockingThreads {
  readonly #maxThreads: number;
  #pool: Pool | undefined;

  constructor(maxThreads: number) {
    this.#maxThreads = maxThreads;
  }

  get pool(): Pool {
    this.#pool ??= new Pool({ worker: 'thread', size: { min: 0, max: this.#maxThreads } });
    return this.#pool;
  }

  /** Ends the threads, with what still runs there. */
  async close(): Promise<void> {
    await this.#pool?.destroy();
  }
}

/** The blocking calls of one instance, in order. */
export class BlockingQueue {
  readonly #threads: BlockingThreads;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(threads: BlockingThreads) {
    this.#threads = threads;
  }

  /** As `UnitContext.executeBlocking`. */
  async execute<R>(fn: () => R, options: BlockingOptions = {}): Promise<TaskResult<R>> {
    const given = ownOptions('the options of executeBlocking', options, names);
    const { ordered = true, timeoutMs } = given;
    const run = (): Promise<TaskResult<R>> => this.#threads.pool.with({ timeoutMs }).run(fn);
    if (!ordered) return await run();
    if (this.#waiting >= maxOrderedCalls) {
      const message = `${maxOrderedCalls} calls of executeBlocking wait already: await some of them`;
      throw new CodedError('POOL_QUEUE_FULL', message);
    }
    this.#waiting += 1;
    const done = this.#last.then(run).finally(() => {
      this.#waiting -= 1;
    });
    this.#last = done.catch(() => {});
    return await done;
  }
}
