// Transactional variables: a handle for a value in shared memory. One object stands for it in each thread.
// Not here: the transaction (atomically.ts), how a value lies in memory (write-value.ts, read-value.ts).

import { addSource } from '../agent/index.js';
import { CodedError, hasCode } from '../errors.js';
import { invalid } from '../lib/index.js';
import { isInsideWorker } from '../worker/index.js';
import { Attempt, gone, type Write } from './attempt.js';
import { Collection, collectionOf, endIn, receive, send } from './collection.js';
import { KIND_TVAR } from './kinds.js';
import { ValueReader } from './read-value.js';
import { openSpace, type Space } from './space.js';
import { noStats, type StmStats, sampleOf, statsOf } from './stats.js';
import { type SharedName, type TVarName, ValueWriter, type Words } from './write-value.js';

/** The parts of this thread for transactions, made at its first one. */
interface ThreadState {
  readonly space: Space;
  readonly attempt: Attempt;
  readonly writer: ValueWriter;
  readonly reader: ValueReader;
  /** Ends what the agent reads of this thread. */
  readonly unregister: () => void;
}

let state: ThreadState | undefined;
let running: Attempt | undefined;

/** Throws `NATIVE_MISSING`, `NATIVE_REFUSED`, `STM_CROWDED`. */
export function threadState(): ThreadState {
  state ??= makeState();
  return state;
}

function makeState(): ThreadState {
  const space = openSpace();
  return {
    space,
    attempt: new Attempt(space),
    writer: new ValueWriter(sharedName),
    reader: new ValueReader(space.bytes, space.at.heap * 4, sharedOf),
    // The program reports for its workers, which are no programs of their own.
    unregister: isInsideWorker() ? () => {} : addSource('stm', space, sampleOf),
  };
}

/** Returns what all threads of the program did in its transactional memory; zeros while this thread has no variable. */
export function stmStats(): StmStats {
  return state === undefined ? noStats : statsOf(state.space);
}

/** The attempt that runs now; `undefined` outside of transactions. */
export function runningAttempt(): Attempt | undefined {
  return running;
}

/** Makes `attempt` the one that runs. */
export function setRunning(attempt: Attempt | undefined): void {
  running = attempt;
}

/** The attempt that runs. `what`: the function that needs it. Throws `STM_OUTSIDE`. */
export function insideOf(what: string): Attempt {
  if (running !== undefined) return running;
  throw new CodedError(
    'STM_OUTSIDE',
    `${what} was called outside of a transaction: call it in the function of atomically()`,
  );
}

/** Handles of this thread by index: two for one TVar would not see each other's writes. */
const handles = new Map<number, WeakRef<SharedVariable<unknown>>>();
const collected = new FinalizationRegistry<number>((at) => {
  if (handles.get(at)?.deref() === undefined) handles.delete(at);
  leaveIfUnused();
});
/** Number of reasons beside handles to stay in the memory: transactions that wait. */
let holds = 0;

/** Keeps this thread in the memory until the returned function is called. */
export function holdMemory(): () => void {
  holds += 1;
  return () => {
    holds -= 1;
    leaveIfUnused();
  };
}

/** Leaves the memory when nothing of this thread uses it: another thread may take its place. */
export function leaveIfUnused(): void {
  if (state === undefined || running !== undefined || handles.size > 0 || holds > 0) return;
  const { space, unregister } = state;
  state = undefined;
  unregister();
  space.close();
}

/**
 * The handle for the object at `at` with this header. One for an object that has ended is none of `handles`, which
 * have the object that is there now. Throws `STM_GONE` where no object can be.
 */
function handleOf(at: number, header: number): SharedVariable<unknown> {
  const known = handles.get(at)?.deref();
  if (known?.isFor(header) === true) return known;
  const { at: places, words } = threadState().space;
  if (at < places.heap + 2 || at + 4 > places.sizeWords) throw gone();
  return SharedVariable.at(at, header, Atomics.load(words, at - 1) === header);
}

/** @internal The name of a TVar or a collection; `undefined`: it is neither. */
export function sharedName(value: object): SharedName | undefined {
  const name = SharedVariable.nameOf(value);
  return name === undefined ? Collection.nameOf(value) : { ...name, kind: KIND_TVAR };
}

/** Throws `STM_GONE`, `SEGMENT_CORRUPT`. */
function sharedOf(kind: number, at: number, header: number): object {
  const variable = handleOf(at, header);
  return kind === KIND_TVAR ? variable : collectionOf(kind, variable);
}

/** @internal The variable with this name, as this thread has it. Throws `STM_GONE`. */
export function variableAt({ at, header }: TVarName): TVar<unknown> {
  return handleOf(at, header);
}

/** @internal The same for one that `attempt` has just made. */
export function variableOf(attempt: Attempt, { at, header }: TVarName): TVar<unknown> {
  const made = SharedVariable.at(at, header);
  made.begin(attempt);
  return made;
}

