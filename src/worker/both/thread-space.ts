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

/** The memory that this thread shares with others, made if there is none; `undefined`: it may have none. */
export function threadSpace(): Int32Array | undefined {
  const found = getEnvironmentData(environmentKey);
  if (found === false) return undefined;
  if (found instanceof SharedArrayBuffer) return new Int32Array(found);
  const made = new SharedArrayBuffer(transactionSettings().memoryBytes);
  setEnvironmentData(environmentKey, made);
  return new Int32Array(made);
}

/** The number of a participant for this thread. Throws `STM_CROWDED`, `STM_STUCK`. */
export function takeNumber(words: Int32Array): number {
  takeTurn(words);
  try {
    for (let number = 0; number < maxParticipants; number += 1) {
      const at = placeOf(number);
      if (words[at + participantWord.thread] !== 0) continue;
      Atomics.store(words, at + participantWord.thread, threadId + 1);
      const numbers = Math.max(Atomics.load(words, threadWord.numbers), number + 1);
      Atomics.store(words, threadWord.numbers, numbers);
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

/** The place of a participant. */
export function placeOf(number: number): number {
  return threadWord.participants + number * participantWord.count;
}

/** Waits until this thread alone may change the memory, until `endTurn`. Throws `STM_STUCK`. */
export function takeTurn(words: Int32Array): void {
  const mine = threadId + 1;
  let deadline: number | undefined;
  for (let tries = 0; ; tries += 1) {
    const holder = Atomics.compareExchange(words, threadWord.turn, 0, mine);
    if (holder === 0) return;
    if (tries < spins) continue;
    deadline ??= nowMs() + transactionSettings().patienceMs;
    if (nowMs() > deadline) throw stuck(holder - 1);
    Atomics.wait(words, threadWord.turn, holder, 1);
  }
}

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

/** Keeps a thread that its parent is about to end from changing the memory: it cannot end in the middle of that. */
export function beforeThreadEnds(thread: number): void {
  const words = knownSpace();
  const at = words && placeOfThread(words, thread);
  if (words === undefined || at === undefined) return;
  try {
    takeTurn(words);
  } catch {
    return; // it has stopped in its turn: whoever waits for it gets the error
  }
  Atomics.store(words, at + participantWord.thread, -1 - thread);
  endTurn(words);
}

/** True: the parent of this participant's thread ends it. */
export function isEnding(words: Int32Array, number: number): boolean {
  return Atomics.load(words, placeOf(number) + participantWord.thread) < 0;
}

/** Frees the number of a thread that has ended. */
export function afterThreadEnds(thread: number): void {
  const words = knownSpace();
  const at = words && placeOfThread(words, thread);
  if (words !== undefined && at !== undefined) leaveNumber(words, at);
}

/** Frees the number of the participant at `at`. */
export function leaveNumber(words: Int32Array, at: number): void {
  Atomics.store(words, at + participantWord.epoch, 0);
  Atomics.store(words, at + participantWord.thread, 0);
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
