// The calls of the parallel map. A call is checked, captured and pinned at the call (prepare.ts); from then
// on a `MapRun` works (map.ts).

import { type AnyFunction, captureSite } from '../context/index.js';
import { CodedError } from '../errors.js';
import { invalid } from '../lib/index.js';
import { asTheyCome, type Collector, inOrder, keeping } from './collect.js';
import type { MapRun } from './map.js';
import { type FillOptions, fillMapOptions, type MapOptions, type TypedArray } from './options.js';
import {
  checkInput,
  isIterable,
  type MapPromise,
  type Prepared,
  prepare,
  prepareFill,
  prepareFrom,
  settle,
  statsOfNone,
} from './prepare.js';
import { reduceItems } from './reduce.js';
import { RangeSource } from './source.js';
import type { MapStats } from './stats.js';
import { ResultQueue, readResults } from './stream.js';
import { arrayLike, isTypedArray } from './typed.js';

/** Results of a map one by one, with statistics. */
export interface MapStream<R> extends AsyncIterableIterator<R> {
  stats(): MapStats;
}

/**
 * Calls `fn(item, index)` for every item in the workers of a pool and resolves with the results, in the
 * order of the items: `map`, on every core. `fn` sees its captures as they were at the call. Items come
 * from an array (holes stay holes), an iterable or async iterable, or a typed array: then the result is a
 * typed array too, in shared memory, and of a `shared()` one nothing is copied.
 *
 * The first failure ends the map, which rejects with what `fn` threw; its `itemIndex` is the index of the
 * item. Rejects also with `OPTION_INVALID`, `TASK_NOT_FUNCTION`, `TRANSFER_…`, `ABORTED`, `WORKER_EXITED`
 * (with the items that were lost), `POOL_QUEUE_FULL` (when other calls filled the queue), `POOL_CLOSED`.
 */
export function pmap<T extends TypedArray>(
  items: T,
  fn: (item: T[number], index: number) => T[number] | PromiseLike<T[number]>,
  options?: FillOptions & { readonly settled?: false; readonly into?: undefined },
): MapPromise<T>;
export function pmap<T extends TypedArray, U extends TypedArray>(
  items: T,
  fn: (item: T[number], index: number) => U[number] | PromiseLike<U[number]>,
  options: FillOptions & { readonly settled?: false; readonly into: U },
): MapPromise<U>;
export function pmap<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  fn: (item: T, index: number) => R,
  options: MapOptions & { readonly settled: true },
): MapPromise<PromiseSettledResult<Awaited<R>>[]>;
export function pmap<T, R>(
  // A typed array is excluded: its map returns a typed array, never a list.
  items: (Iterable<T> | AsyncIterable<T>) & { readonly BYTES_PER_ELEMENT?: never },
  fn: (item: T, index: number) => R,
  options?: MapOptions,
): MapPromise<Awaited<R>[]>;
export function pmap(
  items: unknown,
  mapper: AnyFunction,
  given?: FillOptions,
): MapPromise<unknown> {
  const site = captureSite(pmap);
  return settle<unknown>(mapper, () => {
    const isTyped = isTypedArray(items);
    const options = fillMapOptions(given, isTyped);
    const request = { items, mapper, options, site };
    if (options.settled && options.into !== undefined) {
      throw invalid(
        'into',
        options.into,
        'left out beside settled: outcomes are a list of their own',
      );
    }
    if (isTyped && !options.settled) return prepareFill({ ...request, items });
    const output = options.settled ? 'settled' : 'list';
    const length = Array.isArray(items) ? items.length : 0;
    return prepare(request, options.ordered ? inOrder(output, length) : asTheyCome(output));
  });
}

/**
 * Returns the results one by one, in order or (`ordered: false`) as they come. Items are read at most
 * `lead` ahead of the reader, and nothing begins before the first result is requested. Leaving the loop
 * closes the input and frees the workers. Throws `OPTION_INVALID`, `TASK_NOT_FUNCTION`; fails like `pmap`,
 * in order after the results of all items before the one that failed.
 */
pmap.stream = stream;

