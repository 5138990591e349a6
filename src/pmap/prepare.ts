// Prepares a run for a call: the source of the items, the runner, and the collector of the results. Nothing
// is sent here, and a call that throws leaves nothing pinned or open behind.

import type { AnyFunction, CallSite } from '../context/index.js';
import {
  abortError,
  functionName,
  invalid,
  notFunction,
  ownOf,
  refuseInTransaction,
} from '../lib/index.js';
import { traceMap } from '../pool/index.js';
import type { Cells } from '../worker/index.js';
import { chooseRunner } from './choose.js';
import { type Collector, filling } from './collect.js';
import { MapRun } from './map.js';
import type { FilledMapOptions, TypedArray } from './options.js';
import type { ChunkRunner } from './runner.js';
import {
  ArraySource,
  type AsyncReader,
  AsyncSource,
  IteratorSource,
  RangeSource,
  type Source,
} from './source.js';
import type { MapStats } from './stats.js';
import { classNameOf, copyOf, isShared, isTypedArray, sharedLike } from './typed.js';

/** Promise of a map's results, with statistics. */
export interface MapPromise<R> extends Promise<R> {
  stats(): MapStats;
}

/** A map that has not begun to send. */
export interface Prepared<R> {
  readonly run: MapRun;
  readonly stats: () => MapStats;
  readonly result: () => R | Promise<R>;
}

export interface Request {
  readonly mapper: AnyFunction;
  readonly options: FilledMapOptions;
  readonly site: CallSite;
}

/** Form of the chunks of a map. */
export interface Shape {
  readonly name: string;
  /** For pairs: the number of items that make them. Default: the items are no pairs. */
  readonly pairsOf?: number;
  readonly into?: Cells | string;
  readonly isInPlace?: boolean;
  readonly deliveredItems?: () => number;
  /** False: failures belong to no item of the map's input. Default true. */
  readonly isOfItems?: boolean;
  /** True: the caller that prepared the run closes its runner. Default false. */
  readonly keepsRunner?: boolean;
}

/** Statistics of a map that failed before it began. */
export const statsOfNone: MapStats = Object.freeze({
  channel: 'inline',
  why: 'it did not begin',
  workers: 0,
  doneItems: 0,
  totalItems: undefined,
  chunks: 0,
  itemMs: undefined,
  sendMs: 0,
  ranMs: 0,
  elapsedMs: 0,
});

/** Starts the run that `prepareRun` prepares, at once, and promises its result. */
export function settle<R>(mapper: AnyFunction, prepareRun: () => Prepared<R>): MapPromise<R> {
  refuseInTransaction('a map');
  let prepared: Prepared<R> | undefined;
  const work = async (): Promise<R> => {
    prepared = prepareRun();
    const { run, result } = prepared;
    run.pump();
    await run.finished;
    return result();
  };
  const stats = (): MapStats => prepared?.stats() ?? statsOfNone;
  return traceMap(mapper, () => Object.assign(work(), { stats }));
}

