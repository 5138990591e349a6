// Runs one chunk of a parallel map: calls the mapper for one item after the other and gathers the results
// into one answer. In a worker the chunk comes as a frame; a map that runs inline calls this directly. A
// chunk has a time budget: items not begun when it is over go back to the caller, which may have an idle
// worker for them. So a wrong guess of item times costs little.
//
// One loop serves every kind of input and output (array, typed array, pairs; list, filter, fold): a kind is
// a function that calls the mapper for one item, and one that takes its result. The two indirect calls cost
// some nanoseconds an item, so the plainest kind has a loop that V8 can inline the mapper in (hot-loop.ts).
// Not here: which items make a chunk (pmap/), how chunk and answer travel (runner.ts, link.ts).

import { nowMs } from '../../lib/index.js';
import {
  type Cells,
  type Chunk,
  type ChunkAnswer,
  newArray,
  parseChunkAnswer,
  parseFold,
  parsePairs,
} from '../protocol.js';
import { type HotJob, type HotLoop, hotLoopOf } from './hot-loop.js';

export type Mapper = (...args: unknown[]) => unknown;

/** The mapper failed for the item `at`, counted from the beginning of its chunk. */
export class ItemFailure {
  readonly at: number;
  readonly error: unknown;

  constructor(at: number, error: unknown) {
    this.at = at;
    this.error = error;
  }
}

/** Steps of a chunk for its items, in order. */
interface Steps {
  /** Calls the mapper for item `at`. */
  readonly call: (at: number) => unknown;
  /** Takes the awaited result. */
  readonly take: (result: unknown, at: number) => void;
  /** Takes the error; throws when the chunk ends with it. */
  readonly fail: (error: unknown, at: number) => void;
  /** Returns the answer when `done` items are through. */
  readonly answer: (done: number) => unknown;
  /** Place of each result, from `offset` on; only for outputs that end at the first failure. */
  readonly places?: { readonly cells: Cells; readonly offset: number };
}

/** Minimum number of items that is worth a hot loop. */
const hotItems = 32;

/**
 * Runs `chunk` until its items or its budget are used up, at least one item; a promise when the mapper
 * returns promises. Items run one after the other. Throws `ItemFailure`; a `stream` only for its first item.
 */
export function runChunk(
  mapper: Mapper,
  chunk: Chunk,
  isAborted: () => boolean,
): ChunkAnswer | Promise<ChunkAnswer> {
  const steps = stepsOf(mapper, chunk);
  const clock = new Clock(chunk.budgetMs);
  if (chunk.output !== 'stream') return runSteps(mapper, chunk, steps, clock, isAborted);
  const before = (thrown: unknown): ChunkAnswer => {
    if (!(thrown instanceof ItemFailure) || thrown.at === 0) throw thrown;
    const { at, error } = thrown;
    return { done: at, value: steps.answer(at), ranMs: clock.ranMs(), failed: { error } };
  };
  try {
    const answer = runSteps(mapper, chunk, steps, clock, isAborted);
    return answer instanceof Promise ? answer.catch(before) : answer;
  } catch (thrown) {
    return before(thrown);
  }
}

function runSteps(
  mapper: Mapper,
  chunk: Chunk,
  steps: Steps,
  clock: Clock,
  isAborted: () => boolean,
): ChunkAnswer | Promise<ChunkAnswer> {
  const job = jobOf(chunk, steps);
  if (job !== undefined) return runHot(hotLoopOf(mapper), job, steps, chunk, clock, isAborted);
  let at = 0;
  while (at < chunk.count) {
    try {
      const result = steps.call(at);
      if (isThenable(result)) return finishLater(steps, chunk, clock, isAborted, at, result);
      steps.take(result, at);
    } catch (error) {
      steps.fail(error, at);
    }
    at += 1;
    if (clock.isOver(at)) break;
  }
  return { done: at, value: steps.answer(at), ranMs: clock.ranMs() };
}

/** Runs a chunk in a hot loop: results go to places, one for each item. */
function runHot(
  loop: HotLoop,
  job: HotJob,
  steps: Steps,
  chunk: Chunk,
  clock: Clock,
  isAborted: () => boolean,
): ChunkAnswer | Promise<ChunkAnswer> {
  let at = 0;
  while (at < chunk.count) {
    try {
      at = loop(job, at, Math.min(chunk.count, clock.nextCheck));
    } catch (error) {
      steps.fail(error, job.stoppedAt);
    }
    if (job.pending !== undefined) {
      return finishLater(steps, chunk, clock, isAborted, at, job.pending);
    }
    if (clock.isOver(at)) break;
  }
  return { done: at, value: steps.answer(at), ranMs: clock.ranMs() };
}

