// The transactional memory of a program without the native core: its threads share it, and other processes do not.
// Here is the memory itself, the turn in which one thread at a time changes it, and the end of a thread.
// Not here: transactions (stm/threads/).

import { getEnvironmentData, setEnvironmentData, threadId } from 'node:worker_threads';
import { CodedError } from '../../errors.js';
import { nowMs } from '../../lib/index.js';
import { transactionSettings } from './transaction-settings.js';

/** The data of the environment that each thread gets from the one that starts it: the memory, or false: none. */
const environmentKey = 'manycore transactions';

/** Words of the memory. */
export const threadWord = {
  id: 1,
  /** The thread that may change the memory; 0: any. */
  turn: 2,
  numbers: 3,
  /** 1: the thread that has the turn is writing a commit. */
  committing: 11,
  /** The first of the participants. */
  participants: 256,
} as const;

/** Words of one participant. */
export const participantWord = {
  /** The number of its thread and 1; 0: none. Below 0: its parent ends it. */
  thread: 0,
  /** The epoch in which its transaction began; 0: in none. */
  epoch: 1,
  count: 2,
} as const;

export const maxParticipants = 1024;
/** Tries before a wait sleeps. */
const spins = 100;

/** Refuses the memory to this process and its threads: it is one of several that a program has started. */
export function refuseThreadSpace(): void {
  setEnvironmentData(environmentKey, false);
}

/**
 * The memory that this thread shares with others, made if there is none; `undefined`: it may have none. Throws
 * `SHARED_MEMORY_FULL`, `OPTION_INVALID`.
 */
export function threadSpace(): Int32Array | undefined {
  const found = getEnvironmentData(environmentKey);
  if (found === false) return undefined;
  if (found instanceof SharedArrayBuffer) return new Int32Array(found);
  const { memoryBytes } = transactionSettings();
  const made = allocate(memoryBytes);
  setEnvironmentData(environmentKey, made);
  return new Int32Array(made);
}

function allocate(sizeBytes: number): SharedArrayBuffer {
  try {
    return new SharedArrayBuffer(sizeBytes);
  } catch (error) {
    throw new CodedError(
      'SHARED_MEMORY_FULL',
      `the system has no room for a transactional memory of ${sizeBytes / 2 ** 20} MiB: set MANYCORE_STM_MEMORY_MIB`,
      { cause: error },
    );
  }
}

/** The number of a participant for this thread. Throws `STM_CROWDED`, `STM_STUCK`. */
export function takeNumber(words: Int32Array): number {
  takeTurn(words);
  try {
    if (isMarked(words)) park(words);
    const number = freeNumber(words);
    if (number !== undefined) {
      occupy(words, number, threadId + 1);
      return number;
    }
  } finally {
    endTurn(words);
  }
  throw new CodedError(
    'STM_CROWDED',
    `${maxParticipants} threads make transactions already, and no more can: end some workers`,
  );
}

function freeNumber(words: Int32Array): number | undefined {
  for (let number = 0; number < maxParticipants; number += 1) {
    if (words[placeOf(number) + participantWord.thread] === 0) return number;
  }
  return undefined;
}

/** Writes `owner` into the place of a participant; its thread has the turn. */
function occupy(words: Int32Array, number: number, owner: number): void {
  Atomics.store(words, placeOf(number) + participantWord.thread, owner);
  const numbers = Math.max(Atomics.load(words, threadWord.numbers), number + 1);
  Atomics.store(words, threadWord.numbers, numbers);
}

/** The place of a participant. */
export function placeOf(number: number): number {
  return threadWord.participants + number * participantWord.count;
}

