// Runners of chunks: in the workers of a pool, or in this thread. Each takes a chunk and returns a promise
// of its answer, so the rest of a map is the same for all.
// Not here: choosing one (choose.ts), maps inside tasks (relay.ts).

import type { ChannelKind } from '../channels/index.js';
import type { AnyFunction } from '../context/index.js';
import { nowMs, setImmediate } from '../lib/index.js';
import { type ChunkCall, ChunkFailure, type PinnedFunction, type Pool } from '../pool/index.js';
import {
  type Chunk,
  type ChunkAnswer,
  InlineReports,
  ItemFailure,
  type Mapper,
  runChunk,
} from '../worker/index.js';
import { type ItemCost, isCheaperHere } from './chunk.js';

export interface MappedChunk extends ChunkAnswer {
  /** Time of this thread to send it, in ms; `undefined`: it was not sent. */
  readonly sentMs: number | undefined;
  /** Worker that ran it, for messages; `undefined`: this thread. */
  readonly workerLabel: string | undefined;
}

export interface ChunkRunner {
  /** Channel and its reason, for `stats()`. */
  readonly channel: ChannelKind | 'inline';
  readonly why: string;
  /** Chunks that run at a time. */
  readonly workers: number;
  /** Maximum number of chunks in flight: one runs, one is there when it ends. */
  readonly window: number;
  /** True: chunks are not copied; their items and results are those of the caller. */
  readonly isHere: boolean;
  /** True: memory of `shared()` is seen in place. */
  readonly sharesMemory: boolean;
  /** Cost of the items of this mapper in earlier maps. */
  readonly knownCost: ItemCost | undefined;
  /** True: the workers were idle when the map began, and nothing else has used them since. */
  isAlone(): boolean;
  /** Rejects with a `ChunkFailure`. */
  run(chunk: Chunk, call: ChunkCall): Promise<MappedChunk>;
  /** Stores the cost after the last chunk. */
  learn(cost: ItemCost): void;
  /** Ends the runner; no chunk may follow. Twice is fine. */
  close(): void;
}

/** Error of a chunk that was not begun: its items are to be sent again, when there is room. */
export const notBegun = Symbol('not begun');

const chunksPerWorker = 2;
/** Cost of the items of a mapper, by the mapper's code: the next map begins with it. */
const costs = new Map<number, ItemCost>();

export class PoolRunner implements ChunkRunner {
  readonly channel: ChannelKind;
  readonly workers: number;
  readonly window: number;
  readonly isHere = false;
  readonly sharesMemory: boolean;
  readonly #why: string;
  readonly #pinned: PinnedFunction;

  /** Throws `TRANSFER_…` when `mapper` cannot travel, and `POOL_CLOSED`. */
  constructor(pool: Pool, mapper: AnyFunction, why: string) {
    this.channel = pool.channelKind;
    this.#why = why;
    this.workers = pool.maxWorkers;
    this.window = chunksPerWorker * pool.maxWorkers;
    this.sharesMemory = pool.sharesMemory;
    this.#pinned = pool.pin(mapper);
  }

  get knownCost(): ItemCost | undefined {
    return costs.get(this.#pinned.codeId);
  }

  get why(): string {
    const cost = this.knownCost;
    if (cost?.runMs === undefined || !isCheaperHere(cost)) return this.#why;
    const costs = `${microseconds(cost.runMs)} to map and ${microseconds(cost.sendMs)} to send`;
    return `${this.#why}; but an item takes ${costs}: channel "inline" may be faster`;
  }

  async run(chunk: Chunk, call: ChunkCall): Promise<MappedChunk> {
    const startedMs = nowMs();
    const answered = this.#pinned.run(chunk, call);
    const sentMs = nowMs() - startedMs;
    return { ...(await answered), sentMs };
  }

  isAlone(): boolean {
    return this.#pinned.isAlone();
  }

  learn(cost: ItemCost): void {
    costs.set(this.#pinned.codeId, cost);
  }

  close(): void {
    this.#pinned.unpin();
  }
}

/** Runs chunks in this thread, and lets its event loop turn between them. */
export class InlineRunner implements ChunkRunner {
  readonly channel = 'inline';
  readonly why: string;
  readonly workers = 1;
  readonly window = 1;
  readonly isHere = true;
  readonly sharesMemory = true;
  readonly knownCost = undefined;
  readonly #mapper: Mapper;

  constructor(mapper: AnyFunction, why: string) {
    this.#mapper = (...args) => Reflect.apply(mapper, undefined, args);
    this.why = why;
  }

  async run(chunk: Chunk, { options }: ChunkCall): Promise<MappedChunk> {
    await new Promise((resolve) => setImmediate(resolve));
    try {
      options.signal?.throwIfAborted();
      const isStopped = (): boolean => options.signal?.aborted === true;
      const answer = await new InlineReports(undefined).run(() =>
        runChunk(this.#mapper, chunk, isStopped),
      );
      return { ...answer, sentMs: undefined, workerLabel: undefined };
    } catch (thrown) {
      if (thrown instanceof ItemFailure) throw new ChunkFailure(thrown.error, thrown.at, undefined);
      throw new ChunkFailure(thrown, -1, undefined);
    }
  }

  /** The event loop turns between two chunks. */
  isAlone(): boolean {
    return false;
  }

  learn(): void {}

  close(): void {}
}

function microseconds(ms: number): string {
  return `${(ms * 1000).toPrecision(2)} µs`;
}
