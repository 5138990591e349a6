// Collectors for results that are wanted all at once: each takes those of one piece after the other, in the
// order in which they come, and returns the whole at the end.

import type { Cells, Chunk } from '../worker/index.js';
import { indexAt, type Piece } from './source.js';
import { isTypedArray } from './typed.js';

export interface Collector<R> {
  /** Kind of answer that chunks give. */
  readonly output: Chunk['output'];
  /** Takes the results of the first `count` items of `piece`. */
  readonly accept: (piece: Piece, count: number, value: unknown) => void;
  /** Returns the whole, when everything has come. */
  readonly result: () => R;
}

/** Collects results at the places of their items: holes stay holes. */
export function inOrder(output: 'list' | 'settled', length: number): Collector<unknown[]> {
  const results = new Array<unknown>(length);
  return {
    output,
    accept: (piece, count, value) => {
      const values = listOf(value, count);
      for (let at = 0; at < count; at += 1) results[indexAt(piece, at)] = values[at];
    },
    result: () => results,
  };
}

/** Collects results as they come. */
export function asTheyCome(output: 'list' | 'settled'): Collector<unknown[]> {
  const results: unknown[] = [];
  return {
    output,
    accept: (_, count, value) => {
      for (const result of listOf(value, count)) results.push(result);
    },
    result: () => results,
  };
}

/** Collects results in `into`. Workers that share memory with us have already written them there. */
export function filling<T extends Cells>(into: T): Collector<T> {
  return {
    output: 'fill',
    accept: (piece, count, value) => {
      if (value === undefined) return;
      if (!isTypedArray(value) || value.length !== count) throw malformed();
      for (let at = 0; at < count; at += 1) into[piece.start + at] = value[at];
    },
    result: () => into,
  };
}

/** Collects the items for which the mapper returned true, in order; `isOrdered` false: as they come. */
export function keeping(isOrdered: boolean): Collector<unknown[]> {
  const pieces: { position: number; items: unknown[] }[] = [];
  return {
    output: 'kept',
    accept: ({ items, offset, position }, count, value) => {
      const kept = listOf(value, undefined).map((at) => {
        if (typeof at !== 'number' || !(at < count)) throw malformed();
        return items[offset + at];
      });
      pieces.push({ position, items: kept });
    },
    result: () => {
      if (isOrdered) pieces.sort((a, b) => a.position - b.position);
      return pieces.flatMap((piece) => piece.items);
    },
  };
}

function listOf(value: unknown, count: number | undefined): unknown[] {
  if (!Array.isArray(value) || (count !== undefined && value.length !== count)) throw malformed();
  return value;
}

function malformed(): TypeError {
  return new TypeError('a chunk was answered with something else than its results');
}
