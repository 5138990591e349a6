// Numbers for functions, classes and symbols of this thread, so that one that comes back from a host
// is found again. Nothing is kept alive by its number, except the classes sent last: the instance of
// a class that only the task knew must still find it when the result arrives.

import type { AnyFunction } from './types.js';

const keptClasses = 256;

export class Identities {
  /** Tells this process's (thread's) numbers from those of its peers. */
  readonly tag = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
  readonly #serials = new WeakMap<object, number>();
  readonly #symbols = new Map<symbol, number>();
  readonly #values = new Map<number, WeakRef<object>>();
  readonly #collected = new FinalizationRegistry((serial: number) => this.#values.delete(serial));
  readonly #kept: object[] = [];
  #next = 1;

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
