// Transactional memory without the native core, for the threads of one process: what `NativeTransactions` does, in
// JavaScript. One thread at a time commits, takes or frees memory; reads go on beside it, by the same versions.
// A simple way, for development where the core is missing: no thread undoes or completes the commit of another.
// Not here: the memory and the turns of its threads (worker/both/thread-space.ts), the protocol of the core
// (crates/core/src/stm/).

import { CodedError } from '../../errors.js';
import { setImmediate } from '../../lib/index.js';
import type { NativeTransactions } from '../../native.js';
import {
  isEnding,
  leaveNumber,
  park,
  participantWord,
  placeOf,
  stuck,
  takeNumber,
  takeTurn,
  threadWord,
} from '../../worker/index.js';
import { desk } from '../desk.js';
import { KIND_BYTES } from '../kinds.js';
import { Blocks } from './blocks.js';
import { generation, headerWords, limbos, word } from './layout.js';

/** The limits of the native core (crates/node/src/desk.rs). */
const maxReads = 2 ** 22;
const maxWrites = 16_384;
const deskReads = 8;
const deskWrites = deskReads + maxReads;
/** Words at the end of the heap for transactions that free memory. */
const reserveWords = 2 ** 17;
/** The longest time for which a serial transaction holds the others up, in ms. */
const serialMs = 100;
/** The age from which on versions cannot be compared with a snapshot: the clock wraps. */
const oldAge = 2 ** 30;
/** A lock that is held: versions are even. */
const held = 1;

export class ThreadTransactions implements NativeTransactions {
  readonly #words: Int32Array;
  readonly #blocks: Blocks;
  readonly #desk = new Int32Array(deskWrites + maxWrites * desk.writeWords);
  readonly #number: number;
  readonly #onWake: () => void;
  readonly #close = (): void => this.close();
  /** Objects that the transaction took. */
  readonly #taken: number[] = [];
  /** Objects that it gave back, and that are free with the next turn. */
  readonly #givenBack: number[] = [];
  #sleepers = 0;
  #isWaiting = false;
  #isClosed = false;

