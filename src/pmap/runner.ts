// Where the chunks of a map run: in the hosts of a pool, or right here. Both take a chunk and give a
// promise of its answer, so that the rest of a map knows no difference.

import type { ChannelKind } from '../channels/index.js';
import type { AnyFunction } from '../context/index.js';
import { hasCode } from '../errors.js';
import {
  type Chunk,
  type ChunkAnswer,
  ItemFailure,
  parentRelay,
  type Relay,
  type RelayedFunction,
  runChunk,
} from '../host/index.js';
import { messageOf } from '../internal/index.js';
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

/** The error of a chunk that nobody began: its items are to be sent again, when there is room. */
export const notBegun = Symbol('not begun');

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

/** How long the parent is not asked again after it had no idle host, in ms. */
const askAgainMs = 5;
const mostRelayed = 256;

/**
 * For a map inside a task: runs chunks in this host, and offers others to the parent as long as it has
 * idle hosts for them. What comes back untouched runs here.
 */
export class RelayRunner implements ChunkRunner {
  readonly isHere = false;
  readonly sharesMemory: boolean;
  readonly #here: InlineRunner;
  readonly #relayed: RelayedFunction;
  #isRunningHere = false;
  #relayedChunks = 0;
  /** How many chunks the parent found hosts for at a time, and one more. */
  #mostChunks = 1;
  #askAtMs = 0;

  /** Throws `TRANSFER_…` when `mapper` cannot travel. */
  constructor(relay: Relay, mapper: AnyFunction) {
    this.sharesMemory = relay.sharesMemory;
    this.#here = new InlineRunner(mapper);
    this.#relayed = relay.open(mapper);
  }

  get hosts(): number {
    return 1 + this.#relayedChunks;
  }

  get window(): number {
    const mayAsk = performance.now() >= this.#askAtMs;
    return 1 + (mayAsk ? this.#mostChunks : this.#relayedChunks);
  }

  async run(chunk: Chunk, call: ChunkCall): Promise<ChunkAnswer> {
    return this.#isRunningHere ? this.#runThere(chunk, call) : this.#runHere(chunk, call);
  }

  async #runHere(chunk: Chunk, call: ChunkCall): Promise<ChunkAnswer> {
    this.#isRunningHere = true;
    try {
      return await this.#here.run(chunk, call);
    } finally {
      this.#isRunningHere = false;
    }
  }

  async #runThere(chunk: Chunk, { options }: ChunkCall): Promise<ChunkAnswer> {
    this.#relayedChunks += 1;
    try {
      const answer = await this.#relayed.run(chunk, options.signal);
      this.#mostChunks = Math.max(this.#mostChunks, Math.min(mostRelayed, this.#relayedChunks + 1));
      return answer;
    } catch (thrown) {
      const { at, error } = thrown instanceof ItemFailure ? thrown : new ItemFailure(-1, thrown);
      const hasRun = at >= 0 || hasCode(error, 'HOST_EXITED');
      if (hasRun) throw new ChunkFailure(error, at, 'another host');
      this.#mostChunks = Math.max(1, this.#relayedChunks - 1);
      this.#askAtMs = performance.now() + askAgainMs;
      throw new ChunkFailure(notBegun, -1, undefined);
    } finally {
      this.#relayedChunks -= 1;
    }
  }

  close(): void {
    this.#relayed.close();
  }
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
  if (pool === undefined || pool.maxHosts === 0) return insideHost(mapper);
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

function insideHost(mapper: AnyFunction): ChosenRunner {
  const relay = parentRelay();
  if (relay === undefined) return inline(mapper, 'its pool came with a task, and has no hosts');
  const why = 'a host is one core: others take part while they have nothing else to do';
  try {
    return { runner: new RelayRunner(relay, mapper), channel: 'inline', why };
  } catch (error) {
    return inline(mapper, `the mapper cannot travel: ${messageOf(error)}`);
  }
}

function inline(mapper: AnyFunction, why: string): ChosenRunner {
  return { runner: new InlineRunner(mapper), channel: 'inline', why };
}
