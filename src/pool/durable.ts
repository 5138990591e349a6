// Calls of a pool that are durable: kept in the cluster until some node has run them. None of the pool's
// workers is on their way, so what the pool wants of its workers is refused, and its counts leave them out.

import { setMaxListeners } from 'node:events';
import type { AnyFunction } from '../context/index.js';
import type { CodedError } from '../errors.js';
import { invalid } from '../internal/index.js';
import { isByPlace } from './by-place.js';
import type { FilledCallOptions, FilledPoolOptions } from './options.js';

export class DurableCalls {
  readonly #options: FilledPoolOptions;
  readonly #ending = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: FilledPoolOptions) {
    setMaxListeners(0, this.#ending.signal); // one for each call
    this.#options = options;
  }

  /** Rejects as `fn` does, with `OPTION_INVALID` without a cluster, and with `CLUSTER_…`. */
  async run(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<unknown> {
    const { durable, timeoutMs, retry } = options;
    const { remote } = this.#options;
    if (remote === undefined || durable === undefined) {
      throw invalid('durable', true, 'used with a pool that has a cluster: new Pool({ cluster })');
    }
    checkWorkers(this.#options);
    const ending = this.#ending.signal;
    const signal =
      options.signal === undefined ? ending : AbortSignal.any([options.signal, ending]);
    const running = remote.runDurably(fn, args, { id: durable.id, timeoutMs, retry, signal });
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

/** A node starts its workers for all who ask it, so none of them can be made as one pool wants it. */
function checkWorkers({ setup, env, execArgv, maxHeapMb, maxRssBytes }: FilledPoolOptions): void {
  const wanted = {
    setup: setup !== undefined,
    env: isByPlace(env) || Object.keys(env).length > 0,
    execArgv: isByPlace(execArgv) || execArgv.length > 0,
    maxHeapMb: maxHeapMb > 0,
    maxRssBytes: maxRssBytes > 0,
  };
  for (const [name, isWanted] of Object.entries(wanted)) {
    if (isWanted) throw invalid('durable', true, `used with a pool that has no ${name}`);
  }
}
