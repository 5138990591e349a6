// Chooses the runner of a map: the one that was named, the given pool, or that of `run`. The caller's own
// process is never chosen automatically, however short the items are: a mapper that loops for ever or ends
// its process must not take the program along.

import type { AnyFunction } from '../context/index.js';
import { inlineError, type Pool, poolFor } from '../pool/index.js';
import { parentRelay } from '../worker/index.js';
import type { FilledMapOptions } from './options.js';
import { RelayRunner } from './relay.js';
import { type ChunkRunner, InlineRunner, PoolRunner } from './runner.js';

/**
 * Returns the runner. Throws `TRANSFER_…` when `mapper` cannot travel, `CHANNEL_UNAVAILABLE`,
 * `POOL_CLOSED`.
 */
export function chooseRunner(mapper: AnyFunction, options: FilledMapOptions): ChunkRunner {
  const { channel } = options;
  if (channel === 'inline' && options.pool?.isOfPartitions === true) throw inlineError();
  if (channel === 'inline') return new InlineRunner(mapper, 'set by the option channel');
  const pool = options.pool ?? poolFor(channel);
  if (pool === undefined || pool.maxWorkers === 0) return insideWorker(mapper);
  return new PoolRunner(pool, mapper, whyOf(pool, options));
}

function whyOf({ channelKind }: Pool, { pool, channel }: FilledMapOptions): string {
  if (pool !== undefined) return 'it is the channel of the pool';
  if (channel !== 'auto') return 'set by the option channel';
  return channelKind === 'shm'
    ? 'shared memory works here, and is the fastest channel between processes'
    : 'there is no shared memory here: run manycore doctor for the reason';
}

function insideWorker(mapper: AnyFunction): ChunkRunner {
  const relay = parentRelay();
  if (relay === undefined) return new InlineRunner(mapper, 'its pool came with a task');
  return new RelayRunner(relay, mapper);
}