function jobOf(
  { input, indices, count, items, offset, start }: Chunk,
  { places }: Steps,
): HotJob | undefined {
  const isPlain = input === 'items' && indices === undefined && count >= hotItems;
  if (!isPlain || places === undefined) return undefined;
  const { cells: into, offset: intoOffset } = places;
  return { items, offset, start, into, intoOffset, stoppedAt: 0, pending: undefined };
}

async function finishLater(
  steps: Steps,
  { count }: Chunk,
  clock: Clock,
  isAborted: () => boolean,
  first: number,
  pending: unknown,
): Promise<ChunkAnswer> {
  let at = first;
  let result = pending;
  while (true) {
    try {
      if (at > first) result = steps.call(at);
      steps.take(await result, at);
    } catch (error) {
      steps.fail(error, at);
    }
    at += 1;
    if (at >= count || clock.isOver(at) || isAborted()) break;
  }
  return { done: at, value: steps.answer(at), ranMs: clock.ranMs() };
}

function stepsOf(mapper: Mapper, chunk: Chunk): Steps {
  const call = callOf(mapper, chunk);
  switch (chunk.output) {
    case 'list':
    case 'stream': {
      const results: unknown[] = [];
      const places = { cells: results, offset: 0 };
      return { call, take: (result) => results.push(result), fail, answer: () => results, places };
    }
    case 'settled': {
      const results: PromiseSettledResult<unknown>[] = [];
      return {
        call,
        take: (value) => results.push({ status: 'fulfilled', value }),
        fail: (reason) => results.push({ status: 'rejected', reason }),
        answer: () => results,
      };
    }
    case 'kept': {
      const kept: number[] = [];
      return { call, take: (result, at) => result && kept.push(at), fail, answer: () => kept };
    }
    case 'fill':
      return fillSteps(call, chunk);
    case 'fold':
    case 'combined':
      return foldSteps(mapper, chunk);
  }
}

function fail(error: unknown, at: number): never {
  throw new ItemFailure(at, error);
}

/** Returns a function that calls the mapper with an item and its index. */
function callOf(mapper: Mapper, chunk: Chunk): (at: number) => unknown {
  if (chunk.input === 'pairs') return callPairs(mapper, chunk);
  const { items, offset, start, indices } = chunk;
  if (indices !== undefined) return (at) => mapper(items[offset + at], indices[at]);
  return (at) => mapper(items[offset + at], start + at);
}

/** Pairs are numbered (0, 1), (0, 2), … (1, 2), …: chunks hold ranges of these numbers. */
function callPairs(mapper: Mapper, { start }: Chunk): (at: number) => unknown {
  const { items, map } = kitOf(mapper, parsePairs);
  let [i, j] = pairAt(start, items.length);
  return () => {
    const [a, b] = [i, j];
    j += 1;
    if (j === items.length) {
      i += 1;
      j = i + 1;
    }
    return map(items[a], items[b], a, b);
  };
}

/** Returns the pair `[i, j]`, i < j, with this number among the pairs of `itemCount` items. */
export function pairAt(number: number, itemCount: number): [i: number, j: number] {
  const firstOf = (i: number): number => i * itemCount - (i * (i + 1)) / 2;
  const a = 2 * itemCount - 1;
  let i = Math.floor((a - Math.sqrt(a * a - 8 * number)) / 2);
  // The root is rounded: it may be off by one where two rows meet.
  while (i > 0 && firstOf(i) > number) i -= 1;
  while (firstOf(i + 1) <= number) i += 1;
  return [i, i + 1 + number - firstOf(i)];
}

/** Writes results into a typed array: that of all workers in shared memory, or one of this chunk's own. */
function fillSteps(call: Steps['call'], { into, start, count }: Chunk): Steps {
  if (typeof into !== 'string') {
    const take = (result: unknown, at: number): void => {
      into[start + at] = result;
    };
    const places = { cells: into, offset: start };
    return { call, take, fail, answer: () => undefined, places };
  }
  const results = newArray(into, count);
  const take = (result: unknown, at: number): void => {
    results[at] = result;
  };
  const places = { cells: results, offset: 0 };
  return { call, take, fail, answer: (done) => results.subarray(0, done), places };
}

