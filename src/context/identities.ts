// Numbers for functions, classes and symbols of this thread, so that one that comes back from a host
// is found again. Nothing is kept alive by its number, except the classes sent last: the instance of
// a class that only the task knew must still find it when the result arrives.

import type { Identity } from './protocol.js';
import type { AnyFunction } from './types.js';

const keptClasses = 256;

const foreign = new WeakMap<object, Identity>();
const foreignSymbols = new Map<symbol, Identity>();

/** `value` was made here for one that a peer numbered. Functions know it by themselves (recreate.ts). */
export function rememberForeign(value: unknown, identity: Identity): void {
  if (typeof value === 'symbol') foreignSymbols.set(value, identity);
  else if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
    foreign.set(value, identity);
  }
}

export class Identities {
  /** Tells this process's (thread's) numbers from those of its peers. */
  readonly tag: number;
  readonly #serials = new WeakMap<object, number>();
  readonly #symbols = new Map<symbol, number>();
  readonly #values = new Map<number, WeakRef<object>>();
  readonly #collected = new FinalizationRegistry((serial: number) => this.#values.delete(serial));
  readonly #kept: object[] = [];
  #next = 1;

  constructor(tag = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)) {
    this.tag = tag;
  }

  /** The peer's number for what came from a peer, else ours. */
  identify(value: object | symbol): Identity {
    const known = typeof value === 'symbol' ? foreignSymbols.get(value) : foreign.get(value);
    return known ?? [this.tag, this.serialOf(value)];
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
