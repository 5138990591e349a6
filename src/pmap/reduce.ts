// The parallel reduction. Hosts map and combine what a chunk holds, so that one value comes back of
// each; neighbours among these go out again in groups to be combined, until one is left. Only
// neighbours are ever combined, so `combine` must be associative, and need not be commutative.

import { type AnyFunction, captureSite } from '../context/index.js';
import { invalid } from '../internal/index.js';
import { notFunction } from '../pool/index.js';
import type { Collector } from './collect.js';
import { type FilledMapOptions, fillMapOptions, type MapOptions } from './options.js';
import {
  checkInput,
  type MapPromise,
  prepare,
  prepareFrom,
  type Request,
  settle,
} from './prepare.js';
import { ArraySource, type Piece } from './source.js';

/**
 * Maps every item with `map(item, index)` and combines the results in the hosts: `initial` with all of
 * them, in their order. `combine` is called with neighbours, however they are grouped, so it must be
 * associative. Resolves with `initial` where there is nothing to map. Fails like `pmap`.
 */
export function reduce<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  map: (item: T, index: number) => R,
  combine: (left: Awaited<R>, right: Awaited<R>) => Awaited<R> | PromiseLike<Awaited<R>>,
  initial: Awaited<R>,
  options?: MapOptions,
): MapPromise<Awaited<R>>;
export function reduce(
  items: unknown,
  map: AnyFunction,
  combine: AnyFunction,
  initial: unknown,
  given?: MapOptions,
): MapPromise<unknown> {
  const site = captureSite(reduce);
  return settle(() => {
    const options = fillMapOptions(given);
    checkInput(items, map);
    if (typeof combine !== 'function') throw notFunction(combine);
    if (options.settled) throw invalid('settled', true, 'left out: a reduction has one outcome');
    const partials = gatherPartials();
    const request = { items, mapper: () => ({ map, combine }), options, site };
    const prepared = prepare(request, partials);
    const fold = (values: unknown[]) =>
      combineAll({ mapper: () => ({ combine }), options, site }, values, prepared.run.hosts);
    return { ...prepared, result: () => fold([initial, ...partials.result()]) };
  });
}

/** One value of each chunk, in the order of the chunks' items. */
function gatherPartials(): Collector<unknown[]> {
  const partials: { position: number; value: unknown }[] = [];
  return {
    output: 'fold',
    accept: ({ position }: Piece, count, value) => {
      if (count > 0) partials.push({ position, value });
    },
    result: () => partials.sort((a, b) => a.position - b.position).map(({ value }) => value),
  };
}

/** Combines neighbours in the hosts, in a tree, until one value is left. */
async function combineAll(request: Request, values: unknown[], hosts: number): Promise<unknown> {
  let level = values;
  while (level.length > 1) {
    const chunkItems = Math.max(2, Math.ceil(level.length / hosts));
    const options: FilledMapOptions = { ...request.options, chunkItems, onProgress: undefined };
    const source = new ArraySource(level);
    const shape = { input: 'items', name: 'combine' } as const;
    const partials = gatherPartials();
    const prepared = prepareFrom({ ...request, options }, () => source, partials, shape);
    prepared.run.pump();
    await prepared.run.finished;
    level = partials.result();
  }
  return level[0];
}
