// States of the functions and classes of kept snapshots, to detect changes without a message. Only own
// properties are read, so that no accessor of the program runs.
// Not here: whose properties the code of a snapshot can see (exporter.ts), what is written of them
// (additions.ts, classes.ts).

import { descriptorOf, type OwnDescriptor, sourceText } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import { isSame } from '../values/versions.js';

type Key = string | symbol;

/** Own properties of sloppy functions that V8 makes while the function runs. */
const ofRunning: ReadonlySet<Key> = new Set(['arguments', 'caller']);

/** The recorded state of one object. */
class Seen {
  readonly #target: object;
  readonly #above: object | null;
  readonly #isExtensible: boolean;
  readonly #keys: readonly Key[];
  readonly #descriptors: readonly (OwnDescriptor | undefined)[];

  constructor(target: object) {
    this.#target = target;
    this.#above = Object.getPrototypeOf(target);
    this.#isExtensible = Object.isExtensible(target);
    this.#keys = Reflect.ownKeys(target);
    this.#descriptors = this.#keys.map((key) => this.#read(key));
  }

  #read(key: Key): OwnDescriptor | undefined {
    if (typeof this.#target === 'function' && ofRunning.has(key)) return undefined;
    return descriptorOf(this.#target, key);
  }

  hasChanged(): boolean {
    if (Object.getPrototypeOf(this.#target) !== this.#above) return true;
    if (Object.isExtensible(this.#target) !== this.#isExtensible) return true;
    const keys = Reflect.ownKeys(this.#target);
    if (keys.length !== this.#keys.length) return true;
    return keys.some((key, at) => {
      if (key !== this.#keys[at]) return true;
      const before = this.#descriptors[at];
      const now = this.#read(key);
      return before !== now && (before === undefined || now === undefined || !isSame(before, now));
    });
  }
}

/** Records the state of `fn` and its prototype. Returns a function that tests whether either has changed. */
export function watch(fn: AnyFunction): () => boolean {
  const own = new Seen(fn);
  const prototype: unknown = descriptorOf(fn, 'prototype')?.value;
  if (typeof prototype !== 'object' || prototype === null) return () => own.hasChanged();
  const around = new Seen(prototype);
  return () => own.hasChanged() || around.hasChanged();
}

/** Records the texts of functions, which a debugger may edit while they are used. */
export function watchTexts(functions: readonly AnyFunction[]): () => boolean {
  const each = [...new Set(functions)];
  const texts = each.map(sourceText);
  return () => each.some((fn, at) => sourceText(fn) !== texts[at]);
}
