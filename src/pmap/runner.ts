// Where the chunks of a map run: in the workers of a pool, or right here. Each takes a chunk and gives a
// promise of its answer, so that the rest of a map knows no difference.
// Not here: which one a map gets (choose.ts), maps inside tasks (relay.ts).

import type { ChannelKind } from '../channels/index.js';
import type { AnyFunction } from '../context/index.js';
import { nowMs, setImmediate } from '../internal/index.js';
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
  /** How long this thread took to send it, in ms; `undefined`: it was not sent. */
  readonly sentMs: number | undefined;
  /** Where it ran, for messages; `undefined`: here. */
  readonly workerLabel: string | undefined;
}

export interface ChunkRunner {
  /** For `stats()`: where, and why there. */
  readonly channel: ChannelKind | 'inline';
  readonly why: string;
  /** Chunks that run at a time. */
  readonly workers: number;
  /** Chunks that may be in flight: one runs, one is there when it ends. */
  readonly window: number;
  /** Chunks are not copied: their items and results are those of the caller. */
  readonly isHere: boolean;
  /** Memory of `shared()` is seen where it is. */
  readonly sharesMemory: boolean;
  /** What items of this mapper cost before. */
  readonly knownCost: ItemCost | undefined;
  /** Rejects with a `ChunkFailure`. */
  run(chunk: Chunk, call: ChunkCall): Promise<MappedChunk>;
  /** What was learnt from the last chunk. */
  learn(cost: ItemCost): void;
  /** No chunk may follow. Twice is fine. */
  close(): void;
}

/** The error of a chunk that nobody began: its items are to be sent again, when there is room. */
export const notBegun = Symbol('not begun');

const chunksPerWorker = 2;
/** What the items of a mapper cost, by the mapper's code: the next map begins with it. */
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
    this.sharesMemory = pool.channelKind === 'shm';
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

  learn(): void {}

  close(): void {}
}

function microseconds(ms: number): string {
  return `${(ms * 1000).toPrecision(2)} µs`;
}
