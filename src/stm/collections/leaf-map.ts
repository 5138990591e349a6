// A sorted map in transactional memory: a row of leaves, each under a variable. As in a B-link tree (Lehman, Yao 1981),
// a leaf has the key from which on the next one has the entries, so that a search may begin at any leaf before the
// right one. The levels above are hints: each thread remembers for itself where leaves begin.
//
// The first key that a leaf can have never changes while it lives, so a hint is right or its leaf has ended. What a
// search passes is therefore no read of the transaction: only the leaf that can have the key is.
// Long (over 400 lines): what a search passes and what counts as a read is to be seen in one place.
// Not here: the words of a leaf (leaf.ts), its variable (leaf-cell.ts), the methods of programs (sorted-map.ts).

import { hasCode } from '../../errors.js';
import type { Attempt } from '../attempt.js';
import { KIND_BYTES, KIND_OWN_TVAR } from '../kinds.js';
import { damaged } from '../read-value.js';
import {
  asStand,
  freeIn,
  nameOfVariable,
  partOf,
  type TVar,
  threadState,
  variableAt,
  variableOf,
} from '../tvar.js';
import type { TVarName, Words } from '../write-value.js';
import {
  type Entry,
  isBefore,
  type Key,
  Leaves,
  MAX_ENTRIES,
  MAX_INLINE_BYTES,
  MAX_KEY_UNITS,
  type Plan,
} from './leaf.js';
import { type Block, LeafCell } from './leaf-cell.js';

/** Bounds of a list of entries: from `from` on, before `to`. */
export interface Range<K> {
  readonly from?: K | undefined;
  readonly to?: K | undefined;
  /** Greatest number of entries. Default: all. */
  readonly limit?: number | undefined;
}

const noEntries: Range<never> = {};
const minPruneAt = 1024;
/** No key is behind it. */
const lastKey = '\uffff'.repeat(MAX_KEY_UNITS);

export class LeafMap {
  /** The variable of the first leaf, which stands for the map: it never ends before that. */
  readonly first: TVar<unknown>;
  readonly #leaves: Leaves;
  /** Leaves by their index. */
  readonly #cells = new Map<number, LeafCell>();
  /** Leaves whose first possible key is known, in order; that of `#hints[i]` is `#lows[i]`. */
  #hints: LeafCell[] = [];
  #lows: Key[] = [];
  readonly #start: LeafCell;
  /** Number of hints at which those of leaves that have ended are dropped. */
  #pruneAt = minPruneAt;
  /** The first possible key of the leaf that was found last; `undefined`: it is the first leaf. */
  #low: Key | undefined;

  constructor(first: TVar<unknown>) {
    this.first = first;
    this.#leaves = new Leaves(threadState().space);
    this.#start = this.#cellOf(nameOfVariable(first));
  }

  /** Makes the variable of an empty map. */
  static make(attempt: Attempt): TVar<unknown> {
    const block = placeEmpty(attempt, new Leaves(threadState().space));
    return asStand(variableOf(attempt, makeVariable(attempt, block, 0)));
  }

  get(attempt: Attempt, key: Key): unknown {
    const base = this.#find(attempt, key).load(attempt);
    const index = this.#leaves.find(base, key);
    return this.#leaves.has(base, index, key) ? this.#valueAt(base, index) : undefined;
  }

  has(attempt: Attempt, key: Key): boolean {
    const base = this.#find(attempt, key).load(attempt);
    return this.#leaves.has(base, this.#leaves.find(base, key), key);
  }

  #valueAt(base: number, index: number): unknown {
    if (this.#leaves.kind(base, index) === KIND_OWN_TVAR) return this.#ownAt(base, index).get();
    return this.#leaves.value(base, index, threadState().reader);
  }

  #ownAt(base: number, index: number): TVar<unknown> {
    return variableAt(this.#leaves.name(base, index));
  }

