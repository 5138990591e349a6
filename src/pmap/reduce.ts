// The parallel reduction. Workers map and combine the items of a chunk, so that each chunk returns one
// value; neighbours among these are sent again in groups to be combined, until one is left. Only neighbours
// are ever combined, so `combine` must be associative, and need not be commutative.

import { type AnyFunction, captureSite } from '../context/index.js';
import { invalid, notFunction } from '../lib/index.js';
import { chooseRunner } from './choose.js';
import type { Collector } from './collect.js';
import type { MapRun } from './map.js';
import { type FilledMapOptions, fillMapOptions, type MapOptions } from './options.js';
import {
  checkInput,
  type MapPromise,
  prepare,
  prepareFrom,
  type Request,
  settle,
} from './prepare.js';
import type { ChunkRunner } from './runner.js';
import { ArraySource } from './source.js';

/**
 * Maps every item with `map(item, index)` and combines the results in the workers: `initial` with all of
 * them, in their order. `combine` is called with neighbours, however they are grouped, so it must be
 * associative. Resolves with `initial` when there are no items. Fails like `pmap`; `OPTION_INVALID` for
 * `settled`.
 */
export function reduceItems<T, V>(
  items: Iterable<T> | AsyncIterable<T>,
  map: (item: T, index: number) => V | PromiseLike<V>,
  combine: (left: V, right: V) => V | PromiseLike<V>,
  initial: V,
  options?: MapOptions,
): MapPromise<V>;
export function reduceItems(
  items: unknown,
  map: AnyFunction,
  combine: AnyFunction,
  ...more: [initial?: unknown, options?: MapOptions]
): MapPromise<unknown> {
  const site = captureSite(reduceItems);
  return settle(map, () => {
    const [initial, given] = more;
    const options = fillMapOptions(given);
    checkInput(items, map);
    if (typeof combine !== 'function') throw notFunction('combine', combine);
    if (more.length === 0) throw invalid('initial', initial, 'given: the result for no items');
    if (options.settled) throw invalid('settled', true, 'left out: a reduction has one outcome');
    const mapper = (): object => ({ map, combine });
    const runner = chooseRunner(mapper, options);
    const request = { mapper, options, site };
    const combining = new Set<MapRun>();
    const partials = new Partials((values) => combineAll(request, runner, values, combining));
    const collector: Collector<Promise<unknown>> = {
      output: 'fold',
      accept: ({ position }, count, value) =>
        partials.add({ position, count, value }, prepared.run),
      result: () => partials.combineWith(initial).finally(() => runner.close()),
    };
    const prepared = prepare<unknown>(
      { ...request, items },
      collector,
      { keepsRunner: true },
      runner,
    );
    prepared.run.finished.catch((error: unknown) => {
      for (const run of combining) run.fail(error);
      runner.close();
    });
    return prepared;
  });
}

/** Combined value of the items `[position, position + count)`. */
interface Partial {
  readonly position: number;
  readonly count: number;
  readonly value: unknown;
}

/** Number of waiting values above which neighbours are combined: a long map keeps few. */
const maxPartials = 64;

/** Values of chunks on their way to one, neighbours combined as they gather. */
class Partials {
  readonly #combine: (values: unknown[]) => Promise<unknown>;
  #partials: Partial[] = [];
  #combining: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(combine: (values: unknown[]) => Promise<unknown>) {
    this.#combine = combine;
  }

  /** Fails `run` when combining fails. */
  add(partial: Partial, run: MapRun): void {
    this.#partials.push(partial);
    if (this.#partials.length < maxPartials || this.#combining !== undefined) return;
    this.#combining = this.#combineLongest()
      .catch((error: unknown) => {
        this.#failure = { error };
        run.fail(error);
      })
      .finally(() => {
        this.#combining = undefined;
      });
  }

  /** Combines the longest row of neighbours; a chunk still at work may leave a gap. */
  async #combineLongest(): Promise<void> {
    const row = longestRow(this.#partials);
    const [first] = row;
    if (first === undefined || row.length < 2) return;
    const taken = new Set(row);
    this.#partials = this.#partials.filter((partial) => !taken.has(partial));
    const value = await this.#combine(row.map((partial) => partial.value));
    const count = row.reduce((sum, partial) => sum + partial.count, 0);
    this.#partials.push({ position: first.position, count, value });
  }

  /** Combines all of them after `initial`, when no more come. */
  async combineWith(initial: unknown): Promise<unknown> {
    await this.#combining;
    if (this.#failure !== undefined) throw this.#failure.error;
    const inOrder = this.#partials.sort((a, b) => a.position - b.position);
    return this.#combine([initial, ...inOrder.map(({ value }) => value)]);
  }
}

/** Returns the longest row of `partials` without a gap, in order. Sorts them. */
function longestRow(partials: Partial[]): Partial[] {
  partials.sort((a, b) => a.position - b.position);
  let longest: Partial[] = [];
  let row: Partial[] = [];
  for (const partial of partials) {
    const last = row.at(-1);
    const follows = last !== undefined && last.position + last.count === partial.position;
    row = follows ? [...row, partial] : [partial];
    if (row.length > longest.length) longest = row;
  }
  return longest;
}

/**
 * Combines values with their neighbours in the workers, in a tree, until one is left. `combining` holds the
 * current run.
 */
async function combineAll(
  request: Request,
  runner: ChunkRunner,
  values: unknown[],
  combining: Set<MapRun>,
): Promise<unknown> {
  let level = values;
  while (level.length > 1) {
    const chunkItems = Math.max(2, Math.ceil(level.length / runner.workers));
    const options: FilledMapOptions = {
      ...request.options,
      chunk: chunkItems,
      lead: undefined,
      onProgress: undefined,
    };
    const source = new ArraySource(level);
    const next: Partial[] = [];
    const collector: Collector<void> = {
      output: 'combined',
      accept: ({ position }, count, value) => next.push({ position, count, value }),
      result: () => {},
    };
    const shape = { name: 'combine', isOfItems: false, keepsRunner: true } as const;
    const { run } = prepareFrom({ ...request, options }, () => source, collector, shape, runner);
    combining.add(run);
    run.pump();
    await run.finished.finally(() => combining.delete(run));
    level = next.sort((a, b) => a.position - b.position).map(({ value }) => value);
  }
  return level[0];
}
