// Numbers for functions, classes and symbols of this thread, so that one that comes back from a worker is
// found again. A number keeps no value alive, except for the classes sent last. An instance of a class that
// only the task uses must still find its class when the result arrives.

import type { Identity } from '../protocol.js';
import type { AnyFunction } from '../types.js';

const keptClasses = 256;

const foreign = new WeakMap<object, Identity>();
/** Functions and classes that a worker of this thread made: they belong to this thread in every worker. */
const owned = new WeakSet<object>();
const foreignSymbols = new Map<symbol, Identity>();
/** Values that were made here, by the number that a peer gave them. */
const madeHere = new Map<string, WeakRef<object> | symbol>();
const forgotten = new FinalizationRegistry((key: string) => {
  const made = madeHere.get(key);
  if (typeof made === 'object' && made.deref() === undefined) madeHere.delete(key);
});

/**
 * Notes that `value` was made here for one that a peer numbered. Functions carry their origin (recreate.ts).
 */
export function rememberForeign(value: unknown, identity: Identity): void {
  if (typeof value === 'symbol') foreignSymbols.set(value, identity);
  else if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
    foreign.set(value, identity);
  }
}

/** The same, for a value that no peer can change: the same value is used for every peer that sends it. */
export function shareForeign(value: unknown, identity: Identity): void {
  const key = identity.join(':');
  if (typeof value === 'symbol') madeHere.set(key, value);
  else if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
    madeHere.set(key, new WeakRef(value));
    forgotten.register(value, key);
  }
}

/** Notes that a peer whose code is ours made `fn`: see `ExporterOptions`. */
export function rememberOwned(fn: AnyFunction): void {
  owned.add(fn);
}

/** The value that `shareForeign` was given for `identity`. */
export function sharedForeign(identity: Identity): unknown {
  const made = madeHere.get(identity.join(':'));
  return typeof made === 'object' ? made.deref() : made;
}

export class Identities {
  /** Distinguishes the numbers of this thread from those of its peers. */
  readonly tag: number;
  readonly #serials = new WeakMap<object, number>();
  readonly #symbols = new Map<symbol, number>();
  readonly #values = new Map<number, WeakRef<object>>();
  readonly #collected = new FinalizationRegistry((serial: number) => this.#values.delete(serial));
  readonly #kept: object[] = [];
  /** See `ExporterOptions`. */
  readonly ownsCode: boolean;
  #next = 1;

  constructor(ownsCode: boolean, tag = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)) {
    this.ownsCode = ownsCode;
    this.tag = tag;
  }

  /** The peer's number for a value that came from a peer, else ours. */
  identify(value: object | symbol): Identity {
    const known = typeof value === 'symbol' ? foreignSymbols.get(value) : foreign.get(value);
    return known ?? [this.tag, this.serialOf(value)];
  }

  /** The same for a function or class. `given`: by a peer. */
  identifyCode(value: object, given = foreign.get(value)): Identity {
    const isOurs = this.ownsCode || owned.has(value);
    return (isOurs ? undefined : given) ?? [this.tag, this.serialOf(value)];
  }

  serialOf(value: object | symbol): number {
    if (typeof value === 'symbol') {
      const known = this.#symbols.get(value) ?? this.#next++;
      this.#symbols.set(value, known);
      return known;
    }
    const known = this.#serials.get(value);
    if (known !== undefined) return known;
    const serial = this.#next++;
    this.#serials.set(value, serial);
    this.#values.set(serial, new WeakRef(value));
    this.#collected.register(value, serial);
    return serial;
  }

  keep(value: AnyFunction): void {
    if (this.#kept.includes(value)) return;
    if (this.#kept.push(value) > keptClasses) this.#kept.shift();
  }

  find(serial: number): object | symbol | undefined {
    const value = this.#values.get(serial)?.deref();
    if (value !== undefined) return value;
    for (const [symbol, known] of this.#symbols) if (known === serial) return symbol;
    return undefined;
  }
}
