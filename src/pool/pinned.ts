// A function that runs often with what it captured at one moment: sent once to each host of a pool,
// captures included, and then named by its number. What parallel maps are made of: each chunk of
// items is one task that calls it. Not here: which items go when (pmap/), how a host runs them
// (host/chunk.ts).

import type { Chunk, ChunkAnswer } from '../host/index.js';
import type { FilledCallOptions } from './options.js';

/** Why a chunk was not answered, and where. */
export class ChunkFailure {
  readonly error: unknown;
  /** The item that failed, counted from the beginning of the chunk; -1: no single one. */
  readonly at: number;
  /** The host that `error` came from. */
  readonly hostLabel: string | undefined;

  constructor(error: unknown, at: number, hostLabel: string | undefined) {
    this.error = error;
    this.at = at;
    this.hostLabel = hostLabel;
  }
}

/** What a host made of a chunk. */
export interface ChunkResult extends ChunkAnswer {
  readonly hostLabel: string | undefined;
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
  /** Lets the hosts drop it; no `run` may follow. Twice is fine. */
  unpin(): void;
}
