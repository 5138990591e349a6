// One map from its beginning to its end: takes pieces from its source while workers have room for them,
// sends each as a chunk, and passes the results on. Independent of the reader of the results (collect.ts,
// stream.ts) and of the place where chunks run (runner.ts).
//
//   source → piece → chunk in a worker → results accepted
//              ↑__________|  the part that the worker did not reach
//
// The first failure ends it: chunks in flight are aborted, the source is closed, and the map is rejected. A
// stream in order first delivers all results from before the failed item, so their chunks go on. With
// `settled` a failure is the outcome of its items, and the map goes on.

import type { CallSite } from '../context/index.js';
import { hasCode } from '../errors.js';
import { abortError, nowMs, unwatchAbort, watchAbort } from '../lib/index.js';
import { ChunkFailure, callDefaults } from '../pool/index.js';
import type { Cells, Chunk } from '../worker/index.js';
import {
  chunkBudgetMs,
  chunkItems,
  chunkTargetMs,
  type ItemCost,
  learnCost,
  unknownCost,
} from './chunk.js';
import { locate } from './failure.js';
import type { FilledMapOptions } from './options.js';
import { type ItemKind, nameOf, placeOf } from './place.js';
import { type ChunkRunner, type MappedChunk, notBegun } from './runner.js';
import { itemsOf, type Piece, partOf, type Source } from './source.js';
import type { MapStats } from './stats.js';

export interface MapParts {
  readonly source: Source;
  readonly runner: ChunkRunner;
  readonly output: Chunk['output'];
  /** The `into` of chunks; unused for outputs other than `fill`. */
  readonly into: Cells | string;
  /** True: the items are in memory that workers see; chunks name it and their range of it. */
  readonly isInPlace: boolean;
  readonly kind: ItemKind;
  readonly options: FilledMapOptions;
  /** Call site of the map. */
  readonly site: CallSite;
  /** Takes the results of the first `count` items of `piece`. */
  readonly accept: (piece: Piece, count: number, value: unknown) => void;
  /** Number of items whose results were taken; `undefined`: all that were accepted. */
  readonly deliveredItems: (() => number) | undefined;
  /** True: another owner closes the runner. */
  readonly keepsRunner: boolean;
}

/** Maximum stated run time of a chunk, in ms: its pool sends the next one ahead (pool/schedule.ts). */
const maxExpectedMs = 2.4;

type MapState = 'running' | 'done' | 'failed';

/** Minimum time between two calls of `onProgress`, in ms. */
const progressEveryMs = 50;
/** Pieces in flight or read ahead, in chunks for each worker, when `lead` is `auto`. */
const leadChunks = 4;

export class MapRun {
  /** Settles when nothing more comes; rejects with the error that ended the map. */
  readonly finished: Promise<void>;
  readonly #parts: MapParts;
  readonly #controller = new AbortController();
  readonly #returned: Piece[] = [];
  readonly #startedMs = nowMs();
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #state: MapState = 'running';
  #cost: ItemCost;
  readonly #inFlight = new Set<Piece>();
  /** Limit found when the pool's queue was full. */
  #maxInFlight = Infinity;
  #takenItems = 0;
  #doneItems = 0;
  #chunks = 0;
  #ranMs = 0;
  #endedMs = 0;
  #reportedMs = 0;
  #isPumping = false;
  #sourceFailure: { readonly error: unknown } | undefined;
  /** First failed item of a stream in order, while those before it are under way. */
  #failure: { readonly position: number; readonly error: unknown } | undefined;

  constructor(parts: MapParts) {
    this.#parts = parts;
    this.#cost = parts.runner.knownCost ?? unknownCost;
    this.finished = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.finished.catch(() => {}); // handled by those who await it; a stream may have been left
    const { signal } = parts.options;
    if (signal !== undefined) watchAbort(signal, this.#onAbort);
  }

  readonly #onAbort = (): void => {
    const { signal } = this.#parts.options;
    if (signal !== undefined) this.fail(abortError(signal));
  };

