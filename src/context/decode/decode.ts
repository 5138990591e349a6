// Makes a value from a payload in steps: first specials (functions, whose captures may come later),
// which are then put where they belong. Next come values that need finished parts (classes, bound functions,
// received instances), then prototypes, properties and integrity. The payload was written by another process:
// invalid input is TRANSFER_CORRUPT, never a crash. Long (over 400 lines), because the order of the steps is
// one subject and each kind needs its few lines.
// Not here: self-contained specials (plain-specials.ts), classes that were here before (class-copies.ts),
// properties (define.ts), memory between payloads (importer.ts).

import { AsyncLocalStorage } from 'node:async_hooks';
import * as types from 'node:util/types';
import { CodedError } from '../../errors.js';
import { descriptorsOf, messageOf } from '../../lib/index.js';
import { metaFor } from '../modules/meta.js';
import {
  type Identity,
  identityAt,
  integrity,
  listAt,
  numberAt,
  type Payload,
  propertyFlags,
  special,
  stringAt,
} from '../protocol.js';
import type { AnyFunction } from '../types.js';
import { receiveBy } from '../values/hooks.js';
import { rememberForeign, sharedForeign, shareForeign } from '../values/identities.js';
import { isOnlyText } from '../values/ordinary.js';
import { perWorker } from '../values/per-worker.js';
import { contentsOf } from '../values/sentinels.js';
import { paramsOf } from '../values/urls.js';
import { corrupt } from '../wire.js';
import { ClassCopies, never } from './class-copies.js';
import { define, isCallable, put, reserve } from './define.js';
import { lastStage, type Plan, variable } from './factory.js';
import type { Memory } from './peer-memory.js';
import { makePlain } from './plain-specials.js';
import { type Life, Plans } from './plans.js';
import { memberIn } from './pristine.js';
import { type Instance, importerFor } from './recreate.js';

export interface Decoded {
  readonly root: unknown;
  readonly stores: readonly (readonly [key: unknown, store: unknown])[];
  /** The error for an unexpected root; `text` is the reason where no import is. */
  readonly rootError: (text: string) => CodedError;
}

export function decode(payload: Payload, memory: Memory): Decoded {
  const made = new Set<unknown>();
  for (let more = maxAttempts - 1; ; more -= 1) {
    const decoded = new Decoding(payload, memory, made).run(more > 0);
    if (decoded !== undefined) return decoded;
  }
}

/** The second attempt succeeds, unless the payload names two functions by one identity. */
const maxAttempts = 3;

/** A function that stays from one payload to the next. */
interface Constant {
  readonly fn: AnyFunction;
  readonly identity: Identity;
  readonly instance: Instance;
  readonly slots: readonly unknown[];
}

class Decoding {
  readonly #payload: Payload;
  readonly #memory: Memory;
  readonly #values: unknown[];
  readonly #isMade: boolean[];
  /** `[container, key]`, flat, by special. */
  readonly #puts: unknown[][];
  /** Deferred specials by the container that holds them. */
  readonly #awaited = new Map<unknown, number[]>();
  /** Specials that were here before, by version: only newer parts are changed. */
  readonly #reused = new Map<number, number>();
  readonly #classes: ClassCopies;
  /** The variables of functions that are not constant, by special. */
  readonly #instances = new Map<number, Instance>();
  readonly #refills: { instance: Instance; slots: unknown[] }[] = [];
  /** The functions of this payload whose captures cannot change. */
  readonly #constants: Constant[] = [];
  /** Classes that were made for this payload, in an attempt before this one, too. */
  readonly #madeHere: Set<unknown>;
  readonly #plans: Plans;
  readonly #inProgress = new Set<number>();
  /** True: one of the constant functions was here before. */
  #hasStayed = false;
  #mayStay: boolean | undefined;
  #parcel: readonly unknown[] | undefined;

  constructor(payload: Payload, memory: Memory, madeHere: Set<unknown>) {
    this.#payload = payload;
    this.#memory = memory;
    this.#madeHere = madeHere;
    const count = payload.specials.length;
    this.#values = new Array(count).fill(undefined);
    this.#isMade = new Array(count).fill(false);
    this.#puts = Array.from({ length: count }, () => []);
    this.#classes = new ClassCopies(payload, this.#values, memory);
    this.#plans = new Plans(payload, this.#isMade);
  }

