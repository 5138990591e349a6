// Names the items of a piece in messages, and the item of an error.

import { pairAt } from '../worker/index.js';
import type { Place } from './failure.js';
import { indexAt, type Piece } from './source.js';

/** Kind of the items of a map. */
export interface ItemKind {
  /** For pairs: the number of items that make them; `undefined`: the items are no pairs. */
  readonly pairsOf: number | undefined;
  /** False: failures belong to no item of the map's input. */
  readonly isOfItems: boolean;
  /** Name of the mapper in messages. */
  readonly name: string;
}

/** Names the whole piece, and its mapper. */
export function nameOf(kind: ItemKind, piece: Piece): string {
  return `${placesOf(kind, piece)} of ${kind.name}`;
}

/** Names item `at` of a piece that failed; -1: no single one. */
export function placeOf(kind: ItemKind, piece: Piece, at: number): Place {
  if (!kind.isOfItems) return { index: undefined, name: kind.name };
  if (at < 0 && piece.count > 1) return { index: undefined, name: placesOf(kind, piece) };
  const index = indexAt(piece, Math.max(0, at));
  return { index, name: oneOf(kind, index) };
}

function oneOf({ pairsOf }: ItemKind, index: number): string {
  if (pairsOf === undefined) return `item ${index}`;
  const [i, j] = pairAt(index, pairsOf);
  return `pair ${index} (items ${i} and ${j})`;
}

function placesOf(kind: ItemKind, piece: Piece): string {
  const first = indexAt(piece, 0);
  if (piece.count === 1) return oneOf(kind, first);
  const noun = kind.pairsOf === undefined ? 'items' : 'pairs';
  return `${noun} ${first} to ${indexAt(piece, piece.count - 1)}`;
}
