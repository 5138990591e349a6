// One attempt of a transaction in this thread: it reads words of the space as they were at one moment, notes
// what it read, and keeps what it writes to itself until it commits (docs/design/stm.md). A thread has at most one.
// Long (over 400 lines), because everything that a part may have to undo is noted here.
// Not here: running the function again (atomically.ts), values (read-value.ts, write-value.ts).

import { CodedError, hasCode } from '../errors.js';
import { callNative } from '../native.js';
import { desk } from './desk.js';
import type { Space } from './space.js';
import type { Words } from './write-value.js';

/** Thrown to leave the function of a transaction. Code that catches it goes on in vain: the attempt is over. */
export const leave = new (class LeavesTransaction extends Error {
  override name = 'LeavesTransaction';
})('leaves a transaction: do not catch it');

/** A write of one object: its value in words, or its end. */
export interface Write extends Words {
  readonly at: number;
  readonly header: number;
  /** The place among the writes of the attempt. */
  readonly index: number;
  readonly owner: WriteOwner;
  /** The write of the same object that it replaces, which a part of the transaction that is undone brings back. */
  readonly before: Write | undefined;
  isFreed: boolean;
  /** True: its bytes are in a block already, which the attempt took for them. */
  isPlaced: boolean;
  /** True: a later write of the same object counts. */
  isReplaced: boolean;
}

/** An object of this thread that stands for one in the memory. */
export interface WriteOwner {
  /** Undoes a write of the attempt that runs. `before`: its write before that. */
  restore(before: Write | undefined): void;
}

/** An object of this thread for a variable that an attempt has made. */
export interface Made {
  /** The attempt, or its part, is undone: the memory of the variable is given back. */
  unmake(): void;
}

/** A state of an attempt to which it can go back. */
export interface Mark {
  readonly writes: number;
  readonly afterCommit: number;
  readonly taken: number;
  readonly retired: number;
  readonly made: number;
  readonly outer: number;
}

/** The end of an attempt that does not commit. */
export type Ending = 'conflict' | 'blocked';

/** Attempts of this thread so far: a number stands for one of them for good. */
let attempts = 0;
/**
 * Quarters of all versions that the clock has come to, as seen by transactions of this thread. The clock wraps: a
 * version that was seen four quarters ago may come again, with another value.
 */
let quarters = 0;
/** Commits between two tries to free memory. */
const commitsPerTidy = 64;
const forPause = new Int32Array(new SharedArrayBuffer(4));
/** Versions that differ in these bits are of different quarters. */
const quarterBits = 3 << 30;
/** Epochs after which no transaction sees what was retired in the first one. */
const epochsToFree = 4;

/** One for each thread. */
export class Attempt {
  readonly #space: Space;
  readonly #words: Int32Array;
  readonly #desk: Int32Array;
  readonly #readsAt: number;
  readonly #maxReads: number;
  /** A new one for each attempt: what an object noted in an older one is no more true. */
  number = 0;
  /** Set once it cannot commit any more, until it begins again. */
  ending: Ending | undefined;
  readonly writes: Write[] = [];
  readonly afterCommit: (() => void)[] = [];
  /** Blocks that this attempt took and that nothing refers to any more. */
  readonly #retired: number[] = [];
  /** Variables that exist once it has committed. */
  readonly #made: Made[] = [];
  /** Writes before this index are not changed any more: a mark may bring them back. */
  firstOpenWrite = 0;
  /** The result of `read`. */
  kind = 0;
  lo = 0;
  hi = 0;
  version = 0;
  /** The number of its quarter: what was made of a version in another one is no more true. */
  quarter = quarters;
  #snapshot = 0;
  #readCount = 0;
  /** Blocks that it took. */
  #takenCount = 0;
  #commits = 0;

  constructor(space: Space) {
    this.#space = space;
    this.#words = space.words;
    this.#desk = space.desk;
    this.#readsAt = space.at.deskReads;
    this.#maxReads = space.at.maxReads;
  }