/** Waits until this thread alone may change the memory, until `endTurn`. Throws `STM_STUCK`. */
export function takeTurn(words: Int32Array): void {
  const mine = threadId + 1;
  let waitsFor = 0;
  let deadline = 0;
  for (let tries = 0; ; tries += 1) {
    const holder = Atomics.compareExchange(words, threadWord.turn, 0, mine);
    if (holder === 0) return;
    if (tries < spins) continue;
    if (holder !== waitsFor) {
      waitsFor = holder;
      deadline = nowMs() + transactionSettings().patienceMs;
    }
    if (nowMs() > deadline) throw stuck(holder - 1);
    Atomics.wait(words, threadWord.turn, holder, 1);
  }
}

/** Lets the next thread have the turn. */
export function endTurn(words: Int32Array): void {
  Atomics.store(words, threadWord.turn, 0);
  Atomics.notify(words, threadWord.turn, 1);
}

/** `thread`: its number, where it is known. */
export function stuck(thread?: number): CodedError {
  return new CodedError(
    'STM_STUCK',
    `${thread === undefined ? 'a thread' : `thread ${thread}`} has stopped or ended in the middle of a commit: end threads by their pool, or start again`,
  );
}

/**
 * Keeps a thread that its parent is about to end from changing the memory: it cannot end in the middle of that. Its
 * place is marked, or a free one where it has none yet.
 */
export function beforeThreadEnds(thread: number): void {
  const words = knownSpace();
  if (words === undefined) return;
  try {
    takeTurn(words);
  } catch {
    return; // it has stopped in its turn: whoever waits for it gets the error
  }
  // A parent that is itself about to end changes nothing.
  if (!isMarked(words)) mark(words, thread);
  endTurn(words);
}

/** Marks the place of a thread, which may leave it meanwhile, or a free one. */
function mark(words: Int32Array, thread: number): void {
  const at = placeOfThread(words, thread);
  if (at !== undefined) {
    Atomics.compareExchange(words, at + participantWord.thread, thread + 1, -1 - thread);
    return;
  }
  const number = freeNumber(words);
  if (number !== undefined) occupy(words, number, -1 - thread);
}

/** True: the parent of this participant's thread ends it. */
export function isEnding(words: Int32Array, number: number): boolean {
  return Atomics.load(words, placeOf(number) + participantWord.thread) < 0;
}

function isMarked(words: Int32Array): boolean {
  const at = placeOfThread(words, threadId);
  return at !== undefined && Atomics.load(words, at + participantWord.thread) < 0;
}

/** Waits for the end of this thread; it has the turn, and gives it back. */
export function park(words: Int32Array): void {
  endTurn(words);
  Atomics.wait(words, 0, 0);
}

/** Frees the number of a thread that has ended, and its turn, unless it was writing a commit. */
export function afterThreadEnds(thread: number): void {
  const words = knownSpace();
  if (words === undefined) return;
  const at = placeOfThread(words, thread);
  if (at !== undefined) {
    Atomics.store(words, at + participantWord.epoch, 0);
    Atomics.store(words, at + participantWord.thread, 0);
  }
  // The heap of a thread may be exhausted anywhere.
  if (Atomics.load(words, threadWord.committing) === 0) {
    Atomics.compareExchange(words, threadWord.turn, thread + 1, 0);
  }
}

/** Frees the number of this thread. One that is marked stays marked until the thread has ended. */
export function leaveNumber(words: Int32Array, number: number): void {
  const at = placeOf(number);
  Atomics.store(words, at + participantWord.epoch, 0);
  Atomics.compareExchange(words, at + participantWord.thread, threadId + 1, 0);
}

/** The memory, if this thread has one. */
function knownSpace(): Int32Array | undefined {
  const found = getEnvironmentData(environmentKey);
  return found instanceof SharedArrayBuffer ? new Int32Array(found) : undefined;
}

function placeOfThread(words: Int32Array, thread: number): number | undefined {
  const numbers = Atomics.load(words, threadWord.numbers);
  for (let number = 0; number < numbers; number += 1) {
    const at = placeOf(number);
    const found = Atomics.load(words, at + participantWord.thread);
    if (found === thread + 1 || found === -1 - thread) return at;
  }
  return undefined;
}