  /** Sends as many pieces as there is room for. */
  readonly pump = (): void => {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      this.#sendPieces();
    } catch (error) {
      this.#parts.source.close();
      this.failAfterItems(error);
    } finally {
      this.#isPumping = false;
    }
  };

  #sendPieces(): void {
    while (this.#state === 'running' && this.#inFlight.size < this.#window) {
      const piece = this.#nextPiece();
      if (piece === undefined) break;
      void this.#run(piece);
    }
    this.#endIfOver();
  }

  #endIfOver(): void {
    if (this.#state !== 'running') return;
    if (this.#failure !== undefined) {
      const { position, error } = this.#failure;
      const isBefore = (piece: Piece): boolean => piece.position < position;
      if (![...this.#inFlight, ...this.#returned].some(isBefore)) this.#end('failed', error);
      return;
    }
    if (this.#inFlight.size + this.#returned.length > 0 || !this.#parts.source.isDone) return;
    if (this.#sourceFailure === undefined) this.#end('done');
    else this.#end('failed', this.#sourceFailure.error);
  }

  /** Ends the map because the source threw. A stream first delivers the results from before that. */
  failAfterItems(error: unknown): void {
    if (!this.#isStream) this.fail(error);
    this.#sourceFailure ??= { error };
    this.#endIfOver();
  }

  get #isStream(): boolean {
    return this.#parts.deliveredItems !== undefined;
  }

  /** Ends the map for a failed item: a stream in order after the items before it, others at once. */
  #failAt(position: number, error: unknown): void {
    if (!this.#isStream || !this.#parts.options.ordered) {
      this.fail(error);
      return;
    }
    if (this.#failure !== undefined && this.#failure.position <= position) return;
    this.#failure = { position, error };
    this.#parts.source.close();
    this.#endIfOver();
  }

  get #window(): number {
    return Math.min(this.#parts.runner.window, this.#maxInFlight);
  }

  #nextPiece(): Piece | undefined {
    const { source } = this.#parts;
    const maxItems = this.#nextItems();
    const returned = this.#nextReturned();
    if (returned !== undefined) {
      if (returned.count <= maxItems) return returned;
      this.#returned.unshift(partOf(returned, maxItems, returned.count));
      return partOf(returned, 0, maxItems);
    }
    if (this.#failure !== undefined) return undefined;
    const room = this.#leadItems - this.#undelivered;
    if (room <= 0) return undefined;
    const piece = source.take(Math.min(maxItems, room));
    this.#takenItems += piece?.count ?? 0;
    return piece;
  }

  /** Excludes pieces after the failed item. */
  #nextReturned(): Piece | undefined {
    const { position: end = Infinity } = this.#failure ?? {};
    let piece = this.#returned.shift();
    while (piece !== undefined && piece.position > end) piece = this.#returned.shift();
    return piece;
  }

  #nextItems(): number {
    const { source, runner, options } = this.#parts;
    const { chunk: fixedItems, lead: leadItems = Infinity } = options;
    const workers = runner.workers;
    const returned = this.#returned.reduce((sum, { count }) => sum + count, 0);
    // When the input has ended, only returned pieces are left, even for an input without a known length.
    const remainingItems = source.isDone ? 0 : source.remainingItems;
    const wanted =
      fixedItems ??
      chunkItems(this.#cost, {
        workers,
        targetMs: this.#targetMs,
        remainingItems: remainingItems === undefined ? undefined : remainingItems + returned,
      });
    return Math.max(1, Math.min(wanted, Math.floor(leadItems / this.#window)));
  }

  get #targetMs(): number {
    const { runner, source } = this.#parts;
    const restMs = (source.remainingItems ?? 0) * (this.#cost.runMs ?? 0);
    return chunkTargetMs(runner.workers, this.#isStream || !runner.isAlone() ? 0 : restMs);
  }

  /** Maximum number of items that may be taken and not delivered. */
  get #leadItems(): number {
    const { options, runner } = this.#parts;
    if (options.lead !== undefined) return options.lead;
    return leadChunks * runner.workers * Math.max(this.#nextItems(), leadChunks);
  }

  get #undelivered(): number {
    return this.#takenItems - (this.#parts.deliveredItems?.() ?? this.#doneItems);
  }

  /** For a source that reads by itself: true when one more item may wait there. */
  mayRead(buffered: number): boolean {
    const isRead = this.#state === 'running' && this.#failure === undefined;
    return isRead && this.#undelivered + buffered < this.#leadItems;
  }

  async #run(piece: Piece): Promise<void> {
    const { runner, options } = this.#parts;
    const { runMs } = this.#cost;
    this.#inFlight.add(piece);
    try {
      const answer = await runner.run(this.#chunkOf(piece), {
        name: nameOf(this.#parts.kind, piece),
        expectedMs: runMs && Math.min(runMs * piece.count, maxExpectedMs),
        options: {
          ...callDefaults,
          signal: this.#controller.signal,
          onReport: undefined,
          priority: options.priority,
          retry: options.retry,
        },
      });
      this.#inFlight.delete(piece);
      this.#chunks += 1;
      this.#ranMs += answer.ranMs;
      this.#cost = learnCost(this.#cost, Math.max(1, answer.done), answer.ranMs, answer.sentMs);
      runner.learn(this.#cost);
      if (this.#state === 'running') this.#accept(piece, answer);
    } catch (thrown) {
      this.#inFlight.delete(piece);
      const failure =
        thrown instanceof ChunkFailure ? thrown : new ChunkFailure(thrown, -1, undefined);
      if (this.#state === 'running') this.#failed(piece, failure);
    }
    this.pump();
  }

  #accept(piece: Piece, { done, value, workerLabel, failed }: MappedChunk): void {
    if (this.#parts.output === 'settled') this.#locateReasons(piece, value, workerLabel);
    if (failed !== undefined) {
      const failure = new ChunkFailure(failed.error, done, workerLabel);
      const { kind, site } = this.#parts;
      const error = locate(failure, site, placeOf(kind, piece, done));
      this.#acceptAll(piece, done, value);
      this.#failAt(piece.position + done, error);
      return;
    }
    if (done < piece.count) this.#returned.unshift(partOf(piece, done, piece.count));
    this.#acceptAll(piece, done, value);
  }

  #acceptAll(piece: Piece, count: number, value: unknown): void {
    try {
      this.#parts.accept(piece, count, value);
      this.#doneItems += count;
      this.#reportProgress(false);
    } catch (error) {
      this.fail(error); // `onProgress` threw, or a result does not fit its array
    }
  }

  #locateReasons(piece: Piece, outcomes: unknown, workerLabel: string | undefined): void {
    if (!Array.isArray(outcomes)) return;
    const { kind, site } = this.#parts;
    for (const [at, outcome] of outcomes.entries()) {
      if (outcome?.status !== 'rejected') continue;
      const failure = new ChunkFailure(outcome.reason, at, workerLabel);
      outcome.reason = locate(failure, site, placeOf(kind, piece, at));
    }
  }

  #failed(piece: Piece, failure: ChunkFailure): void {
    if (this.#mayTryLater(failure)) {
      this.#returned.unshift(piece);
      return;
    }
    const { options, site, kind } = this.#parts;
    const isOfItems = failure.at >= 0 || failure.workerLabel !== undefined;
    const error = locate(failure, site, placeOf(kind, piece, failure.at));
    const at = Math.max(0, failure.at);
    if (!options.settled || !isOfItems) {
      // An item that cannot travel: nothing of its chunk was sent.
      if (at > 0) this.#returned.unshift(partOf(piece, 0, at));
      this.#failAt(piece.position + at, error);
      return;
    }
    const outcome: PromiseRejectedResult = { status: 'rejected', reason: error };
    const end = failure.at < 0 ? piece.count : at + 1;
    // An item that cannot travel: nothing of its chunk was sent.
    if (at > 0) this.#returned.unshift(partOf(piece, 0, at));
    if (end < piece.count) this.#returned.unshift(partOf(piece, end, piece.count));
    const lost = partOf(piece, at, end);
    this.#acceptAll(lost, lost.count, new Array(lost.count).fill(outcome));
  }

  /** True: the chunk was not begun, and there will be room, after a full queue when one has ended. */
  #mayTryLater({ error, at, workerLabel }: ChunkFailure): boolean {
    if (error === notBegun) return true;
    const isOfPool = at < 0 && workerLabel === undefined;
    if (!isOfPool || !hasCode(error, 'POOL_QUEUE_FULL') || this.#inFlight.size === 0) return false;
    this.#maxInFlight = this.#inFlight.size;
    return true;
  }

  #chunkOf(piece: Piece): Chunk {
    const { runner, kind, output, into, isInPlace, options } = this.#parts;
    const isWhole = isInPlace || runner.isHere;
    return {
      input: kind.pairsOf === undefined ? 'items' : 'pairs',
      output,
      start: piece.start,
      count: piece.count,
      budgetMs: options.chunk === undefined ? chunkBudgetMs(this.#targetMs) : Infinity,
      items: isWhole ? piece.items : itemsOf(piece),
      offset: isWhole ? piece.offset : 0,
      indices: piece.indices,
      into,
    };
  }

  #reportProgress(isLast: boolean): void {
    const { source, options } = this.#parts;
    if (options.onProgress === undefined) return;
    const atMs = nowMs();
    if (!isLast && atMs - this.#reportedMs < progressEveryMs) return;
    this.#reportedMs = atMs;
    options.onProgress({ doneItems: this.#doneItems, totalItems: source.totalItems });
  }

  /** Ends the map with `error`: running chunks are aborted, the map is rejected. */
  fail(error: unknown): void {
    if (this.#state === 'running') this.#end('failed', error);
  }

  /** Ends the map because its results are no longer needed. */
  cancel(): void {
    if (this.#state === 'running') this.#end('done');
  }

  #end(state: MapState, error?: unknown): void {
    const { source, runner, options } = this.#parts;
    this.#state = state;
    this.#endedMs = nowMs();
    if (options.signal !== undefined) unwatchAbort(options.signal, this.#onAbort);
    source.close();
    this.#controller.abort();
    if (!this.#parts.keepsRunner) runner.close();
    try {
      if (state === 'done') this.#reportProgress(true);
    } catch (thrown) {
      this.#reject(thrown);
    }
    if (state === 'done') this.#resolve();
    else this.#reject(error);
  }

  stats(): MapStats {
    const { runner, source } = this.#parts;
    const untilMs = this.#state === 'running' ? nowMs() : this.#endedMs;
    return {
      channel: runner.channel,
      why: runner.why,
      workers: runner.workers,
      doneItems: this.#doneItems,
      totalItems: source.totalItems,
      chunks: this.#chunks,
      itemMs: this.#cost.runMs,
      sendMs: this.#cost.sendMs,
      ranMs: this.#ranMs,
      elapsedMs: untilMs - this.#startedMs,
    };
  }
}
