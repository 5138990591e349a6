// Where the chunks of a map run: in the hosts of a pool, or right here. Both take a chunk and give a
// promise of its answer, so that the rest of a map knows no difference.

import type { ChannelKind } from '../channels/index.js';
import type { AnyFunction } from '../context/index.js';
import { type Chunk, type ChunkAnswer, ItemFailure, runChunk } from '../host/index.js';
import {
  type ChunkCall,
  ChunkFailure,
  type PinnedFunction,
  type Pool,
  poolFor,
} from '../pool/index.js';
import type { FilledMapOptions } from './options.js';

export interface ChunkRunner {
  /** Chunks that run at a time. */
  readonly hosts: number;
  /** Chunks that may be in flight: one runs, one is there when it ends. */
  readonly window: number;
  /** Chunks are not copied: their items and results are those of the caller. */
  readonly isHere: boolean;
  /** Hosts see memory of `shared()` where it is. */
  readonly sharesMemory: boolean;
  /** Rejects with a `ChunkFailure`. */
  run(chunk: Chunk, call: ChunkCall): Promise<ChunkAnswer>;
  /** No chunk may follow. Twice is fine. */
  close(): void;
}

const chunksPerHost = 2;

export class PoolRunner implements ChunkRunner {
  readonly hosts: number;
  readonly window: number;
  readonly isHere = false;
  readonly sharesMemory: boolean;
  readonly #pinned: PinnedFunction;

  /** Throws `TRANSFER_…` when `mapper` cannot travel, and `POOL_CLOSED`. */
  constructor(pool: Pool, mapper: AnyFunction) {
    this.hosts = pool.maxHosts;
    this.window = chunksPerHost * pool.maxHosts;
    this.sharesMemory = pool.channelKind === 'shm';
    this.#pinned = pool.pin(mapper);
  }

  run(chunk: Chunk, call: ChunkCall): Promise<ChunkAnswer> {
    return this.#pinned.run(chunk, call);
  }

  close(): void {
    this.#pinned.unpin();
  }
}

/** Runs chunks in this thread, and lets its event loop turn between them. */
export class InlineRunner implements ChunkRunner {
  readonly hosts = 1;
  readonly window = 1;
  readonly isHere = true;
  readonly sharesMemory = true;
  readonly #mapper: AnyFunction;

  constructor(mapper: AnyFunction) {
    this.#mapper = mapper;
  }

  async run(chunk: Chunk, { options }: ChunkCall): Promise<ChunkAnswer> {
    await new Promise((resolve) => setImmediate(resolve));
    try {
      options.signal?.throwIfAborted();
      const mapper = (...args: unknown[]): unknown => Reflect.apply(this.#mapper, undefined, args);
      return await runChunk(mapper, chunk, undefined);
    } catch (thrown) {
      if (thrown instanceof ItemFailure) throw new ChunkFailure(thrown.error, thrown.at, undefined);
      throw new ChunkFailure(thrown, -1, undefined);
    }
  }

  close(): void {}
}

/** Where a map runs, and why there. */
export interface ChosenRunner {
  readonly runner: ChunkRunner;
  readonly channel: ChannelKind | 'inline';
  readonly why: string;
}

/** Throws `TRANSFER_…` when `mapper` cannot travel, `CHANNEL_UNAVAILABLE`, `POOL_CLOSED`. */
export function chooseRunner(mapper: AnyFunction, options: FilledMapOptions): ChosenRunner {
  const { channel } = options;
  if (channel === 'inline') return inline(mapper, 'asked for');
  const pool = options.pool ?? poolFor(channel);
  if (pool === undefined || pool.maxHosts === 0) {
    return inline(mapper, 'inside a host, which is one core, and that is at work on the task');
  }
  const why =
    options.pool !== undefined
      ? 'it is that of the pool'
      : channel !== 'auto'
        ? 'asked for'
        : pool.channelKind === 'shm'
          ? 'shared memory works here, and is faster than the others'
          : 'there is no shared memory here: manycore doctor says why';
  return { runner: new PoolRunner(pool, mapper), channel: pool.channelKind, why };
}

function inline(mapper: AnyFunction, why: string): ChosenRunner {
  return { runner: new InlineRunner(mapper), channel: 'inline', why };
}
