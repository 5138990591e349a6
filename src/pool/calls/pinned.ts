// A pinned function runs often with the captures of one moment: sent once to each worker of a pool,
// captures included, and then named by its number. Parallel maps are made of it: each chunk of items is one
// task that calls it.
// Not here: which items go when (pmap/), how a worker runs them (worker/inside/chunk.ts).

import type { Chunk, ChunkAnswer } from '../../worker/index.js';
import type { FilledCallOptions } from '../options.js';

/** Reason and place of the failure of a chunk. */
export class ChunkFailure {
  readonly error: unknown;
  /** Index of the failed item in the chunk; -1: no single one. */
  readonly at: number;
  /** Label of the worker that `error` came from. */
  readonly workerLabel: string | undefined;

  constructor(error: unknown, at: number, workerLabel: string | undefined) {
    this.error = error;
    this.at = at;
    this.workerLabel = workerLabel;
  }
}

/** Result of a chunk. */
export interface ChunkResult extends ChunkAnswer {
  readonly workerLabel: string | undefined;
}

/** Settings of a chunk beside its items. */
export interface ChunkCall {
  readonly options: FilledCallOptions;
  /** Name in messages: "items 12 to 19 of resize". */
  readonly name: string;
  /** Expected run time in ms; `undefined`: unknown. */
  readonly expectedMs: number | undefined;
}

export interface PinnedFunction {
  /** Equal for equal code with equal imports and functions, from its third snapshot on. */
  readonly codeId: number;
  /** True: the pool was idle at the pin, and has had no call and no other map since. */
  isAlone(): boolean;
  /** Rejects with a `ChunkFailure`, whatever the reason. */
  run(chunk: Chunk, call: ChunkCall): Promise<ChunkResult>;
  /** Lets the workers drop it; no `run` may follow. Twice is fine. */
  unpin(): void;
}
