// Durable calls of a pool, kept in the cluster until some node has run them. No worker of the pool takes
// part, so its worker options are refused, and its counts leave these calls out.

import { setMaxListeners } from 'node:events';
import type { AnyFunction } from '../../context/index.js';
import type { CodedError } from '../../errors.js';
import { invalid } from '../../lib/index.js';
import type { FilledCallOptions, FilledPoolOptions } from '../options.js';
import { isByPlace } from '../workers/options-by-place.js';

export class DurableCalls {
  readonly #options: FilledPoolOptions;
  readonly #ending = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: FilledPoolOptions) {
    setMaxListeners(0, this.#ending.signal); // one listener for each call
    this.#options = options;
  }

  /** Rejects as `fn` does, with `OPTION_INVALID` without a cluster, and with `CLUSTER_…`. */
  async run(fn: AnyFunction, args: unknown[], options: FilledCallOptions): Promise<unknown> {
    const { durable, timeoutMs, retry } = options;
    const { cluster } = this.#options;
    if (cluster === undefined || durable === undefined) {
      throw invalid('durable', true, 'used with a pool that has a cluster: new Pool({ cluster })');
    }
    checkWorkers(this.#options);
    const ending = this.#ending.signal;
    const signal =
      options.signal === undefined ? ending : AbortSignal.any([options.signal, ending]);
    const running = cluster.runDurably(fn, args, { id: durable.id, timeoutMs, retry, signal });
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

  /** Rejects all running calls with `error`. */
  end(error: CodedError): void {
    this.#ending.abort(error);
  }
}

/**
 * Refuses worker options: a node starts its workers for all callers, so they cannot follow one pool's
 * options.
 */
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