  begin(): void {
    const { ownEpoch, epoch, clock } = this.#space.at;
    const words = this.#words;
    let announced = Atomics.load(words, epoch);
    for (;;) {
      Atomics.store(words, ownEpoch, announced);
      const now = Atomics.load(words, epoch);
      if (now === announced) break;
      announced = now;
    }
    const before = this.#snapshot;
    this.#snapshot = Atomics.load(words, clock);
    if (((before ^ this.#snapshot) & quarterBits) !== 0) this.#enterQuarter();
    this.#readCount = 0;
    this.#takenCount = 0;
    this.firstOpenWrite = 0;
    this.ending = undefined;
    attempts += 1;
    this.number = attempts;
  }

  #enterQuarter(): void {
    quarters += 1;
    this.quarter = quarters;
  }

  /** Ends it without an effect. */
  drop(): void {
    this.#unmake(0);
    this.giveBack(0);
    this.#leaveEpoch();
  }

  #leaveEpoch(): void {
    this.#takenCount = 0;
    // Setting the length would give the memory of the array away, which the next transaction takes again.
    while (this.writes.length > 0) this.writes.pop();
    while (this.afterCommit.length > 0) this.afterCommit.pop();
    while (this.#retired.length > 0) this.#retired.pop();
    while (this.#made.length > 0) this.#made.pop();
    const { ownEpoch } = this.#space.at;
    // Reads stay before this store also without the fence of an atomic one.
    if (isOrdered) this.#words[ownEpoch] = 0;
    else Atomics.store(this.#words, ownEpoch, 0);
  }

  /**
   * Reads the value of the object at `at`, whose header must be `header`, and notes it. Throws `STM_GONE`,
   * `STM_TOO_LARGE`, `STM_STUCK`, or `leave` on a conflict.
   */
  read(at: number, header: number): void {
    if (this.ending !== undefined) throw leave;
    const words = this.#words;
    for (;;) {
      const before = isOrdered ? (words[at] ?? 1) : Atomics.load(words, at);
      const kind = isOrdered ? (words[at + 1] ?? 0) : Atomics.load(words, at + 1);
      const lo = isOrdered ? (words[at + 2] ?? 0) : Atomics.load(words, at + 2);
      const hi = isOrdered ? (words[at + 3] ?? 0) : Atomics.load(words, at + 3);
      const found = isOrdered ? (words[at - 1] ?? 0) : Atomics.load(words, at - 1);
      const after = Atomics.load(words, at);
      if (before !== after || (before & 1) !== 0 || found !== header) {
        this.#await(at, header);
      } else if (((before - this.#snapshot) | 0) > 0) {
        this.#extend(at, before);
      } else {
        this.#note(at);
        this.kind = kind;
        this.lo = lo;
        this.hi = hi;
        this.version = before;
        return;
      }
    }
  }

  /** Reads an object that this attempt has made, which nobody else can change. */
  readMade(at: number): void {
    if (this.ending !== undefined) throw leave;
    this.kind = this.#words[at + 1] ?? 0;
    this.lo = this.#words[at + 2] ?? 0;
    this.hi = this.#words[at + 3] ?? 0;
    this.version = this.#words[at] ?? 0;
  }

  /** Notes a variable that ends where the attempt or its part is undone. */
  noteMade(made: Made): void {
    this.#made.push(made);
  }

  #unmake(kept: number): void {
    while (this.#made.length > kept) this.#made.pop()?.unmake();
  }

  /** Calls `work`, which takes memory before it writes: where it throws, what it took is given back. */
  guard<T>(work: () => T): T {
    const [writes, taken, made] = [this.writes.length, this.#takenCount, this.#made.length];
    try {
      return work();
    } catch (error) {
      if (this.writes.length === writes) {
        this.#unmake(made);
        this.giveBack(taken);
      }
      throw error;
    }
  }

  /** The write of the object at `at` that may be changed. `before`: its last one in this attempt. */
  writeOf(owner: WriteOwner, at: number, header: number, before: Write | undefined): Write {
    if (before !== undefined) {
      if (before.index >= this.firstOpenWrite) return before;
      before.isReplaced = true;
    }
    const write: Write = {
      at,
      header,
      index: this.writes.length,
      owner,
      before,
      isFreed: false,
      isPlaced: false,
      isReplaced: false,
      kind: 0,
      lo: 0,
      hi: 0,
      bytes: undefined,
    };
    this.writes.push(write);
    return write;
  }

  /** Throws `STM_GONE` for an object that was freed; for one that is written and was not read. */
  checkHeader(at: number, header: number): void {
    if (Atomics.load(this.#words, at - 1) === header) return;
    // The commit that has freed it may have changed what led here: then this attempt has read two moments.
    this.#showReads();
    if (!callNative(() => this.#space.native.extend())) throw this.end('conflict');
    throw gone();
  }

  /** Number of reads that are noted: the next one has this index. */
  get readCount(): number {
    return this.#readCount;
  }

  /** Removes a read: what it found may change until the commit. */
  dropRead(index: number): void {
    this.#readCount -= 1;
    const last = this.#desk[this.#readsAt + this.#readCount] ?? 0;
    this.#desk[this.#readsAt + index] = last;
  }

  #note(at: number): void {
    if (this.#readCount === this.#maxReads) {
      throw new CodedError(
        'STM_TOO_LARGE',
        `a transaction reads more than ${this.#maxReads} values: divide it`,
      );
    }
    this.#desk[this.#readsAt + this.#readCount] = at;
    this.#readCount += 1;
  }

  #await(at: number, header: number): void {
    this.checkHeader(at, header);
    callNative(() => this.#space.native.awaitObject(at));
  }

  /** Makes the snapshot one that an object of this version can belong to. */
  #extend(at: number, version: number): void {
    const { native } = this.#space;
    if (((version - Atomics.load(this.#words, this.#space.at.clock)) | 0) > 0) {
      callNative(() => native.awaitObject(at)); // a version from before the clock wrapped
    }
    this.#showReads();
    if (!callNative(() => native.extend())) throw this.end('conflict');
    this.#snapshot = this.#desk[desk.snapshot] ?? 0;
  }

  #showReads(): void {
    this.#desk[desk.snapshot] = this.#snapshot;
    this.#desk[desk.readCount] = this.#readCount;
  }

  /** Notes that it cannot commit; returns what is to be thrown. A `retry` after a conflict that was caught is in vain. */
  end(how: Ending): Error {
    if (this.ending !== 'conflict') this.ending = how;
    return leave;
  }

  /**
   * Takes memory for an object of a transaction; `isToFree`: of one that frees memory. Throws `SHARED_MEMORY_FULL`,
   * `STM_TOO_LARGE`.
   */
  take(words: number, isToFree = false): number {
    const take = isToFree ? this.#space.takeToFree : this.#space.take;
    try {
      const at = callNative(() => take(words));
      this.#takenCount += 1;
      return at;
    } catch (error) {
      throw hasCode(error, 'SHARED_MEMORY_FULL') ? full(this.#space, words) : error;
    }
  }

  /** Frees a block that this attempt took, and that nothing refers to any more, when it commits. */
  retire(at: number): void {
    this.#retired.push(at);
  }

  /**
   * Writes an object that nobody else can reach yet; returns its header. `owner`: the object that stands for the
   * collection that it is a part of; 0: it is no part of one.
   */
  initialise(at: number, value: Words, isRunning: boolean, owner: number): number {
    this.#placeBytes(value);
    this.#words[at - 2] = owner;
    this.#words[at + 1] = value.kind;
    this.#words[at + 2] = value.lo;
    this.#words[at + 3] = value.hi;
    const now = isRunning ? this.#snapshot : Atomics.load(this.#words, this.#space.at.clock);
    Atomics.store(this.#words, at, now);
    return this.#words[at - 1] ?? 0;
  }

  /** Puts the bytes of a value, if it has any, into an object of their own. */
  #placeBytes(value: Words, isToFree = false): void {
    const { bytes } = value;
    if (bytes === undefined) return;
    value.lo = this.take((bytes.length + 3) >> 2, isToFree);
    this.#space.bytes.set(bytes, value.lo * 4);
  }

  /** Keeps the memory that was taken outside of a transaction. */
  keep(): void {
    callNative(() => this.#space.native.keepTaken());
    this.#takenCount = 0;
  }

  /** The present state; `undo` or `merge` must follow. */
  mark(): Mark {
    const mark = {
      writes: this.writes.length,
      afterCommit: this.afterCommit.length,
      taken: this.#takenCount,
      retired: this.#retired.length,
      made: this.#made.length,
      outer: this.firstOpenWrite,
    };
    this.firstOpenWrite = mark.writes;
    return mark;
  }

  /** Goes back to a mark; the reads stay. */
  undo(mark: Mark): void {
    while (this.writes.length > mark.writes) {
      const write = this.writes.pop();
      if (write?.before !== undefined) write.before.isReplaced = false;
      write?.owner.restore(write.before);
    }
    this.afterCommit.length = mark.afterCommit;
    this.#retired.length = mark.retired;
    this.#unmake(mark.made);
    this.giveBack(mark.taken);
    this.firstOpenWrite = mark.outer;
  }

  /** Keeps what was done since a mark. */
  merge(mark: Mark): void {
    this.firstOpenWrite = mark.outer;
  }

  /** Gives back the memory of objects that were taken behind the first `kept`. */
  giveBack(kept: number): void {
    if (this.#takenCount === kept) return;
    callNative(() => this.#space.native.giveBack(kept));
    this.#takenCount = kept;
  }

  /** False: a conflict, without an effect. Throws `SHARED_MEMORY_FULL`, `STM_TOO_LARGE`, `STM_STUCK`. */
  tryCommit(): boolean {
    const { native } = this.#space;
    if (this.writes.length === 0) {
      if (this.#takenCount > 0) callNative(() => native.keepTaken());
      this.#leaveEpoch();
      return true;
    }
    this.#writeDesk();
    this.#showReads();
    if (callNative(this.#space.commit) === 0) return false;
    this.#leaveEpoch();
    this.#commits += 1;
    if (this.#commits % commitsPerTidy === 0) this.#tidy();
    return true;
  }

  /** Frees memory. It has committed: an error, as of a process that is stopped, must not hide that. */
  #tidy(): void {
    try {
      callNative(() => this.#space.native.tidy());
    } catch {
      // The next one tries again.
    }
  }

  /** Frees what this thread has retired, where the memory is full; between two attempts. */
  collect(): void {
    for (let epoch = 0; epoch < epochsToFree; epoch += 1) {
      this.#tidy();
      Atomics.wait(forPause, 0, 0, 1); // transactions of others end, and the next epoch begins
    }
  }

  #writeDesk(): void {
    const { deskWrites, maxWrites } = this.#space.at;
    let count = 0;
    let isToFree = false;
    for (const write of this.writes) {
      if (!write.isReplaced) {
        count += 1;
        isToFree ||= write.isFreed;
      }
      if (write.isPlaced && (write.isReplaced || write.isFreed)) this.retire(write.lo);
    }
    count += this.#retired.length;
    if (count > maxWrites) {
      throw new CodedError(
        'STM_TOO_LARGE',
        `a transaction writes ${count} values, at most ${maxWrites} can be: divide it`,
      );
    }
    let at = deskWrites;
    for (const write of this.writes) {
      if (write.isReplaced) continue;
      if (!write.isFreed) this.#placeBytes(write, isToFree);
      this.#desk[at] = write.at;
      this.#desk[at + 1] = write.header;
      this.#desk[at + 2] = write.kind;
      this.#desk[at + 3] = write.lo;
      this.#desk[at + 4] = write.hi;
      this.#desk[at + 5] = write.isFreed ? desk.frees : desk.sets;
      at += desk.writeWords;
    }
    for (const block of this.#retired) {
      this.#desk[at] = block;
      this.#desk[at + 5] = desk.retires;
      at += desk.writeWords;
    }
    this.#desk[desk.writeCount] = count;
  }

  /**
   * The objects that it has read, for a sleep until one changes; `undefined`: one has changed already. Called while
   * it is in its epoch: then the objects are what they were, and their headers are theirs.
   */
  readsToWatch(): Watched | undefined {
    this.#showReads();
    if (!callNative(() => this.#space.native.extend())) return undefined;
    const reads = this.#desk.slice(this.#readsAt, this.#readsAt + this.#readCount);
    const headers = reads.map((at) => Atomics.load(this.#words, at - 1));
    return { reads, headers, snapshot: this.#desk[desk.snapshot] ?? 0 };
  }
}

/** Objects, and a moment since which they are to change. */
export interface Watched {
  readonly reads: Int32Array;
  /** Headers of them: where one is new, its object has ended and its memory may hold anything. */
  readonly headers: Int32Array;
  readonly snapshot: number;
}

/** True: loads of this processor are never reordered with each other, nor with a store behind them. */
const isOrdered = process.arch === 'x64';

function full({ at }: Space, words: number): CodedError {
  const [mib, bytes] = [Math.round((at.sizeWords * 4) / 2 ** 20), words * 4];
  return new CodedError(
    'SHARED_MEMORY_FULL',
    `the transactional memory of ${mib} MiB has no room for ${bytes} bytes more: free() what is no longer needed, or ` +
      'keep large values elsewhere and their names here',
  );
}

export function gone(): CodedError {
  return new CodedError(
    'STM_GONE',
    'a TVar was freed: make another one, or free it once nothing uses it any more',
  );
}
