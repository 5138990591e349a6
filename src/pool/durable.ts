// Calls of a pool that are durable: kept in the cluster until some worker has run them. None of the pool's
// hosts is on their way, so what the pool says of hosts goes for none of them, and its counts leave them out.

import { setMaxListeners } from 'node:events';
import type { AnyFunction } from '../context/index.js';
import type { CodedError } from '../errors.js';
import { invalid } from '../internal/index.js';
import type { FilledCallOptions, FilledPoolOptions } from './options.js';

export class DurableCalls {
  readonly #remote: FilledPoolOptions['remote'];
  readonly #ending = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor({ remote }: FilledPoolOptions) {
    setMaxListeners(0, this.#ending.signal); // one for each call
    this.#remote = remote;
  }

  /** Rejects as `fn` does, with `OPTION_INVALID` without a cluster, and with `CLUSTER_…`. */
  async run(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<unknown> {
    const { durable, timeoutMs, retry } = options;
    if (this.#remote === undefined || durable === undefined) {
      throw invalid('durable', true, 'used with a pool that has a cluster: new Pool({ cluster })');
    }
    const ending = this.#ending.signal;
    const signal =
      options.signal === undefined ? ending : AbortSignal.any([options.signal, ending]);
    const running = this.#remote.runDurably(fn, args, { id: durable.id, timeoutMs, retry, signal });
    this.#running.add(running);
    try {
      return await running;
    } catch (error) {
      throw ending.aborted ? ending.reason : error;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Resolves when none runs. */
  async over(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** Nobody waits for them any more. */
  end(error: CodedError): void {
    this.#ending.abort(error);
  }
}
