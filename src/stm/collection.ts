// The common part of collections: objects of this thread for a variable that stands for them in memory. They travel, and
// are values of variables, by their kind and that variable.
// Not here: the collections (collections/).

import type { Attempt } from './attempt.js';
import { damaged } from './read-value.js';
import type { TVar } from './tvar.js';
import type { SharedName } from './write-value.js';

export const send: unique symbol = Symbol.for('manycore.send');
export const receive: unique symbol = Symbol.for('manycore.receive');
/** The method that ends a variable or a collection when an attempt commits. */
export const endIn: unique symbol = Symbol('end in an attempt');

/** The place of a collection in the memory. */
export interface Stand extends SharedName {
  /** The variable that stands for it, and is kept by it. */
  readonly first: TVar<unknown>;
}

export abstract class Collection {
  readonly #stand: Stand;

  constructor(stand: Stand) {
    this.#stand = stand;
  }

  /** `undefined`: it is no collection. No code of the program runs, not that of a Proxy either. */
  static nameOf(this: void, value: object): SharedName | undefined {
    return #stand in value ? value.#stand : undefined;
  }

  /** Ends it and all its parts when the attempt commits. */
  abstract [endIn](attempt: Attempt): void;

  [send](): unknown {
    const { kind, first } = this.#stand;
    return { kind, first };
  }

  static [receive](data: { readonly kind: number; readonly first: TVar<unknown> }): object {
    return collectionOf(data.kind, data.first);
  }
}

type Maker = (first: TVar<unknown>) => object;

/** By kind: what makes the object of a collection from the variable that stands for it. */
const makers = new Map<number, Maker>();

export function registerKind(kind: number, make: Maker): void {
  makers.set(kind, make);
}

/** Throws `SEGMENT_CORRUPT`. */
export function collectionOf(kind: number, first: TVar<unknown>): object {
  const make = makers.get(kind);
  if (make === undefined) throw damaged('the kind');
  return make(first);
}