/** @internal The name of a variable that `tvar` or `variableAt` made. */
export function nameOfVariable(variable: TVar<unknown>): TVarName {
  const name = SharedVariable.nameOf(variable);
  if (name === undefined) throw new TypeError('no variable of this package');
  return name;
}

/** No object has it: there is no such class of blocks. */
const noHeader = -1;
/** Odd, which versions are not. */
const noVersion = 1;
/** A value that is not made yet of the bytes of a write. */
const notMade: unique symbol = Symbol('not made');
const words: Words = { kind: 0, lo: 0, hi: 0, bytes: undefined };

/**
 * A variable in shared memory. Transactions in any process change several of them together or not at all.
 * `tvar` makes one. It travels in closures, arguments, results, and in the values of others.
 */
export interface TVar<T> {
  /**
   * The value at the moment of the transaction, or what this has set itself. The same version gives the same object,
   * deeply frozen. Throws `STM_OUTSIDE`, `STM_GONE`, `STM_TOO_LARGE`.
   */
  get(): T;
  /**
   * Sets the value, which is copied now and seen by others when the transaction commits. Throws `STM_OUTSIDE`,
   * `STM_GONE`, `STM_VALUE`, `STM_VALUE_TOO_LARGE`.
   */
  set(value: T): void;
  /** Sets the value to what `change` returns for the present one, and returns it as it is stored. */
  update(change: (value: T) => T): T;
  /** The latest value that was committed; in a transaction the same as `get`. Throws `STM_GONE`. */
  peek(): T;
}

/** The one class of variables. */
class SharedVariable<T> implements TVar<T> {
  readonly #at: number;
  #header: number;
  /** The attempt that has made it. */
  #madeBy = 0;
  /** The attempt that has read or written it, and its value there. */
  #attempt = 0;
  #value: unknown;
  /** The write of an attempt, and the number of that. */
  #write: Write | undefined;
  #writtenBy = 0;
  /** The last version that was made into a value, the quarter in which it was read, and that value. */
  #version = noVersion;
  #quarter = 0;
  #versionValue: unknown;

  private constructor(at: number, header: number) {
    this.#at = at;
    this.#header = header;
  }

  /** @internal `isAlive`: it is the handle for what is at `at` now; others are gone for good. */
  static at(at: number, header: number, isAlive = true): SharedVariable<unknown> {
    if (!isAlive) return new SharedVariable<unknown>(at, noHeader);
    const made = new SharedVariable<unknown>(at, header);
    handles.set(at, new WeakRef(made));
    collected.register(made, at);
    return made;
  }

  /** @internal True: it is the handle of what is at its place now, with this header. */
  isFor(header: number): boolean {
    return this.#header === header;
  }

  /** @internal Notes that `attempt` has made it. */
  begin(attempt: Attempt): void {
    this.#madeBy = attempt.number;
    attempt.noteMade(this);
  }