  /** `id`: a number for the memory, if this is its first participant. Throws `STM_CROWDED`, `STM_STUCK`. */
  constructor(words: Int32Array, id: number, onWake: () => void) {
    this.#words = words;
    this.#blocks = new Blocks(words);
    this.#onWake = onWake;
    Atomics.compareExchange(words, threadWord.id, 0, id);
    Atomics.compareExchange(words, word.epoch, 0, 1);
    Atomics.compareExchange(words, word.heapTop, 0, word.heap);
    this.#number = takeNumber(words);
    process.once('exit', this.#close);
  }

  words(): ArrayBufferLike {
    return this.#words.buffer;
  }

  desk(): ArrayBufferLike {
    return this.#desk.buffer;
  }

  places(): number[] {
    return [
      Atomics.load(this.#words, threadWord.id),
      placeOf(this.#number) + participantWord.epoch,
      word.epoch,
      word.clock,
      word.root,
      word.heap,
      this.#words.length,
      KIND_BYTES,
      deskReads,
      maxReads,
      deskWrites,
      maxWrites,
    ];
  }

  /** Calls `work` while no other thread changes the memory. Throws `STM_STUCK`. */
  #inTurn<T>(work: () => T): T {
    const words = this.#words;
    if (this.#isClosed) throw new CodedError('STM_GONE', 'this thread has left the memory');
    takeTurn(words);
    try {
      // The parent that ends this thread waits for no turn of it that comes later.
      if (isEnding(words, this.#number)) park(words);
      return work();
    } finally {
      // `endTurn` without its call, for which the stack may have no room.
      Atomics.store(words, threadWord.turn, 0);
      Atomics.notify(words, threadWord.turn, 1);
    }
  }

  taker(): (size: number) => number {
    return (size) => this.#inTurn(() => this.#take(size, reserveWords));
  }

  takerToFree(): (size: number) => number {
    return (size) => this.#inTurn(() => this.#take(size, 0));
  }

  #take(size: number, kept: number): number {
    const object = this.#blocks.take(size, kept);
    this.#taken.push(object);
    return object;
  }

  keepTaken(): void {
    this.#taken.length = 0;
  }

  giveBack(kept: number): void {
    while (this.#taken.length > kept) this.#givenBack.push(this.#taken.pop() ?? 0);
    if (this.#givenBack.length === 0) return;
    this.#inTurn(() => {
      while (this.#givenBack.length > 0) {
        const object = this.#givenBack.pop() ?? 0;
        // Handles that left the transaction fit no later object here.
        this.#words[object - 1] = (this.#words[object - 1] ?? 0) + generation;
        this.#blocks.free(object);
      }
    });
  }

  committer(): () => number {
    return () => {
      this.#awaitSerial();
      const isCommitted = this.#inTurn(() => {
        const isSound = this.#isUnchanged() && this.#hasHeaders();
        if (isSound) {
          this.#commit();
          this.#wake();
        }
        return isSound;
      });
      Atomics.add(this.#words, isCommitted ? word.commits : word.conflicts, 1);
      if (!isCommitted) return 0;
      this.#taken.length = 0;
      return 1;
    };
  }

  /** Wakes those that sleep; in the turn of the commit, so that no end of this thread comes between. */
  #wake(): void {
    if (Atomics.exchange(this.#words, word.watched, 0) === 0) return;
    Atomics.add(this.#words, word.bell, 1);
    Atomics.notify(this.#words, word.bell);
  }

  /** True: nothing that the desk has as read has changed since its snapshot, which is not too old to say so. */
  #isUnchanged(): boolean {
    const snapshot = this.#desk[desk.snapshot] ?? 0;
    if ((Atomics.load(this.#words, word.clock) - snapshot) >>> 0 >= oldAge) return false;
    const end = deskReads + (this.#desk[desk.readCount] ?? 0);
    for (let at = deskReads; at < end; at += 1) {
      const version = Atomics.load(this.#words, this.#desk[at] ?? 0);
      if ((version & held) !== 0 || ((version - snapshot) | 0) > 0) return false;
    }
    return true;
  }

  /** True: what is to be written is what it was. Throws `STM_STUCK`. */
  #hasHeaders(): boolean {
    const words = this.#words;
    const end = deskWrites + (this.#desk[desk.writeCount] ?? 0) * desk.writeWords;
    for (let at = deskWrites; at < end; at += desk.writeWords) {
      if (this.#desk[at + 5] === desk.retires) continue;
      const object = this.#desk[at] ?? 0;
      if (words[object - 1] !== this.#desk[at + 1]) return false;
      if (((words[object] ?? 0) & held) !== 0) throw stuck();
    }
    return true;
  }

  /**
   * Writes what the desk has. It calls nothing that could throw: it is whole, or did not begin. Atomic stores, so
   * that a reader that sees a value sees its lock taken.
   */
  #commit(): void {
    const [words, notes] = [this.#words, this.#desk];
    const version = ((words[word.clock] ?? 0) + 2) | 0;
    const end = deskWrites + (notes[desk.writeCount] ?? 0) * desk.writeWords;
    const limbo = word.limbo + (((words[word.epoch] ?? 0) >>> 1) % limbos);
    Atomics.store(words, threadWord.committing, 1);
    for (let at = deskWrites; at < end; at += desk.writeWords) {
      if (notes[at + 5] !== desk.retires) Atomics.store(words, notes[at] ?? 0, held);
    }
    Atomics.store(words, word.clock, version);
    for (let at = deskWrites; at < end; at += desk.writeWords) {
      const object = notes[at] ?? 0;
      if (notes[at + 5] !== desk.retires && words[object + 1] === KIND_BYTES) {
        const bytes = words[object + 2] ?? 0;
        words[bytes - headerWords] = words[limbo] ?? 0;
        words[limbo] = bytes;
      }
      if (notes[at + 5] === desk.frees) {
        Atomics.store(words, object - 1, (words[object - 1] ?? 0) + generation);
      } else if (notes[at + 5] === desk.sets) {
        Atomics.store(words, object + 1, notes[at + 2] ?? 0);
        Atomics.store(words, object + 2, notes[at + 3] ?? 0);
        Atomics.store(words, object + 3, notes[at + 4] ?? 0);
      }
      if (notes[at + 5] !== desk.sets) {
        words[object - headerWords] = words[limbo] ?? 0;
        words[limbo] = object;
      }
    }
    for (let at = deskWrites; at < end; at += desk.writeWords) {
      if (notes[at + 5] !== desk.retires) Atomics.store(words, notes[at] ?? 0, version);
    }
    Atomics.store(words, threadWord.committing, 0);
    notes[desk.snapshot] = version;
  }

  extend(): boolean {
    const now = Atomics.load(this.#words, word.clock);
    const isExtended = this.#isUnchanged();
    if (isExtended) this.#desk[desk.snapshot] = now;
    else Atomics.add(this.#words, word.conflicts, 1);
    return isExtended;
  }

  awaitObject(lock: number): void {
    this.#inTurn(() => {
      const [words, now] = [this.#words, Atomics.load(this.#words, word.clock)];
      const version = Atomics.load(words, lock);
      if ((version & held) !== 0) throw stuck();
      // A version from before the clock wrapped would be a future one for ever.
      if (((version - now) | 0) > 0) Atomics.store(words, lock, now);
    });
  }

  watch(): boolean {
    Atomics.store(this.#words, word.watched, 1);
    return this.#isUnchanged();
  }

  beginSleep(): void {
    Atomics.add(this.#words, word.sleeps, 1);
    this.#sleepers += 1;
    this.#awaitBell();
  }

  endSleep(): void {
    this.#sleepers -= 1;
  }

  /** Calls `onWake` after the next change of something that is watched, for as long as this thread sleeps. */
  #awaitBell(): void {
    if (this.#isWaiting || this.#sleepers === 0 || this.#isClosed) return;
    const bell = Atomics.load(this.#words, word.bell);
    const { async: isAsync, value } = Atomics.waitAsync(this.#words, word.bell, bell);
    const wake = (): void => {
      this.#isWaiting = false;
      if (this.#sleepers === 0 || this.#isClosed) return;
      this.#awaitBell();
      this.#onWake();
    };
    this.#isWaiting = true;
    if (isAsync) void value.then(wake);
    else setImmediate(wake);
  }

  takeWake(): void {}

  beginSerial(): boolean {
    return Atomics.compareExchange(this.#words, word.serial, 0, this.#number + 1) === 0;
  }

  endSerial(): void {
    Atomics.compareExchange(this.#words, word.serial, this.#number + 1, 0);
    Atomics.notify(this.#words, word.serial);
  }

  #awaitSerial(): void {
    const serial = Atomics.load(this.#words, word.serial);
    if (serial === 0 || serial === this.#number + 1) return;
    const result = Atomics.wait(this.#words, word.serial, serial, serialMs);
    // It takes too long, or its thread has ended.
    if (result === 'timed-out') Atomics.compareExchange(this.#words, word.serial, serial, 0);
  }

  figures(): number[] {
    const words = this.#words;
    let threads = 0;
    for (let number = 0; number < (words[threadWord.numbers] ?? 0); number += 1) {
      if (words[placeOf(number) + participantWord.thread] !== 0) threads += 1;
    }
    const [commits = 0, conflicts = 0, sleeps = 0] = [
      word.commits,
      word.conflicts,
      word.sleeps,
    ].map((at) => (words[at] ?? 0) >>> 0);
    // Nothing is undone or completed by others.
    return [threads, (words[word.heapTop] ?? 0) - word.heap, commits, conflicts, 0, 0, sleeps];
  }

  contended(): number[] {
    return [];
  }

  tidy(): void {
    this.#inTurn(() => this.#blocks.reclaim());
  }

  close(): void {
    if (this.#isClosed) return;
    try {
      this.giveBack(0);
    } catch {
      // A thread has stopped in its turn: the objects that this one took are lost.
    }
    this.#isClosed = true;
    process.off('exit', this.#close);
    leaveNumber(this.#words, this.#number);
  }
}
