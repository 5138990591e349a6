// A function that runs often with what it captured at one moment: sent once to each worker of a pool,
// captures included, and then named by its number. What parallel maps are made of: each chunk of
// items is one task that calls it. Not here: which items go when (pmap/), how a worker runs them
// (worker/chunk.ts).

import type { Chunk, ChunkAnswer } from '../worker/index.js';
import type { FilledCallOptions } from './options.js';

/** Why a chunk was not answered, and where. */
export class ChunkFailure {
  readonly error: unknown;
  /** The item that failed, counted from the beginning of the chunk; -1: no single one. */
  readonly at: number;
  /** The worker that `error` came from. */
  readonly workerLabel: string | undefined;

  constructor(error: unknown, at: number, workerLabel: string | undefined) {
    this.error = error;
    this.at = at;
    this.workerLabel = workerLabel;
  }
}

/** What a worker made of a chunk. */
export interface ChunkResult extends ChunkAnswer {
  readonly workerLabel: string | undefined;
}

/** What one chunk needs beside its items. */
export interface ChunkCall {
  readonly options: FilledCallOptions;
  /** How messages name it: "items 12 to 19 of resize". */
  readonly name: string;
  /** How long it should run, in ms; `undefined`: nobody knows. */
  readonly expectedMs: number | undefined;
}

export interface PinnedFunction {
  /** The same for the same code, whatever it captured. */
  readonly codeId: number;
  /** Rejects with a `ChunkFailure`, whatever the reason. */
  run(chunk: Chunk, call: ChunkCall): Promise<ChunkResult>;
  /** Lets the workers drop it; no `run` may follow. Twice is fine. */
  unpin(): void;
}
