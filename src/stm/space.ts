// This thread's part in the transactional memory of its program: the words that all see, and the desk on which a
// transaction notes what it reads and writes. Open while this thread has a variable.
// Not here: what a transaction is (attempt.ts), the protocol (crates/core/src/stm/).

import { CodedError } from '../errors.js';
import { nodeCrypto } from '../lib/index.js';
import { callNative, type NativeTransactions, requireNative } from '../native.js';
import { spaceProblem, threadSpace, transactionSettings } from '../worker/index.js';
import { ThreadTransactions } from './threads/transactions.js';

/** The order of `NativeTransactions.places()`. */
const placeNames = [
  'id',
  'ownEpoch',
  'epoch',
  'clock',
  'root',
  'heap',
  'sizeWords',
  'bytesKind',
  'deskReads',
  'maxReads',
  'deskWrites',
  'maxWrites',
] as const;

/** Indices of words, and limits. */
export type Places = Readonly<Record<(typeof placeNames)[number], number>>;

export interface Space {
  readonly native: NativeTransactions;
  /** Commits what the desk has; 0: a conflict, without an effect. */
  readonly commit: () => number;
  /** Takes memory for an object of so many words; returns its index. */
  readonly take: (words: number) => number;
  /** The same for a transaction that frees memory: it may use a reserve. */
  readonly takeToFree: (words: number) => number;
  readonly words: Int32Array;
  /** The same memory. */
  readonly bytes: Buffer;
  readonly desk: Int32Array;
  readonly at: Places;
  /** Leaves the memory, which the others keep. */
  close(): void;
}

let wake: () => void = () => {};

/** Sets what is called in this thread's event loop when something that it watches may have changed. */
export function onWake(listener: () => void): void {
  wake = listener;
}

/** Takes part in the memory. Throws `NATIVE_MISSING`, `NATIVE_REFUSED`, `OPTION_INVALID`, `STM_CROWDED`. */
export function openSpace(): Space {
  const problem = spaceProblem();
  const id = nodeCrypto().randomInt(1, 2 ** 31);
  const native = problem === undefined ? nativeOf(id) : threadTransactions(problem, id);
  const numbers = native.places();
  const at = { ...emptyPlaces };
  for (const [index, name] of placeNames.entries()) at[name] = numbers[index] ?? 0;
  const memory = native.words();
  return {
    native,
    commit: native.committer(),
    take: native.taker(),
    takeToFree: native.takerToFree(),
    words: new Int32Array(memory),
    bytes: Buffer.from(memory),
    desk: new Int32Array(native.desk()),
    at,
    close: () => callNative(() => native.close()),
  };
}

function nativeOf(id: number): NativeTransactions {
  const { NativeTransactions } = requireNative();
  const { memoryBytes, patienceMs } = transactionSettings();
  return callNative(() => new NativeTransactions(id, memoryBytes, patienceMs, () => wake()));
}

/**
 * The memory that threads share without the native core. Throws `problem` in one of several processes, and where the
 * core is there: a refusal may be over when the next process starts, which would have another memory.
 */
function threadTransactions(problem: CodedError, id: number): NativeTransactions {
  if (problem.code !== 'NATIVE_MISSING') throw problem;
  const words = threadSpace();
  if (words !== undefined) return new ThreadTransactions(words, id, () => wake());
  throw new CodedError(
    problem.code,
    `${problem.message}. Without it threads share variables, and processes do not: new Pool({ worker: 'thread' })`,
    { cause: problem },
  );
}

const emptyPlaces = {
  id: 0,
  ownEpoch: 0,
  epoch: 0,
  clock: 0,
  root: 0,
  heap: 0,
  sizeWords: 0,
  bytesKind: 0,
  deskReads: 0,
  maxReads: 0,
  deskWrites: 0,
  maxWrites: 0,
};
