// Runner of a map inside a task: runs chunks in its own worker, and in others while those are idle. Offers
// to others go through the parent (worker/inside/relay.ts).

import type { AnyFunction } from '../context/index.js';
import { hasCode } from '../errors.js';
import { nowMs } from '../lib/index.js';
import { type ChunkCall, ChunkFailure } from '../pool/index.js';
import { type Chunk, ItemFailure, type Relay, type RelayedFunction } from '../worker/index.js';
import { type ChunkRunner, InlineRunner, type MappedChunk, notBegun } from './runner.js';

/** Pause before the next offer after the parent had no idle worker, in ms. */
const retryAfterMs = 5;
/** Run time below which a map offers nothing, in ms. */
const minOfferMs = 1;
const maxRelayed = 256;

/**
 * For a map inside a task: runs chunks in this worker, and offers others to the parent as long as it has
 * idle workers for them. Chunks that come back untouched run here.
 */
export class RelayRunner implements ChunkRunner {
  readonly channel = 'inline';
  readonly why = 'a worker is one core: others take part while they have nothing else to do';
  readonly knownCost = undefined;
  readonly isHere = false;
  readonly sharesMemory: boolean;
  readonly #relay: Relay;
  readonly #mapper: AnyFunction;
  readonly #here: InlineRunner;
  /** Created when the first chunk is offered; `null`: the mapper cannot travel. */
  #relayed: RelayedFunction | null | undefined;
  /** False once a worker has ended under a chunk that it took. */
  #mayOffer = true;
  #ranHereMs = 0;
  #isRunningHere = false;
  #relayedChunks = 0;
  /** Number of chunks for which the parent found workers at a time, plus one. */
  #maxChunks = 1;
  #requestAtMs = 0;

  constructor(relay: Relay, mapper: AnyFunction) {
    this.sharesMemory = relay.sharesMemory;
    this.#relay = relay;
    this.#mapper = mapper;
    this.#here = new InlineRunner(mapper, this.why);
  }

  get workers(): number {
    return 1 + this.#relayedChunks;
  }

  get window(): number {
    if (!this.#mayOffer || this.#relayed === null || this.#ranHereMs < minOfferMs) return 1;
    const mayRequest = nowMs() >= this.#requestAtMs;
    return 1 + (mayRequest ? this.#maxChunks : this.#relayedChunks);
  }

  async run(chunk: Chunk, call: ChunkCall): Promise<MappedChunk> {
    return this.#isRunningHere ? this.#runThere(chunk, call) : this.#runHere(chunk, call);
  }

  async #runHere(chunk: Chunk, call: ChunkCall): Promise<MappedChunk> {
    this.#isRunningHere = true;
    try {
      const answer = await this.#here.run(chunk, call);
      this.#ranHereMs += answer.ranMs;
      return answer;
    } finally {
      this.#isRunningHere = false;
    }
  }

  async #runThere(chunk: Chunk, { name, options }: ChunkCall): Promise<MappedChunk> {
    const relayed = this.#open();
    if (relayed === null) throw new ChunkFailure(notBegun, -1, undefined);
    this.#relayedChunks += 1;
    try {
      const startedMs = nowMs();
      const answered = relayed.run(chunk, name, options.signal);
      const sentMs = nowMs() - startedMs;
      const { done, value, ranMs, failed } = await answered;
      this.#maxChunks = Math.max(this.#maxChunks, Math.min(maxRelayed, this.#relayedChunks + 1));
      return { done, value, ranMs, failed, sentMs, workerLabel: 'another worker' };
    } catch (thrown) {
      const { at, error } = thrown instanceof ItemFailure ? thrown : new ItemFailure(-1, thrown);
      const hasEnded = at < 0 && hasCode(error, 'WORKER_EXITED');
      if (hasEnded && options.retry > 0)
        this.#mayOffer = false; // the failed chunk runs again here
      else if (hasEnded || at >= 0) throw new ChunkFailure(error, at, 'another worker');
      this.#maxChunks = Math.max(1, this.#relayedChunks - 1);
      this.#requestAtMs = nowMs() + retryAfterMs;
      throw new ChunkFailure(notBegun, -1, undefined);
    } finally {
      this.#relayedChunks -= 1;
    }
  }

  isAlone(): boolean {
    return false;
  }

  learn(): void {}

  #open(): RelayedFunction | null {
    if (this.#relayed !== undefined) return this.#relayed;
    try {
      this.#relayed = this.#relay.open(this.#mapper);
    } catch {
      this.#relayed = null; // it cannot travel, so it runs here
    }
    return this.#relayed;
  }

  close(): void {
    this.#relayed?.close();
    this.#relayed = null;
  }
}
