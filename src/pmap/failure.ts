// Errors with which a map rejects. An error of a mapper keeps its class and properties, and gets its place:
// a property `itemIndex`, and in its stack the worker and the item above the frames of the map's caller.

import { type CallSite, joinStacks } from '../context/index.js';
import { CodedError } from '../errors.js';
import { defineOwn, descriptorOf, inWords } from '../lib/index.js';
import type { ChunkFailure } from '../pool/index.js';

/**
 * True: a map was rejected with `error` because of one item; the index of that item in the input is its
 * `itemIndex`. False for errors of no single item, as `WORKER_EXITED` of a chunk.
 */
export function hasItemIndex(error: unknown): error is Error & { readonly itemIndex: number } {
  return error instanceof Error && 'itemIndex' in error && typeof error.itemIndex === 'number';
}

export interface Place {
  /** Index of the item; `undefined`: no single one. */
  readonly index: number | undefined;
  /** "item 17", "items 12 to 19". */
  readonly name: string;
}

/** Returns the error of `failure` for the caller of the map. */
export function locate(failure: ChunkFailure, site: CallSite, place: Place): unknown {
  const error = asObject(failure.error, place);
  joinStacks(error, site, [failure.workerLabel, place.name].filter(Boolean).join(', '));
  if (place.index !== undefined) setIndex(error, place.index);
  return error;
}

/** Wraps a thrown string or number, which cannot carry its place, as the cause of an error that can. */
function asObject(error: unknown, { name }: Place): object {
  if (typeof error === 'object' && error !== null) return error;
  const text = `the mapper threw ${inWords(error)} for ${name}`;
  return new CodedError('MAP_ITEM_FAILED', text, { cause: error });
}

/** Sets `itemIndex`, unless the user's error has a property of that name. */
function setIndex(error: object, index: number): void {
  try {
    const known = descriptorOf(error, 'itemIndex');
    if (known?.enumerable === true) return;
    defineOwn(error, 'itemIndex', { value: index, configurable: true, writable: true });
  } catch {
    // A frozen error or a Proxy gets no index.
  }
}
