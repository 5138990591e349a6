// Parts of an instance that modules keep, which a copy in a worker would lose. Two kinds of modules may keep
// them: the module of its class, where workers import that again, and modules whose weak tables or functions
// a class of the program uses.
// Not here: what code of a class can reach (keepers.ts).

import * as types from 'node:util/types';
import { sourceText } from '../../lib/index.js';
import { originOf } from '../decode/recreate.js';
import { ownerOf } from '../encode/encode.js';
import { isCopying } from '../modules/copies.js';
import { cjsModule, type ModuleReference } from '../modules/references.js';
import { type Code, readCode } from '../text/code.js';
import type { Binding } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import type { Describer } from './describe.js';
import { innerSymbols } from './inner-names.js';
import { canInspect } from './inspector.js';
import { Keepers, keptIn } from './keepers.js';

/** Finds values that are imported again: imports.ts. */
interface Names {
  exportOf(fn: AnyFunction, code: Code): ModuleReference | undefined;
  isSentinel(symbol: symbol): boolean;
}

interface Owner {
  readonly owner: AnyFunction;
  /** True: workers get its code, and do not import its module again. */
  readonly isCopied: boolean;
}

export class HiddenState {
  /** Symbols of modules that are imported again. */
  readonly symbols = new Map<symbol, ModuleReference>();
  readonly #describer: Describer;
  readonly #names: Names;
  readonly #keepers: Keepers;
  /** By prototype. */
  readonly #owners = new WeakMap<object, Owner | 'none'>();

  constructor(describer: Describer, names: Names) {
    this.#describer = describer;
    this.#names = names;
    this.#keepers = new Keepers(describer, (value, binding) => this.#isImport(value, binding));
  }

  /** Clears the state of one export. */
  forget(): void {
    this.#keepers.forget();
  }

  /** The place where a part of `value` is kept; `undefined`: nowhere. */
  of(value: object): string | undefined {
    let at: object | null = Object.getPrototypeOf(value);
    for (; at !== null; at = Object.getPrototypeOf(at)) {
      const found = this.#ownerAt(at);
      if (found === undefined) continue;
      for (const keeper of this.#keepers.around(found.owner, found.isCopied)) {
        const what = keptIn(keeper, value);
        if (what === undefined) continue;
        if (typeof keeper !== 'symbol' || !this.#hasName(keeper)) return what;
      }
    }
    return undefined;
  }

  /** The class whose prototype is `at`. */
  #ownerAt(at: object): Owner | undefined {
    const known = isCopying() ? undefined : this.#owners.get(at);
    if (known !== undefined) return known === 'none' ? undefined : known;
    const found = this.#readOwner(at);
    if (!isCopying()) this.#owners.set(at, found ?? 'none');
    return found;
  }

  #readOwner(at: object): Owner | undefined {
    const owner = ownerOf(at);
    const code = owner && originOf(owner) === undefined ? readCode(sourceText(owner)) : undefined;
    if (owner === undefined || code === undefined || !canInspect()) return undefined;
    const reference = this.#names.exportOf(owner, code);
    if (reference !== undefined) this.#noteSymbols(owner, reference);
    return { owner, isCopied: reference === undefined };
  }

  #noteSymbols(owner: AnyFunction, reference: ModuleReference): void {
    for (const [name, symbol] of innerSymbols(owner, this.#describer.placeOf(owner))) {
      const variable = reference.variable === undefined ? name : `${reference.variable} ${name}`;
      this.symbols.set(symbol, { ...reference, variable });
    }
  }

  #hasName(symbol: symbol): boolean {
    return this.symbols.has(symbol) || this.#names.isSentinel(symbol);
  }

  #isImport(value: unknown, binding: Binding | undefined): boolean {
    if (binding?.kind === 'import') return true;
    if (typeof value === 'function') {
      const code = types.isProxy(value) ? undefined : readCode(sourceText(value));
      return code !== undefined && this.#names.exportOf(value, code) !== undefined;
    }
    return typeof value === 'object' && value !== null && cjsModule(value) !== undefined;
  }
}