  /**
   * Values arrive in stages: 1 functions, 2 classes and their parts, 3 everything else. Returns `undefined`
   * where a function that stayed has a class which did not: it must be made anew, by another attempt.
   */
  run(mayRepeat: boolean): Decoded | undefined {
    const { specials, root, stores } = this.#payload;
    this.#sortPuts();
    // Functions last: one whose `this` is a module or another special gets it when it is made.
    for (const isFunction of [false, true]) {
      for (const [index, entry] of specials.entries()) {
        if ((entry[0] === special.function) === isFunction) this.#makeEarly(index, entry);
      }
    }
    this.#refill(1);
    for (const [index, entry] of specials.entries()) {
      const kind = entry[0];
      if (kind !== special.bound && kind !== special.received) this.#makeLate(index);
    }
    this.#refill(2);
    if (mayRepeat && this.#dropOutdated()) return undefined;
    this.#setPrototypes(false);
    this.#setProperties(false);
    this.#classes.fillPrivates();
    this.#fillCollections(false);
    for (const index of specials.keys()) this.#makeLate(index);
    this.#setPrototypes(true);
    this.#setProperties(true);
    this.#fillCollections(true);
    this.#refill(lastStage);
    this.#classes.fillPrivates();
    this.#close();
    this.#classes.noteVersions();
    const decoded: (readonly [unknown, unknown])[] = [];
    for (let at = 0; at < stores.length; at += 2) {
      decoded.push([this.#list(stores, at)[0], this.#list(stores, at + 1)[0]]);
    }
    const rootError = (text: string): CodedError => this.#unusable(this.#indexIn(root, 0), text);
    return { root: root[0], stores: decoded, rootError };
  }

  #entry(index: number): readonly unknown[] {
    const entry = this.#payload.specials[index];
    if (entry === undefined) throw corrupt(`there is no special ${index}`);
    return entry;
  }

  /** The special that is put into `container`. */
  #indexIn(container: unknown, key: unknown): number | undefined {
    const index = this.#puts.findIndex((puts) =>
      puts.some((part, at) => at % 2 === 1 && part === key && puts[at - 1] === container),
    );
    return index < 0 ? undefined : index;
  }