export function isIterable(value: unknown): value is Iterable<unknown> {
  if (typeof value === 'string') return true;
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Throws `OPTION_INVALID` for wrong items, `TASK_NOT_FUNCTION` for a mapper that is no function. */
export function checkInput(items: unknown, mapper: unknown): void {
  if (!isIterable(items) && !isAsyncIterable(items)) {
    throw invalid('items', items, 'an array, a typed array, an iterable or an async iterable');
  }
  if (typeof mapper !== 'function') throw notFunction('fn', mapper);
}

/** Maximum time to read an iterator at a time, in ms, unless `chunk` is a number of items. */
const maxReadMs = 1;

function sourceOf(
  items: unknown,
  { chunk: chunkItems }: FilledMapOptions,
  reader: AsyncReader,
): Source {
  if (Array.isArray(items)) return new ArraySource(items);
  if (isTypedArray(items)) return new RangeSource(items, items.length);
  if (isAsyncIterable(items)) return new AsyncSource(items, reader);
  if (isIterable(items)) {
    return new IteratorSource(items, chunkItems === undefined ? maxReadMs : Infinity);
  }
  throw invalid('items', items, 'an array, a typed array, an iterable or an async iterable');
}

/** Prepares a map over `items`, of any kind. */
export function prepare<R>(
  request: Request & { readonly items: unknown },
  collector: Collector<R>,
  more: Partial<Shape> = {},
  runner?: ChunkRunner,
): Prepared<R> {
  const { items, mapper, options } = request;
  checkInput(items, mapper);
  const shape: Shape = { name: functionName(mapper), ...more };
  return prepareFrom(
    request,
    (reader) => sourceOf(items, options, reader),
    collector,
    shape,
    runner,
  );
}

/** Prepares a map over the source that `open` returns. */
export function prepareFrom<R>(
  { mapper, options, site }: Request,
  open: (reader: AsyncReader) => Source,
  collector: Collector<R>,
  givenShape: Shape,
  runner: ChunkRunner = chooseRunner(mapper, options),
): Prepared<R> {
  const shape = ownOf(givenShape);
  try {
    if (options.signal?.aborted) throw abortError(options.signal);
    const reader: AsyncReader = {
      mayRead: (buffered) => run.mayRead(buffered),
      onItems: () => run.pump(),
      onError: (error) => {
        run.failAfterItems(error);
        run.pump();
      },
    };
    const run: MapRun = new MapRun({
      source: open(reader),
      runner,
      output: collector.output,
      into: shape.into ?? '',
      isInPlace: shape.isInPlace ?? false,
      kind: {
        pairsOf: shape.pairsOf,
        isOfItems: shape.isOfItems ?? true,
        name: shape.name === '' ? 'the mapper' : shape.name,
      },
      options,
      site,
      accept: collector.accept,
      deliveredItems: shape.deliveredItems,
      keepsRunner: shape.keepsRunner ?? false,
    });
    return { run, stats: () => run.stats(), result: collector.result };
  } catch (error) {
    runner.close();
    throw error;
  }
}

/** Prepares a map over a typed array into another, or in place. */
export function prepareFill(
  request: Request & { readonly items: TypedArray },
): Prepared<TypedArray> {
  const { items, mapper, options } = request;
  checkInput(items, mapper);
  const into = options.into ?? sharedLike(items);
  if (!isTypedArray(into) || into.length !== items.length) {
    throw invalid('into', into, `a typed array of ${items.length} items, as many as there are`);
  }
  const isSame = checkOverlap(items, into);
  const runner = chooseRunner(mapper, options);
  const { isHere, sharesMemory } = runner;
  // A chunk that may run again in place must not read its own results.
  const read = isSame && options.retry > 0 ? copyOf(items) : items;
  const isSeen = (array: TypedArray): boolean => isHere || (sharesMemory && isShared(array));
  const shape: Shape = {
    name: functionName(mapper),
    into: isSeen(into) ? into : classNameOf(into),
    isInPlace: isSeen(read),
  };
  const open = (): Source => new RangeSource(read, read.length);
  return prepareFrom(request, open, filling(into), shape, runner);
}

/**
 * True: the map is in place. Workers that read what others write would see unpredictable values, so a
 * partial overlap is `OPTION_INVALID`.
 */
function checkOverlap(items: TypedArray, into: TypedArray): boolean {
  const isApart =
    into.buffer !== items.buffer ||
    into.byteOffset >= items.byteOffset + items.byteLength ||
    items.byteOffset >= into.byteOffset + into.byteLength;
  const isSame =
    into.byteOffset === items.byteOffset && into.BYTES_PER_ELEMENT === items.BYTES_PER_ELEMENT;
  if (!isApart && !isSame) {
    throw invalid('into', into, 'the items themselves, or memory apart from theirs');
  }
  return !isApart;
}
