// The classes of one payload: which copies that are here already stay and take newer parts over, and which
// must be made anew. Also the values to write into them once everything is in its place.
// Not here: evaluating their texts (decode.ts), what cannot be taken over (closed.ts).

import { listAt, numberAt, type Payload } from '../protocol.js';
import type { AnyFunction } from '../types.js';
import { ClosedClasses } from './closed.js';
import type { Memory } from './peer-memory.js';
import type { Instance } from './recreate.js';

/** Newer than any version: a class that is ours, or was proved constant, is not changed by a peer. */
export const never = Number.POSITIVE_INFINITY;

export class ClassCopies {
  readonly #payload: Payload;
  readonly #memory: Memory;
  readonly #closed: ClosedClasses;
  readonly #versions: { fn: AnyFunction; version: number }[] = [];
  readonly #privates: { instance: Instance; values: readonly unknown[] }[] = [];
  /** Classes that were here before and had to be made anew. */
  readonly #remade = new Set<unknown>();

  constructor(payload: Payload, values: readonly unknown[], memory: Memory) {
    this.#payload = payload;
    this.#memory = memory;
    this.#closed = new ClosedClasses(payload, values);
  }

  /**
   * True: the copy `known` can become what the special at `index` states. `above`: the class that it extends,
   * if any.
   */
  canStay(index: number, known: AnyFunction, above: readonly unknown[] | undefined): boolean {
    const codeId = numberAt(this.#payload.specials[index] ?? [], 1);
    return !(
      (above !== undefined && this.#remade.has(above[0])) ||
      // It may extend an import in one call, and a copy of that import in the next (roads.ts).
      (above !== undefined && Object.getPrototypeOf(known) !== above[0]) ||
      // A global of the program that was missing is a slot now.
      !this.#memory.hasCode(known, codeId) ||
      this.#closed.has(index, known, this.#memory.versionOf(known))
    );
  }

  /** Applies the parts of `entry` that are newer than version `has` to `known`. */
  update(known: AnyFunction, instance: Instance, entry: readonly unknown[], has: number): void {
    if (numberAt(entry, 8) > has) this.#addPrivates(instance, entry);
    this.#versions.push({ fn: known, version: numberAt(entry, 6) });
  }

  /** Adds `made`, which was evaluated for `entry`; `isRemade`: it replaces another copy. */
  add(made: AnyFunction, instance: Instance, entry: readonly unknown[], isRemade: boolean): void {
    this.#addPrivates(instance, entry);
    this.#versions.push({ fn: made, version: numberAt(entry, 6) });
    if (isRemade) this.#remade.add(made);
  }

  #addPrivates(instance: Instance, entry: readonly unknown[]): void {
    const values = listAt(entry, 7, this.#payload.maxElements);
    this.#privates.push({ instance, values });
  }

  /** Sets the private statics: once when they are made, and again when their parts are. */
  fillPrivates(): void {
    for (const { instance, values } of this.#privates) instance.fillPrivates(values);
  }

  /** Records the versions that the copies now have. */
  noteVersions(): void {
    for (const { fn, version } of this.#versions) this.#memory.setVersion(fn, version);
  }
}