function stream<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  fn: (item: T, index: number) => R,
  options: MapOptions & { readonly settled: true },
): MapStream<PromiseSettledResult<Awaited<R>>>;
function stream<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  fn: (item: T, index: number) => R,
  options?: MapOptions,
): MapStream<Awaited<R>>;
function stream(items: unknown, mapper: AnyFunction, given?: MapOptions): MapStream<unknown> {
  const site = captureSite(stream);
  const options = fillMapOptions(given);
  checkInput(items, mapper);
  const queue = new ResultQueue(options.ordered);
  const collector: Collector<void> = {
    output: options.settled ? 'settled' : 'stream',
    accept: queue.accept,
    result: () => {},
  };
  let prepared: Prepared<void> | undefined;
  const begin = (): MapRun => {
    const more = { deliveredItems: () => queue.takenItems };
    prepared = prepare({ items, mapper, options, site }, collector, more);
    return prepared.run;
  };
  const results = readResults(queue, begin);
  const leave = results.return.bind(results);
  return Object.assign(results, {
    stats: () => prepared?.stats() ?? statsOfNone,
    // A waiting generator handles this only when it goes on, so the run must end first.
    return: () => {
      prepared?.run.cancel();
      return leave();
    },
  });
}

/**
 * Resolves with the items for which `predicate(item, index)` is truthy, in their order: `filter`, on every
 * core. They are the caller's own; of a typed array a new one with the same class. Fails like `pmap`.
 */
pmap.filter = filter;

function filter<T extends TypedArray>(
  items: T,
  predicate: (item: T[number], index: number) => unknown,
  options?: MapOptions,
): MapPromise<T>;
function filter<T, S extends T>(
  items: Iterable<T> | AsyncIterable<T>,
  predicate: (item: T, index: number) => item is S,
  options?: MapOptions,
): MapPromise<S[]>;
function filter<T>(
  items: Iterable<T> | AsyncIterable<T>,
  predicate: (item: T, index: number) => unknown,
  options?: MapOptions,
): MapPromise<T[]>;
function filter(items: unknown, mapper: AnyFunction, given?: MapOptions): MapPromise<unknown> {
  const site = captureSite(filter);
  return settle(mapper, () => {
    const options = fillMapOptions(given);
    if (options.settled) throw invalid('settled', true, 'left out: a filter has no outcomes');
    const kept = keeping(options.ordered);
    const result = (): unknown =>
      isTypedArray(items) ? arrayLike(items, kept.result()) : kept.result();
    return prepare<unknown>({ items, mapper, options, site }, { ...kept, result });
  });
}

/**
 * Calls `fn(a, b, i, j)` for every unordered pair of items, i < j, and resolves with the results in
 * the order (0, 1), (0, 2), … (1, 2), …: n (n - 1) / 2 of them, but no list of pairs is made, and
 * every worker gets the items once. Holes are pairs with `undefined`. Fails like `pmap`; `itemIndex` is
 * the number of the pair, and the stack names its items.
 */
pmap.pairs = pairs;

function pairs<T, R>(
  items: Iterable<T>,
  fn: (a: T, b: T, i: number, j: number) => R,
  options: MapOptions & { readonly settled: true },
): MapPromise<PromiseSettledResult<Awaited<R>>[]>;
function pairs<T, R>(
  items: Iterable<T>,
  fn: (a: T, b: T, i: number, j: number) => R,
  options?: MapOptions,
): MapPromise<Awaited<R>[]>;
function pairs(given: unknown, map: AnyFunction, options?: MapOptions): MapPromise<unknown> {
  const site = captureSite(pairs);
  return settle(map, () => {
    const filled = fillMapOptions(options);
    checkInput(given, map);
    if (!isIterable(given)) throw invalid('items', given, 'an array or another iterable');
    const items = isTypedArray(given) ? given : Array.from(given);
    const count = pairCount(items.length);
    const output = filled.settled ? 'settled' : 'list';
    const collector = filled.ordered ? inOrder(output, count) : asTheyCome(output);
    const mapper = () => ({ items, map });
    const source = () => new RangeSource([], count);
    const shape = { pairsOf: items.length, name: map.name };
    return prepareFrom({ mapper, options: filled, site }, source, collector, shape);
  });
}

const maxResults = 2 ** 32 - 1;

function pairCount(items: number): number {
  const count = (items * Math.max(0, items - 1)) / 2;
  if (count <= maxResults) return count;
  throw new CodedError(
    'OPTION_INVALID',
    `${items} items make ${count} pairs, and a list holds ${maxResults}: compare fewer at a time`,
  );
}

pmap.reduce = reduceItems;