/** Maps and combines; the first item of a chunk begins its fold, so `combine` must be associative. */
function foldSteps(mapper: Mapper, chunk: Chunk): Steps {
  const { map, combine } = kitOf(mapper, parseFold);
  const { items, offset } = chunk;
  const isCombined = chunk.output === 'combined';
  const mapped = isCombined ? (at: number): unknown => items[offset + at] : callOf(map, chunk);
  let folded: unknown;
  const fold = (at: number, value: unknown): unknown => (at === 0 ? value : combine(folded, value));
  return {
    call: (at) => {
      const value = mapped(at);
      return isThenable(value)
        ? Promise.resolve(value).then((each) => fold(at, each))
        : fold(at, value);
    },
    take: (result) => {
      folded = result;
    },
    fail,
    answer: () => folded,
  };
}

/** Functions to test values that may not travel. */
export interface Sending {
  /** Throws for a value that cannot travel. */
  readonly trySend: (value: unknown) => void;
  /** Returns the parts of an error that can travel. */
  readonly reduce: (error: unknown) => unknown;
}

/**
 * Returns the answer of a chunk that failed to be sent with `thrown`, without the values that cannot
 * travel: outcomes name the reason instead. Throws `ItemFailure` for the first such result of a list,
 * `thrown` when the answer is no list of results.
 */
export function withoutUnsendable(
  { output }: Chunk,
  answer: unknown,
  thrown: unknown,
  sending: Sending,
): unknown {
  const { done, value, ranMs, failed } = parseChunkAnswer(answer);
  if (!Array.isArray(value) || !isListOutput(output)) throw thrown;
  const failure = output === 'stream' ? firstUnsendable(value, sending) : undefined;
  if (failure !== undefined && failure.at > 0) {
    const { at, error } = failure;
    return { done: at, value: value.slice(0, at), ranMs, failed: { error } };
  }
  const results = value.map((result: unknown, at) => {
    if (output === 'settled') return sendableOutcome(result, sending);
    try {
      sending.trySend(result);
      return result;
    } catch (error) {
      throw new ItemFailure(at, error);
    }
  });
  return { done, value: results, ranMs, failed: failed && { error: sending.reduce(failed.error) } };
}

function isListOutput(output: Chunk['output']): boolean {
  return output === 'list' || output === 'stream' || output === 'settled';
}

function firstUnsendable(results: unknown[], { trySend }: Sending): ItemFailure | undefined {
  for (const [at, result] of results.entries()) {
    try {
      trySend(result);
    } catch (error) {
      return new ItemFailure(at, error);
    }
  }
  return undefined;
}

function sendableOutcome(outcome: unknown, { trySend, reduce }: Sending): unknown {
  const { value, reason }: { value?: unknown; reason?: unknown } = Object(outcome);
  try {
    trySend(value);
  } catch (error) {
    return { status: 'rejected', reason: error };
  }
  try {
    trySend(reason);
    return outcome;
  } catch {
    return { status: 'rejected', reason: reduce(reason) };
  }
}

const kits = new WeakMap<Mapper, unknown>();

/** Returns the parts of a mapper with parts; calls it once and keeps the result. */
function kitOf<T>(mapper: Mapper, parse: (value: unknown) => T): T {
  const known = kits.get(mapper);
  const value = known ?? mapper();
  if (known === undefined) kits.set(mapper, value);
  return parse(value);
}

/** Time between two readings of the clock, in ms: a reading costs as much as a very short item. */
const checkEveryMs = 0.05;
const maxItemsBetween = 8192;

/** Measures the budget of a chunk, and reads the clock only every few items. */
class Clock {
  readonly #startedMs = nowMs();
  readonly #budgetMs: number;
  #checkedMs = this.#startedMs;
  #stride = 1;
  /** Number of items after which `isOver` reads the clock again. */
  nextCheck = 1;

  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** True: the budget is over. Called after each item; `done` items are through. */
  isOver(done: number): boolean {
    if (done < this.nextCheck) return false;
    const atMs = nowMs();
    const passedMs = atMs - this.#checkedMs;
    this.#checkedMs = atMs;
    if (passedMs > 2 * checkEveryMs) this.#stride = 1;
    else if (passedMs < checkEveryMs) this.#stride = Math.min(2 * this.#stride, maxItemsBetween);
    this.nextCheck = done + this.#stride;
    return atMs - this.#startedMs >= this.#budgetMs;
  }

  ranMs(): number {
    return nowMs() - this.#startedMs;
  }
}

/** True: `value` is to be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  );
}