  /** Throws `STM_VALUE`, `STM_VALUE_TOO_LARGE`, `SHARED_MEMORY_FULL`. */
  set(attempt: Attempt, key: Key, given: unknown): void {
    const cell = this.#find(attempt, key);
    const base = cell.load(attempt);
    const at = this.#leaves.find(base, key);
    const isThere = this.#leaves.has(base, at, key);
    const isOwn = isThere && this.#leaves.kind(base, at) === KIND_OWN_TVAR;
    const words: Words = { kind: 0, lo: 0, hi: 0, bytes: undefined };
    threadState().writer.write(given, words);
    const isLarge = (words.bytes?.length ?? 0) > MAX_INLINE_BYTES;
    if (isOwn) {
      const own = this.#ownAt(base, at);
      if (isLarge) {
        own.set(given);
        return;
      }
      own.get(); // may find a conflict, before anything is changed
    }
    const value = isLarge ? this.#ownTVar(given) : words;
    this.#put(attempt, cell, base, at, isThere, { key, value });
    if (isOwn) freeIn(attempt, this.#ownAt(base, at));
  }

  /** A value of its own TVar, which holds `given`. */
  #ownTVar(given: unknown): Words {
    const { at, header } = nameOfVariable(partOf(this.first, given));
    return { kind: KIND_OWN_TVAR, lo: at, hi: header, bytes: undefined };
  }