  /** @internal Nothing is there any more, and something else may be. */
  unmake(): void {
    if (handles.get(this.#at)?.deref() === this) handles.delete(this.#at);
    this.#header = noHeader;
    this.#attempt = 0;
    this.#writtenBy = 0;
  }

  /** @internal `undefined`: it is no TVar. */
  static nameOf(this: void, value: object): TVarName | undefined {
    return #at in value ? { at: value.#at, header: value.#header } : undefined;
  }

  get(): T {
    const attempt = insideOf('get()');
    if (this.#attempt !== attempt.number) this.#read(attempt);
    else if (attempt.ending !== undefined) throw attempt.end(attempt.ending);
    if (this.#value === notMade) this.#makeValue();
    return typed(this.#value);
  }

  #read(attempt: Attempt): void {
    if (this.#writtenBy === attempt.number) throw gone(); // by a write: other ones are seen as values
    if (this.#madeBy === attempt.number && this.#header !== noHeader) attempt.readMade(this.#at);
    else attempt.read(this.#at, this.#header);
    const isKnown = this.#version === attempt.version && this.#quarter === attempt.quarter;
    if (isKnown) this.#value = this.#versionValue;
    else {
      const { reader } = threadState();
      this.#value = reader.read(attempt.kind, attempt.lo, attempt.hi);
      this.#version = reader.isOpen ? noVersion : attempt.version;
      this.#quarter = attempt.quarter;
      this.#versionValue = reader.isOpen ? undefined : this.#value;
    }
    this.#attempt = attempt.number;
  }

  #makeValue(): void {
    const bytes = this.#write?.bytes;
    this.#value = bytes === undefined ? undefined : threadState().reader.copy(bytes);
  }

  set(value: T): void {
    const attempt = insideOf('set()');
    if (attempt.ending !== undefined) throw attempt.end(attempt.ending);
    if (this.#writtenBy === attempt.number && this.#write?.isFreed === true) throw gone();
    if (this.#attempt !== attempt.number) attempt.checkHeader(this.#at, this.#header);
    threadState().writer.write(value, words);
    const write = this.#writeOf(attempt);
    write.kind = words.kind;
    write.lo = words.lo;
    write.hi = words.hi;
    write.bytes = words.bytes;
    this.#value = words.bytes === undefined ? value : notMade;
    this.#attempt = attempt.number;
  }

  #writeOf(attempt: Attempt): Write {
    const before = this.#writtenBy === attempt.number ? this.#write : undefined;
    const write = attempt.writeOf(this, this.#at, this.#header, before);
    this.#write = write;
    this.#writtenBy = attempt.number;
    return write;
  }

  update(change: (value: T) => T): T {
    this.set(change(this.get()));
    return this.get();
  }

  peek(): T {
    if (running !== undefined) return this.get();
    const { attempt } = threadState();
    attempt.begin();
    try {
      this.#read(attempt);
      return typed(this.#value);
    } finally {
      attempt.drop();
    }
  }

  /** @internal Makes its read, which has this index, none of the attempt: it may change until the commit. */
  dropRead(attempt: Attempt, index: number): void {
    if (this.#writtenBy === attempt.number || this.#madeBy === attempt.number) return;
    attempt.dropRead(index);
    this.#attempt = 0;
  }

  /** @internal Ends it when the attempt commits. */
  [endIn](attempt: Attempt): void {
    this.get();
    this.#writeOf(attempt).isFreed = true;
    this.#attempt = 0;
  }

  /** @internal Undoes a write of the attempt that runs; `before`: its write before that. */
  restore(before: Write | undefined): void {
    this.#write = before;
    if (before === undefined) this.#writtenBy = 0;
    // The write that is undone may have ended it.
    this.#attempt = before === undefined || before.isFreed ? 0 : this.#writtenBy;
    if (before === undefined || before.bytes !== undefined) this.#value = notMade;
    else this.#value = threadState().reader.read(before.kind, before.lo, before.hi);
  }

  [send](): unknown {
    return { space: threadState().space.at.id, at: this.#at, header: this.#header };
  }

  static [receive](data: unknown): SharedVariable<unknown> {
    const [space, at, header] = ['space', 'at', 'header'].map((name): unknown =>
      Reflect.get(Object(data), name),
    );
    if (space !== threadState().space.at.id) {
      throw new CodedError(
        'STM_OTHER_MEMORY',
        'a TVar came from a program whose memory is not shared with this one: send its value',
      );
    }
    if (typeof at !== 'number' || typeof header !== 'number') throw gone();
    return handleOf(at, header);
  }
}

/** Values are typed by those who set them. */
export function typed<T>(value: unknown): T;
export function typed(value: unknown): unknown {
  return value;
}

/**
 * Makes a variable, in a transaction or outside. It holds primitives, plain objects, arrays, `Uint8Array`s and other
 * variables, 64 KiB at most, and lives until `free`, or the end of the program. Throws `STM_VALUE`,
 * `STM_VALUE_TOO_LARGE`, `SHARED_MEMORY_FULL`, `STM_CROWDED`, `NATIVE_MISSING`, `NATIVE_REFUSED`.
 */
export function tvar<T>(initial: T): TVar<T> {
  return partOf(undefined, initial);
}

/** Makes a variable that is a part of the collection for which `owner` stands; `undefined`: of none. */
export function partOf<T>(owner: TVar<unknown> | undefined, initial: T): TVar<T>;
export function partOf(owner: TVar<unknown> | undefined, initial: unknown): TVar<unknown> {
  const { attempt, writer } = threadState();
  if (running?.ending !== undefined) throw running.end(running.ending);
  writer.write(initial, words);
  const ownerAt = owner === undefined ? 0 : nameOfVariable(owner).at;
  const make = (): TVar<unknown> => {
    const at = attempt.take(1 + 3);
    const header = attempt.initialise(at, words, running !== undefined, ownerAt);
    if (running !== undefined) return variableOf(attempt, { at, header });
    attempt.keep();
    return SharedVariable.at(at, header);
  };
  try {
    return attempt.guard(make);
  } catch (error) {
    if (running !== undefined || !hasCode(error, 'SHARED_MEMORY_FULL')) throw error;
    attempt.collect();
    return attempt.guard(make);
  }
}

/** Notes of a variable that was just made that it stands for a collection. */
export function asStand(first: TVar<unknown>): TVar<unknown> {
  const { at } = nameOfVariable(first);
  threadState().space.words[at - 2] = at;
  return first;
}

/** Ends a variable or a collection: later uses throw `STM_GONE`. */
export function freeIn(attempt: Attempt, shared: unknown): void {
  const end: unknown = Reflect.get(Object(shared), endIn);
  if (typeof end !== 'function') {
    throw invalid('what is to be freed', shared, 'a TVar or a collection of this package');
  }
  Reflect.apply(end, shared, [attempt]);
}

/** Makes a read of `variable`, which has this index in the attempt, none of it. */
export function dropRead(variable: TVar<unknown>, attempt: Attempt, index: number): void {
  if (variable instanceof SharedVariable) variable.dropRead(attempt, index);
}