  /** The error for an unsuitable special: the module of an import differs here, other bytes are corrupt. */
  #unusable(index: number | undefined, text: string): CodedError {
    const entry = index === undefined ? undefined : this.#payload.specials[index];
    if (index === undefined || entry === undefined) return corrupt(text);
    if (entry[0] !== special.imported && entry[0] !== special.frozen) return corrupt(text);
    const [id, name, variable] = [numberAt(entry, 1), stringAt(entry, 2), stringAt(entry, 3)];
    return this.#memory.unusableImport(id, `${name}${variable}`, this.#values[index]);
  }

  #list(entry: readonly unknown[], index: number): unknown[] {
    return listAt(entry, index, this.#payload.maxElements);
  }

  #sortPuts(): void {
    const { puts } = this.#payload;
    for (let at = 0; at < puts.length; at += 3) {
      const container = puts[at];
      const index = numberAt(puts, at + 2);
      const kind = this.#entry(index)[0];
      if (typeof container !== 'object' || container === null) throw corrupt('nothing to put into');
      this.#puts[index]?.push(container, puts[at + 1]);
      this.#plans.note(container, puts[at + 1], index);
      if (isDeferred(kind)) {
        const awaited = this.#awaited.get(container);
        if (awaited === undefined) this.#awaited.set(container, [index]);
        else awaited.push(index);
      }
    }
  }

  #done(index: number, value: unknown): void {
    this.#values[index] = value;
    this.#isMade[index] = true;
    const puts = this.#puts[index] ?? [];
    for (let at = 0; at < puts.length; at += 2) put(puts[at], puts[at + 1], value);
  }

  #makeEarly(index: number, entry: readonly unknown[]): void {
    if (this.#isMade[index] === true) return;
    switch (entry[0]) {
      case special.symbol: {
        const description = entry[2] === undefined ? undefined : stringAt(entry, 2);
        this.#done(
          index,
          this.#shared(entry, 1, () => Symbol(description)),
        );
        return;
      }
      case special.imported:
        this.#done(index, this.#imported(entry));
        return;
      case special.importedCell:
        this.#done(index, this.#memory.importedCell(numberAt(entry, 1), stringAt(entry, 2)));
        return;
      case special.frozen:
        this.#done(index, this.#frozen(entry));
        return;
      case special.closure:
        this.#done(index, this.#memory.closure(numberAt(entry, 1)));
        return;
      case special.function:
        // An arrow whose `this` is a class waits for it.
        if (!this.#awaited.has(this.#list(entry, 5))) this.#function(index, entry);
        return;
      case special.live:
        this.#parcel ??= this.#memory.parcel(numberAt(entry, 1));
        this.#done(index, this.#parcel[numberAt(entry, 2)]);
        return;
      case special.searchParams:
        this.#done(index, entry.length === 3 ? this.#paramsOf(entry) : this.#plain(entry));
        return;
      case special.boxedSymbol: {
        const symbol = this.#values[numberAt(entry, 1)];
        if (typeof symbol !== 'symbol') throw corrupt('a boxed symbol has none');
        this.#done(index, Object(symbol));
        return;
      }
      case special.perWorker: {
        const cell = this.#list(entry, 2);
        this.#done(
          index,
          this.#shared(entry, 1, () => perWorker(() => callFactory(cell[0]))),
        );
        return;
      }
      case special.asyncLocalStorage:
        this.#done(
          index,
          this.#shared(entry, 1, () => new AsyncLocalStorage()),
        );
        return;
      case special.require:
        this.#done(index, this.#memory.requireFor(stringAt(entry, 1)));
        return;
      case special.importer:
        this.#done(index, importerFor(stringAt(entry, 1)));
        return;
      case special.meta:
        this.#done(index, metaFor(stringAt(entry, 1)));
        return;
      case special.cjsModule:
        this.#done(index, this.#memory.moduleFor(stringAt(entry, 1)));
        return;
      default:
        if (!isDeferred(entry[0])) this.#done(index, this.#plain(entry));
    }
  }

  #plain(entry: readonly unknown[]): unknown {
    return makePlain(entry, this.#payload.maxElements);
  }

  /** The parameters of a URL of the payload. */
  #paramsOf(entry: readonly unknown[]): unknown {
    const at = numberAt(entry, 2);
    const url = this.#entry(at);
    if (url[0] === special.url) this.#makeEarly(at, url);
    const value = this.#values[at];
    const params = typeof value === 'object' && value !== null ? paramsOf(value) : undefined;
    if (params === undefined) throw corrupt('the parameters of a URL have none');
    return params;
  }

  #imported(entry: readonly unknown[]): unknown {
    const variable = stringAt(entry, 3);
    const value = this.#memory.imported(numberAt(entry, 1), stringAt(entry, 2), variable);
    if (entry.length === 4) return value;
    const description = entry[5] === undefined ? undefined : stringAt(entry, 5);
    const isSame = typeof value === 'symbol' && value.description === description;
    return isSame ? value : this.#shared(entry, 4, () => Symbol(description));
  }

  /** The import, where it holds the same as the peer's, else the copy. */
  #frozen(entry: readonly unknown[]): unknown {
    const [name, variable] = [stringAt(entry, 2), stringAt(entry, 3)];
    const imported = this.#memory.imported(numberAt(entry, 1), name, variable);
    if (contentsOf(imported) === stringAt(entry, 4)) return imported;
    const copy = this.#list(entry, 5)[0];
    if (typeof copy !== 'object' || copy === null) throw corrupt('a frozen object has no copy');
    return copy;
  }

  /** One value for an identity: ours when it comes back, else the one that was made before. */
  #shared(entry: readonly unknown[], at: number, make: () => unknown): unknown {
    const identity = identityAt(entry, at);
    const known =
      this.#memory.original(identity) ?? this.#memory.cached(identity) ?? sharedForeign(identity);
    if (known !== undefined) return known;
    const made = make();
    this.#memory.remember(identity, made);
    shareForeign(made, identity);
    return made;
  }

  #function(index: number, entry: readonly unknown[]): void {
    const codeId = numberAt(entry, 1);
    const identity = identityAt(entry, 2);
    const slots = this.#list(entry, 3);
    const isConstant = entry[4] === 1;
    const self = this.#list(entry, 5);
    const isOfItsObject = self[2] === true; // made with each copy of the object
    const original = isOfItsObject
      ? undefined
      : (this.#memory.original(identity) ?? this.#born(entry));
    const mayBeHere = !isOfItsObject && (isConstant || hasSettled);
    const known = original ?? (mayBeHere ? this.#memory.cached(identity) : undefined);
    if (isCallable(known)) {
      // A debugger may have edited it since it was made here.
      const isAsMade = isConstant && this.#memory.hasCode(known, codeId);
      if (known === original || isAsMade) {
        this.#reused.set(index, never);
        const constant = isConstant ? this.#memory.instanceOf(known) : undefined;
        if (constant !== undefined) {
          this.#refills.push({ instance: constant, slots }); // remade classes
          if (known !== original) {
            this.#constants.push({ fn: known, identity, instance: constant, slots });
            this.#hasStayed = true;
          }
        }
        this.#done(index, known);
        return;
      }
      const refilled = settled.get(known) === codeId ? this.#memory.instanceOf(known) : undefined;
      if (refilled !== undefined) {
        this.#refills.push({ instance: refilled, slots });
        this.#done(index, known);
        return;
      }
    }
    const plan = this.#planOf(slots, isConstant ? 'constant' : 'once');
    const instance = this.#memory.instantiate(codeId, slots, plan);
    const fn = instance.make(self);
    this.#memory.finish(codeId, fn, { instance, self, identity });
    if (isConstant) {
      this.#memory.remember(identity, fn, instance);
      this.#constants.push({ fn, identity, instance, slots });
    } else this.#instances.set(index, instance);
    this.#refills.push({ instance, slots });
    this.#done(index, fn);
  }

  /**
   * Returns a function or class that a task made here, where neither side has changed it since. `above`: the
   * class that it extends.
   */
  #born(entry: readonly unknown[], above?: unknown): AnyFunction | undefined {
    const identity = this.#list(entry, 2);
    if (identity.length < 4) return undefined;
    const born = this.#memory.original([numberAt(identity, 2), numberAt(identity, 3)]);
    if (!isCallable(born)) return undefined;
    if (entry[0] === special.function) return isOnlyText(born) ? born : undefined;
    return above === undefined || Object.getPrototypeOf(born) === above ? born : undefined;
  }

  #refill(stage: number): void {
    for (const { instance, slots } of this.#refills) instance.fill(slots, stage);
  }

  /**
   * Forgets constant functions that hold another value than the payload, for a class that was made anew, and
   * all that hold those. True: there are any.
   */
  #dropOutdated(): boolean {
    if (!this.#hasStayed) return false;
    const outdated = new Set<unknown>();
    let count: number;
    do {
      count = outdated.size;
      for (const { fn, instance, slots } of this.#constants) {
        if (outdated.has(fn)) continue;
        const held = instance.read();
        const isOld = slots.some((value, at) => outdated.has(value) || !Object.is(value, held[at]));
        if (isOld) outdated.add(fn);
      }
    } while (outdated.size > count);
    for (const { fn, identity } of this.#constants)
      if (outdated.has(fn)) this.#memory.drop(identity);
    return outdated.size > 0;
  }

  /** The plan for a function or class that is made now; `undefined`: all captures are there. */
  #planOf(slots: readonly unknown[], life: Life): Plan | undefined {
    if (life === 'once' && slots.length > 0 && this.#mayBeSettled()) {
      return variable.repeat(slots.length);
    }
    const isAwaiting = (index: number) => this.#awaited.has(this.#list(this.#entry(index), 5));
    return this.#plans.planOf(slots, life, isAwaiting);
  }

  /** True: a function of this payload may stay as a part of a class (`#settle`). */
  #mayBeSettled(): boolean {
    if (this.#mayStay === undefined) {
      const { properties, integrities } = this.#payload;
      this.#mayStay = false;
      for (let at = 0; at < properties.length; at += 5) {
        const isOpen = (numberAt(properties, at + 2) & propertyFlags.configurable) !== 0;
        if (!isOpen && this.#isOfClass(properties[at])) this.#mayStay = true;
      }
      for (let at = 0; at < integrities.length; at += 2) {
        if (this.#isOfClass(integrities[at])) this.#mayStay = true;
      }
    }
    return this.#mayStay;
  }

  /** Makes a deferred special after its dependencies. */
  #makeLate(index: number): void {
    if (this.#isMade[index] === true) return;
    if (this.#inProgress.has(index)) return; // a cycle: stays undefined where it is needed early
    this.#inProgress.add(index);
    const entry = this.#entry(index);
    switch (entry[0]) {
      case special.class:
        this.#class(index, entry);
        return;
      case special.function:
        this.#await(this.#list(entry, 5));
        this.#function(index, entry);
        return;
      case special.prototype:
        this.#done(index, this.#prototypeOf(numberAt(entry, 1)));
        return;
      case special.member:
        this.#done(index, this.#memberOf(entry));
        return;
      case special.bound:
        this.#bound(index, entry);
        return;
      case special.received:
        this.#received(index, entry);
        return;
      default:
        throw corrupt('a special of no known kind');
    }
  }

  #await(container: unknown): void {
    for (const index of this.#awaited.get(container) ?? []) this.#makeLate(index);
  }

  #class(index: number, entry: readonly unknown[]): void {
    const codeId = numberAt(entry, 1);
    const identity = identityAt(entry, 2);
    const slots = this.#list(entry, 3);
    const heritage = this.#memory.heritageOf(codeId);
    // The class above must exist first; all else is used when methods run.
    this.#awaitSlot(slots, heritage);
    const above = heritage < 0 ? undefined : [slots[heritage]];
    const aboveAt = above?.[0] === undefined ? this.#indexIn(slots, heritage) : undefined;
    if (aboveAt !== undefined && this.#isMade[aboveAt] === true) {
      throw this.#unusable(aboveAt, 'the parent of a class is missing');
    }
    const original = this.#memory.original(identity) ?? this.#born(entry, slots[heritage]);
    const known = original ?? this.#memory.cached(identity);
    const isHere = typeof known === 'function';
    const isOpen = isHere && (original !== undefined || this.#classes.canStay(index, known, above));
    if (isOpen) {
      const has = original === undefined ? this.#hasVersion(known) : never;
      const instance = original === undefined ? this.#memory.instanceOf(known) : undefined;
      this.#reused.set(index, has);
      if (instance !== undefined) {
        this.#refills.push({ instance, slots });
        this.#classes.update(known, instance, entry, has);
      }
      this.#done(index, known);
      return;
    }
    const plan = this.#planOf(slots, 'class');
    const instance = this.#memory.instantiate(codeId, slots, plan);
    const made = byUser('a class', () => instance.make([]));
    this.#memory.finish(codeId, made, { instance, self: [], identity });
    this.#memory.remember(identity, made, instance);
    this.#refills.push({ instance, slots });
    this.#classes.add(made, instance, entry, isHere);
    this.#madeHere.add(made);
    this.#done(index, made);
  }

  /** The version of a class that is here; one that this payload brought takes all parts over. */
  #hasVersion(known: AnyFunction): number {
    return this.#madeHere.has(known) ? -1 : this.#memory.versionOf(known);
  }

  /** Makes the value of one slot. */
  #awaitSlot(slots: unknown[], slot: number): void {
    for (const awaited of this.#awaited.get(slots) ?? []) {
      const puts = this.#puts[awaited];
      if (puts?.some((part, at) => part === slot && puts[at - 1] === slots)) {
        this.#makeLate(awaited);
      }
    }
  }

  #prototypeOf(owner: number): unknown {
    if (this.#isMade[owner] !== true) this.#makeLate(owner);
    const value = this.#values[owner];
    if (typeof value !== 'function') throw this.#unusable(owner, 'a prototype has no owner');
    return value.prototype;
  }

  #memberOf(entry: readonly unknown[]): AnyFunction {
    const owner = numberAt(entry, 1);
    if (this.#isMade[owner] !== true) this.#makeLate(owner);
    const found = memberIn(this.#values[owner], entry);
    if (!isCallable(found)) throw corrupt('a class lacks a member');
    return found;
  }

  #bound(index: number, entry: readonly unknown[]): void {
    const cell = this.#list(entry, 1);
    const identity = identityAt(entry, 2);
    const original = this.#memory.original(identity);
    this.#await(cell);
    const [target, self, ...args] = cell;
    if (typeof target !== 'function') {
      throw this.#unusable(this.#indexIn(cell, 0), 'a bound function has no target');
    }
    if (original !== undefined) {
      this.#reused.set(index, never);
      this.#done(index, original);
      return;
    }
    const bound = Function.prototype.bind.call(target, self, ...args);
    rememberForeign(bound, identity);
    this.#memory.own(bound);
    this.#done(index, bound);
  }

  #received(index: number, entry: readonly unknown[]): void {
    const constructorCell = this.#list(entry, 1);
    const dataCell = this.#list(entry, 2);
    this.#await(constructorCell);
    this.#await(dataCell);
    const constructor = constructorCell[0];
    if (typeof constructor !== 'function') {
      throw this.#unusable(this.#indexIn(constructorCell, 0), 'an instance has no class');
    }
    this.#done(index, receiveBy(constructor, dataCell[0], stringAt(entry, 3)));
  }

  #target(value: unknown): object {
    const target = typeof value === 'number' ? this.#values[value] : value;
    const isObject = typeof target === 'object' && target !== null;
    if (!isObject && typeof target !== 'function') {
      throw this.#unusable(typeof value === 'number' ? value : undefined, 'a fix-up has no target');
    }
    return target;
  }

  #setPrototypes(late: boolean): void {
    const { prototypes } = this.#payload;
    for (let at = 0; at < prototypes.length; at += 2) {
      const cell = prototypes[at];
      const [first] = this.#list(prototypes, at + 1);
      const isLate = this.#awaitsLate(cell) || (typeof first === 'number' && this.#isLate(first));
      if (isLate !== late) continue;
      const prototype: unknown = cell === null ? null : this.#list(prototypes, at)[0];
      if (typeof prototype !== 'object' && typeof prototype !== 'function') {
        throw this.#unusable(
          this.#indexIn(this.#list(prototypes, at), 0),
          'a prototype is not an object',
        );
      }
      for (const member of this.#list(prototypes, at + 1)) {
        if (typeof member === 'number' && this.#reused.has(member)) continue;
        Object.setPrototypeOf(this.#target(member), prototype);
      }
    }
  }

  #setProperties(late: boolean): void {
    const { properties } = this.#payload;
    for (let at = 0; at < properties.length; at += 5) {
      const target = properties[at];
      const cell = this.#list(properties, at + 3);
      const isOfLate = typeof target === 'number' && this.#isLate(target);
      const isLate = isOfLate || this.#awaitsLate(cell);
      if (late ? !isLate : isOfLate) continue;
      const has = typeof target === 'number' ? this.#versionOf(target) : undefined;
      if (has !== undefined && numberAt(properties, at + 4) <= has) continue;
      const name = properties[at + 1];
      const key = typeof name === 'number' ? this.#values[name] : name;
      if (typeof key !== 'string' && typeof key !== 'symbol')
        throw corrupt('a property has no key');
      const flags = numberAt(properties, at + 2);
      const isOwn = (flags & notOwn) === 0;
      if (isLate !== late) {
        if (isOwn) reserve(this.#target(target), key); // keeps the order of keys
        continue;
      }
      define(this.#target(target), key, flags, cell);
      const isClosed = isOwn && (flags & propertyFlags.configurable) === 0;
      if (isClosed && this.#isOfClass(target)) for (const part of cell) this.#settle(part);
    }
  }

  /**
   * Records a function under a key of a class that cannot be defined again. Later payloads bring its newer
   * captures, and no other function can replace it.
   */
  #settle(fn: unknown): void {
    if (!isCallable(fn) || settled.has(fn)) return;
    const index = this.#values.indexOf(fn);
    const instance = this.#instances.get(index);
    if (instance === undefined) return; // constant, or no function that was re-created here
    const entry = this.#entry(index);
    this.#memory.remember(identityAt(entry, 2), fn, instance);
    settled.set(fn, numberAt(entry, 1));
    hasSettled = true;
  }

  /** True: a class, its prototype or one of its members, which stay from one payload to the next. */
  #isOfClass(index: unknown): boolean {
    if (typeof index !== 'number') return false;
    const entry = this.#entry(index);
    const isPart = entry[0] === special.prototype || entry[0] === special.member;
    return this.#entry(isPart ? numberAt(entry, 1) : index)[0] === special.class;
  }

  /** The version of a class that was here before this payload; `undefined`: it was not here. */
  #versionOf(index: number): number | undefined {
    const entry = this.#entry(index);
    const isPart = entry[0] === special.prototype || entry[0] === special.member;
    return this.#reused.get(isPart ? numberAt(entry, 1) : index);
  }

  #isLate(index: number): boolean {
    const kind = this.#entry(index)[0];
    return kind === special.bound || kind === special.received;
  }

  #awaitsLate(container: unknown): boolean {
    return (this.#awaited.get(container) ?? []).some((index) => this.#isLate(index));
  }

  #fillCollections(late: boolean): void {
    const { fills } = this.#payload;
    for (let at = 0; at < fills.length; at += 2) {
      const collection = fills[at];
      const entries = this.#list(fills, at + 1);
      if (late && !this.#awaitsLate(entries)) continue;
      if (types.isMap(collection)) {
        if (entries.length % 2 !== 0) throw corrupt('a Map has a key without a value');
        Map.prototype.clear.call(collection);
        for (let i = 0; i < entries.length; i += 2) {
          Map.prototype.set.call(collection, entries[i], entries[i + 1]);
        }
      } else if (types.isSet(collection)) {
        Set.prototype.clear.call(collection);
        for (const entry of entries) Set.prototype.add.call(collection, entry);
      } else throw corrupt('entries belong to a value that is no Map or Set');
    }
  }

  #close(): void {
    const { integrities } = this.#payload;
    for (let at = 0; at < integrities.length; at += 2) {
      const index = integrities[at];
      if (typeof index === 'number' && this.#versionOf(index) === never) continue;
      const target = this.#target(index);
      const how = numberAt(integrities, at + 1);
      if (how === integrity.frozen) Object.freeze(target);
      else if (how === integrity.sealed) Object.seal(target);
      else Object.preventExtensions(target);
      if (how === integrity.nonExtensible || !this.#isOfClass(index)) continue;
      for (const [, { value, get, set }] of descriptorsOf(target)) {
        for (const part of [value, get, set]) this.#settle(part);
      }
    }
  }
}

/** Fix-ups that set no value. */
const notOwn =
  propertyFlags.above | propertyFlags.restored | propertyFlags.absent | propertyFlags.order;

/** Functions under a key that cannot be defined again, with the id of their code. */
const settled = new WeakMap<AnyFunction, number>();
/** Spares all other decoding the lookup. */
let hasSettled = false;

function isDeferred(kind: unknown): boolean {
  return (
    kind === special.class ||
    kind === special.prototype ||
    kind === special.member ||
    kind === special.bound ||
    kind === special.received
  );
}

function callFactory(factory: unknown): unknown {
  if (!isCallable(factory)) throw corrupt('the factory of perWorker is not a function');
  return factory();
}

/** Runs code of the user; its errors do not mean corrupt bytes. */
function byUser<T>(what: string, body: () => T): T {
  try {
    return body();
  } catch (cause) {
    if (cause instanceof CodedError) throw cause;
    throw new CodedError(
      'TRANSFER_UNSUPPORTED',
      `${what} could not be made again on this side: ${messageOf(cause)}`,
      { cause },
    );
  }
}