  #put(
    attempt: Attempt,
    cell: LeafCell,
    base: number,
    at: number,
    isThere: boolean,
    entry: Entry,
  ): void {
    const leaves = this.#leaves;
    const count = leaves.count(base);
    const next = leaves.next(base);
    const high = next && leaves.high(base);
    const rest = at + (isThere ? 1 : 0);
    if (isThere || count < MAX_ENTRIES) {
      const plan = { of: base, before: [0, at], entry, after: [rest, count], next, high } as const;
      cell.set(attempt, this.#place(attempt, plan));
      return;
    }
    // Keys that only grow fill each leaf.
    const middle = at === count && next === undefined ? count : count >> 1;
    const isLeft = at <= middle && middle < count;
    const right = this.#place(
      attempt,
      isLeft
        ? { of: base, before: [middle, count], next, high }
        : { of: base, before: [middle, at], entry, after: [at, count], next, high },
    );
    const made = this.#makeCell(attempt, right);
    const split = middle < count ? leaves.key(base, middle) : entry.key;
    const left: Plan = isLeft
      ? { of: base, before: [0, at], entry, after: [at, middle], next: made, high: split }
      : { of: base, before: [0, middle], next: made, high: split };
    cell.set(attempt, this.#place(attempt, left));
  }

  #place(attempt: Attempt, plan: Plan, isToFree = false): Block {
    return place(attempt, this.#leaves, plan, isToFree);
  }

  #makeCell(attempt: Attempt, block: Block): LeafCell {
    const cell = this.#cellOf(makeVariable(attempt, block, this.#start.at));
    cell.begin(attempt, block.base);
    return cell;
  }

  /** False: there is no such key. */
  delete(attempt: Attempt, key: Key): boolean {
    const leaves = this.#leaves;
    const cell = this.#find(attempt, key);
    const low = this.#low;
    const base = cell.load(attempt);
    const at = leaves.find(base, key);
    if (!leaves.has(base, at, key)) return false;
    const own = leaves.kind(base, at) === KIND_OWN_TVAR ? this.#ownAt(base, at) : undefined;
    own?.get();
    const count = leaves.count(base);
    const next = leaves.next(base);
    const high = next && leaves.high(base);
    if (count === 1 && low !== undefined) this.#unlink(attempt, cell, low, next, high);
    else {
      const plan = { of: base, before: [0, at], after: [at + 1, count], next, high } as const;
      cell.set(attempt, this.#place(attempt, plan, true));
    }
    if (own !== undefined) freeIn(attempt, own);
    return true;
  }

  /** Takes a leaf that has become empty out of the row: the one before it gets its keys. */
  #unlink(
    attempt: Attempt,
    cell: LeafCell,
    low: Key,
    next: TVarName | undefined,
    high: Key | undefined,
  ): void {
    const before = this.#before(attempt, cell, low);
    const of = before.load(attempt);
    const range = [0, this.#leaves.count(of)] as const;
    before.set(attempt, this.#place(attempt, { of, before: range, next, high }, true));
    cell.end(attempt);
  }

  /** Entries in the order of their keys. */
  entries(
    attempt: Attempt,
    { from, to, limit = Infinity }: Range<Key> = noEntries,
  ): [Key, unknown][] {
    const leaves = this.#leaves;
    const found: [Key, unknown][] = [];
    let cell = from === undefined ? this.#start : this.#find(attempt, from);
    let low = from === undefined ? undefined : this.#low;
    for (let first = from; ; first = undefined) {
      const base = cell.load(attempt);
      const count = leaves.count(base);
      for (let at = first === undefined ? 0 : leaves.find(base, first); at < count; at += 1) {
        const key = leaves.key(base, at);
        if (found.length >= limit || (to !== undefined && !isBefore(key, to))) return found;
        found.push([key, this.#valueAt(base, at)]);
      }
      const next = leaves.next(base);
      if (next === undefined) return found;
      low = this.#behind(base, low);
      cell = this.#cellOf(next);
    }
  }

  /** The same from the last one to the first one. */
  entriesBackwards(attempt: Attempt, { from, to, limit = Infinity }: Range<Key>): [Key, unknown][] {
    const leaves = this.#leaves;
    const found: [Key, unknown][] = [];
    let cell = this.#find(attempt, to ?? lastKey);
    for (let end = to; ; end = undefined) {
      const low = this.#low;
      const base = cell.load(attempt);
      const count = end === undefined ? leaves.count(base) : leaves.find(base, end);
      for (let at = count - 1; at >= 0; at -= 1) {
        const key = leaves.key(base, at);
        if (found.length >= limit || (from !== undefined && isBefore(key, from))) return found;
        found.push([key, this.#valueAt(base, at)]);
      }
      if (low === undefined || (from !== undefined && !isBefore(from, low))) return found;
      cell = this.#before(attempt, cell, low);
    }
  }

  /** The leaf before one whose first possible key is `low`. */
  #before(attempt: Attempt, { at }: LeafCell, low: Key): LeafCell {
    const found = this.#search(attempt, low, (base) => this.#leaves.next(base)?.at === at);
    if (this.#low !== undefined && !isBefore(this.#low, low)) throw damaged('a row of leaves');
    return found;
  }

  /** Number of entries. It reads all leaves. */
  size(attempt: Attempt): number {
    let size = 0;
    for (const cell of this.#row(attempt)) size += this.#leaves.count(cell.load(attempt));
    return size;
  }

  /** The first possible key of the next leaf, which is behind `low`, that of this one. */
  #behind(base: number, low: Key | undefined): Key {
    const high = this.#leaves.high(base);
    if (low !== undefined && !isBefore(low, high)) throw damaged('a row of leaves'); // it leads back
    return high;
  }

  *#row(attempt: Attempt): Iterable<LeafCell> {
    let cell = this.#start;
    for (let low: Key | undefined; ; ) {
      const base = cell.load(attempt);
      const next = this.#leaves.next(base);
      yield cell;
      if (next === undefined) return;
      low = this.#behind(base, low);
      cell = this.#cellOf(next);
    }
  }

  /** Removes all entries. */
  clear(attempt: Attempt): void {
    const empty = placeEmpty(attempt, this.#leaves, true);
    this.#endAll(attempt);
    this.#start.set(attempt, empty);
    this.#hints = [];
    this.#lows = [];
  }

  /** Ends the map. */
  free(attempt: Attempt): void {
    this.#endAll(attempt);
    this.#start.end(attempt);
  }

  #endAll(attempt: Attempt): void {
    for (const cell of [...this.#row(attempt)]) {
      const base = cell.load(attempt);
      for (let at = this.#leaves.count(base) - 1; at >= 0; at -= 1) {
        if (this.#leaves.kind(base, at) === KIND_OWN_TVAR) freeIn(attempt, this.#ownAt(base, at));
      }
      if (cell !== this.#start) cell.end(attempt);
    }
  }

  /** The leaf that can have `key`. It alone of the row is a read of the attempt. */
  #find(attempt: Attempt, key: Key): LeafCell {
    if (attempt.ending !== undefined) throw attempt.end(attempt.ending);
    return this.#search(attempt, key, undefined);
  }

  /** The leaf that can have `key`; with `isFound`, one before it. */
  #search(attempt: Attempt, key: Key, isFound: ((base: number) => boolean) | undefined): LeafCell {
    for (;;) {
      const index = this.#hintFor(key, isFound !== undefined);
      const hint = this.#hints[index] ?? this.#start;
      this.#low = this.#lows[index];
      try {
        return this.#walk(attempt, hint, key, isFound);
      } catch (error) {
        if (attempt.ending !== undefined || index < 0 || !hasCode(error, 'STM_GONE')) throw error;
        this.#prune();
        const at = this.#hints.indexOf(hint); // one that this attempt has ended is alive for others
        if (at >= 0) {
          this.#hints.splice(at, 1);
          this.#lows.splice(at, 1);
        }
      }
    }
  }

  #walk(
    attempt: Attempt,
    from: LeafCell,
    key: Key,
    isFound: ((base: number) => boolean) | undefined,
  ): LeafCell {
    const leaves = this.#leaves;
    const readAt = attempt.readCount;
    let cell = from;
    let base = cell.load(attempt);
    while (isFound === undefined ? leaves.isBeyond(base, key) : !isFound(base)) {
      const name = leaves.next(base);
      if (name === undefined) throw damaged('a row of leaves');
      const next = this.#cellOf(name);
      const high = this.#behind(base, this.#low);
      const isNewRead = attempt.readCount > readAt;
      const isOwn = cell.isOwn(attempt);
      base = next.load(attempt);
      if (!isOwn) this.#addHint(high, next);
      if (isNewRead) cell.dropRead(attempt, readAt);
      this.#low = high;
      cell = next;
    }
    return cell;
  }

  /** The last hint for keys up to `key`, or before it; -1: the first leaf. */
  #hintFor(key: Key, isBelow: boolean): number {
    let low = 0;
    let high = this.#lows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const start = this.#lows[middle] ?? key;
      if (isBelow ? isBefore(start, key) : !isBefore(key, start)) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  #addHint(low: Key, cell: LeafCell): void {
    const index = this.#hintFor(low, false);
    if (this.#lows[index] === low) this.#hints[index] = cell;
    else {
      this.#lows.splice(index + 1, 0, low);
      this.#hints.splice(index + 1, 0, cell);
    }
    if (this.#hints.length >= this.#pruneAt) this.#prune();
  }

  /** Drops leaves that have ended: keys that only grow leave many behind, which no search meets again. */
  #prune(): void {
    const { words } = threadState().space;
    const isAlive = ({ at, header }: LeafCell): boolean => words[at - 1] === header;
    // Asked once for each: another process may end a leaf meanwhile, and the two lists belong together.
    const alive = this.#hints.map(isAlive);
    this.#lows = this.#lows.filter((_, index) => alive[index]);
    this.#hints = this.#hints.filter((_, index) => alive[index]);
    for (const [at, cell] of this.#cells) if (!isAlive(cell)) this.#cells.delete(at);
    this.#pruneAt = Math.max(minPruneAt, 2 * this.#hints.length);
  }

  #cellOf(name: TVarName): LeafCell {
    const known = this.#cells.get(name.at);
    if (known !== undefined && known.header === name.header) return known;
    const cell = new LeafCell(name);
    this.#cells.set(name.at, cell);
    return cell;
  }
}

/** Makes a variable of a leaf, which nobody else sees yet. */
function makeVariable(attempt: Attempt, { base, words }: Block, owner: number): TVarName {
  const at = attempt.take(4);
  const value = { kind: KIND_BYTES, lo: base, hi: 4 * words, bytes: undefined };
  return { at, header: attempt.initialise(at, value, true, owner) };
}

function placeEmpty(attempt: Attempt, leaves: Leaves, isToFree = false): Block {
  const plan = { of: 0, before: [0, 0], next: undefined, high: undefined } as const;
  return place(attempt, leaves, plan, isToFree);
}

/** Writes a leaf into a block of its own. `isToFree`: it has less than the one before. */
function place(attempt: Attempt, leaves: Leaves, plan: Plan, isToFree: boolean): Block {
  const { words, bytes } = leaves.size(plan);
  const base = attempt.take(words, isToFree);
  leaves.write(base, plan, bytes);
  return { base, words };
}
