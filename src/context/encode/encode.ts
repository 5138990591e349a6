// Copies a value's graph into a payload (protocol.ts): plain objects as plain objects, so that V8 keeps
// identity and cycles. Everything that V8 would lose becomes specials and fix-ups beside them. Called only
// when isPlain() returned false, or V8 refused: this half is for what is special. Long (over 400 lines),
// because each kind of object has its own way to lose something.
// Not here: functions and classes (functions.ts), the parts of errors (error-parts.ts), the way back
// (decode.ts).

import { AsyncLocalStorage } from 'node:async_hooks';
import { Dirent } from 'node:fs';
import * as types from 'node:util/types';
import { CodedError } from '../../errors.js';
import {
  defineOwn,
  descriptorOf,
  hasMorePrivates,
  hasPrivateMembers,
  isBare,
  isIndex,
  isPlainArray,
  isSameClass,
  jsonOf,
  type OwnDescriptor,
  ownValue,
  Parcel,
} from '../../lib/index.js';
import type { Sharer, User } from '../closures/sharing.js';
import type { Around } from '../modules/owners.js';
import { Roads } from '../modules/roads.js';
import { integrity, propertyFlags, special } from '../protocol.js';
import type { TextMember } from '../text/text-members.js';
import type { AnyFunction, BufferCarrier } from '../types.js';
import { dataBy, isReceivedClass, send, sendHook } from '../values/hooks.js';
import { nameOfMark } from '../values/internal-errors.js';
import { builtinPath, nodeModulePath, standardStreamPath } from '../values/intrinsics.js';
import { nodeErrorParts } from '../values/node-errors.js';
import { isPlainPrimitive } from '../values/plain.js';
import { makePlatform, type Parts, platformParts } from '../values/platform.js';
import { prototypeHere } from '../values/realms.js';
import {
  joinPath,
  nameOfClass,
  plainResult,
  refusalOf,
  refuse,
  refuseStamped,
  type Step,
  transferError,
} from '../values/refuse.js';
import { paramsOf } from '../values/urls.js';
import { always } from '../values/versions.js';
import {
  addInfoAccessor,
  errorBase,
  errorPrototypes,
  isEnhancer,
  propertyOf,
  stackOf,
} from './error-parts.js';
import { isLeaf, leafPrototype } from './leaves.js';

/** Writes functions and classes into a graph; returns the index of the special. */
export interface FunctionEncoder {
  encodeFunction(fn: AnyFunction, graph: Graph): number;
  /** The same for an object that is a module; `undefined`: it is none. */
  encodeModule(value: object, graph: Graph): number | undefined;
  /**
   * Names the import that a frozen object is, to be used where it holds the same; `undefined`: it is none.
   */
  frozenImport(value: object, graph: Graph): readonly unknown[] | undefined;
  /** The same for a symbol that is a variable of a module. */
  encodeSymbol(value: symbol, graph: Graph): number | undefined;
  /** The place where the modules of its classes keep a part of `value`; `undefined`: nowhere. */
  hiddenState(value: object): string | undefined;
  /** The scopes that the code of `fn` sees; `undefined`: they cannot be read. */
  around(fn: AnyFunction): Around | undefined;
  identify(value: AnyFunction | symbol | object): readonly [number, number];
}

/** Thrown inside a graph that must be constant, when a part of it can change. Never leaves the exporter. */
export const changeable = Symbol('changeable');

/** Thrown in the same way for a part that has a copy in this export already. */
export const notNow = Symbol('not now');

/** Longer arrays may be all holes: they are copied by their keys. */
const maxElements = 10_000_000;

export class Graph {
  readonly root: unknown[] = [0];
  readonly specials: unknown[][] = [];
  readonly puts: unknown[] = [];
  readonly prototypes: unknown[] = [];
  readonly properties: unknown[] = [];
  readonly fills: unknown[] = [];
  readonly integrities: unknown[] = [];
  readonly stores: unknown[] = [];
  /** Definitions that the peer needs first, in order. */
  readonly definitions = new Set<number>();
  /** Captured AsyncLocalStorages. */
  readonly captured = new Set<AsyncLocalStorage<unknown>>();
  /** In a constant graph: functions and classes that travel as code. */
  readonly functions: AnyFunction[] = [];
  /** In a constant graph: functions that its code uses as values, beyond calling them. */
  readonly seen = new Set<unknown>();
  /** In a constant graph: functions that the texts of its classes make, each with its class. */
  readonly watched = new Map<AnyFunction, AnyFunction>();
  /** Functions that were written before the classes whose texts make them: then they are two. */
  readonly strays = new Map<AnyFunction, AnyFunction>();
  /** Functions that the texts of classes of this graph make, by the fields of `special.member`. */
  readonly #members = new Map<unknown, unknown[]>();
  /** True: nothing in this graph may be able to change between two calls. */
  readonly isConstant: boolean;
  /** Users of each variable: see sharing.ts. */
  readonly variables = new Map<string, User[]>();
  readonly globals = new Map<string | symbol, Sharer[]>();
  /** Globals that cannot travel, each with its refusal. */
  readonly refused = new Map<string | symbol, CodedError>();
  /** In a constant graph: tests whether a global that one of its functions uses has appeared since. */
  readonly appearances: (() => boolean)[] = [];
  readonly roads = new Roads();
  /** True: functions of the graph share a variable, so it is written again, with cells. */
  isStale = false;
  /** Values that are posted beside the bytes. */
  parcel: Parcel | undefined;
  /** For the values of this graph alone. */
  readonly carrier: BufferCarrier | undefined;
  readonly #cells = new Map<unknown, unknown[]>();
  readonly #functions: FunctionEncoder;
  readonly #copies = new Map<object, object>();
  readonly #indices = new Map<unknown, number>();
  /** URLs by their `searchParams`. */
  readonly #urls = new Map<object, number>();
  readonly #groups = new Map<object | null, (object | number)[]>();
  /** Objects that were met more than once. */
  readonly #again = new Set<unknown>();
  /** Static objects of classes, and where their version is written. */
  readonly #statics: { readonly held: object; readonly list: unknown[]; readonly at: number }[] =
    [];
  /** The objects that are being written, outermost first. */
  readonly holders: object[] = [];
  /** Path to the present value, for error messages. */
  readonly path: Step[];
  /** The last value without private members: those of its hidden class have none. */
  #copyable: object = this.root;

  constructor(
    functions: FunctionEncoder,
    what: string,
    isConstant: boolean,
    carrier: BufferCarrier | undefined,
  ) {
    this.carrier = carrier;
    this.#functions = functions;
    this.path = [what];
    this.isConstant = isConstant;
  }

  /** The whole payload, in the form that `parsePayload` reads. */
  payload(): unknown[] {
    this.#renewStatics();
    return [
      this.root,
      this.specials,
      this.puts,
      this.prototypes,
      this.properties,
      this.fills,
      this.integrities,
      this.stores,
    ];
  }

  /** Notes that a class holds `held`, and that `list[at]` is the version in which that began. */
  noteStatic(held: unknown, list: unknown[], at: number): void {
    if (typeof held === 'object' && held !== null) this.#statics.push({ held, list, at });
  }

  /**
   * A peer that has a class keeps its static objects where they have not changed. When one of them is met
   * elsewhere too (an argument, another static), all are renewed, so that it is one object there as well.
   */
  #renewStatics(): void {
    if (!this.#statics.some(({ held }) => this.#again.has(held))) return;
    for (const { list, at } of this.#statics) list[at] = always;
  }

  /** Sets `container[key]` to `value`, now or by a fix-up. */
  set(container: object, key: string | number, value: unknown): void {
    if (isPlainPrimitive(value)) {
      assign(container, key, value);
      return;
    }
    if (this.isConstant && typeof value === 'function') this.seen.add(value);
    const index = this.#special(value);
    if (index >= 0) {
      this.put(container, key, index);
    } else if (typeof value === 'object' && value !== null) {
      assign(container, key, this.#copy(value));
    }
  }

  /** The same for a function that is only called here: its properties do not count by this use. */
  setCalled(container: object, key: string | number, fn: AnyFunction): void {
    this.put(container, key, this.#special(fn));
  }

  /** Puts the special at `index` into `container[key]`. */
  put(container: object, key: string | number, index: number): void {
    assign(container, key, 0); // keeps the order of keys
    this.puts.push(container, key, index);
  }

  /** `[value]`, for fix-ups whose value may be special. */
  cell(...values: readonly unknown[]): unknown[] {
    const cell: unknown[] = values.map(() => 0);
    for (const [index, value] of values.entries()) this.set(cell, index, value);
    return cell;
  }

  /** The cell that functions share under `key`: the content of a slot of each of them. */
  sharedCell(key: unknown, value: unknown): unknown[] {
    const known = this.#cells.get(key);
    if (known !== undefined) return known;
    const cell: unknown[] = [0];
    this.#cells.set(key, cell);
    this.set(cell, 0, value);
    return cell;
  }

  /** The same with a path segment around it. */
  at<T>(segment: Step, body: () => T): T {
    this.path.push(segment);
    const result = body();
    this.path.pop();
    return result;
  }

  /** Writes the global `name`; a refusal is deferred until all functions of the call are found. */
  attempt(name: string | symbol, body: () => void): void {
    const [steps, holders] = [this.path.length, this.holders.length];
    try {
      body();
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      this.refused.set(name, error);
      this.path.length = steps;
      this.holders.length = holders;
    }
  }

  /** A new special for `value`; its parts may be pushed into `entry` afterwards. */
  add(value: unknown, entry: unknown[]): number {
    const index = this.specials.length;
    this.specials.push(entry);
    this.#indices.set(value, index);
    return index;
  }

  /** Notes that the text of `owner`, a class at `index`, makes the function of `member`. */
  noteMember({ fn, target, key, part }: TextMember, owner: AnyFunction, index: number): void {
    if (this.#members.has(fn)) return;
    const isStatic = target === owner ? 1 : 0;
    this.#members.set(fn, [special.member, index, isStatic, [key], part]);
    if (this.#indices.has(fn)) this.strays.set(fn, owner);
  }

  /** The index of the special for a member of a class that was written before; `undefined`: it is none. */
  memberIndex(fn: AnyFunction): number | undefined {
    const known = this.#indices.get(fn);
    const entry = this.#members.get(fn);
    if (known !== undefined || entry === undefined) return known;
    const [kind, owner, isStatic, key, part] = entry;
    const cell = Array.isArray(key) ? this.cell(...key) : [];
    return this.add(fn, [kind, owner, isStatic, cell, part]);
  }

  /** True: `value` is in the graph already. */
  holds(value: object): boolean {
    return this.#copies.has(value) || this.#indices.has(value) || this.#urls.has(value);
  }

  /** Makes the root a function without parameters that calls `fn` with `args`. */
  setCall(fn: AnyFunction, args: readonly unknown[]): void {
    const cell = this.cell(fn, undefined);
    const outer = this.path.splice(0, this.path.length, 'the arguments');
    for (const [at, arg] of args.entries()) {
      cell.push(0);
      this.path.push(at);
      this.set(cell, at + 2, arg);
      this.path.pop();
    }
    this.path.splice(0, this.path.length, ...outer);
    const index = this.add(args, [special.bound, cell, this.#functions.identify(cell)]);
    this.put(this.root, 0, index);
  }

  /** Number of fix-ups written so far: properties, prototypes, integrity. */
  get additions(): number {
    return this.properties.length + this.prototypes.length + this.integrities.length;
  }

  /** True: nothing is written beside specials, the places where they are put, entries and prototypes. */
  get hasNoFixUps(): boolean {
    const more = [this.stores, this.properties, this.integrities];
    const isMore = this.parcel !== undefined || this.captured.size > 0 || this.refused.size > 0;
    return more.every(({ length }) => length === 0) && !isMore && this.strays.size === 0;
  }

  indexOf(value: unknown): number | undefined {
    return this.#indices.get(value);
  }

  /** The modules of which the call has imports and copies (roads.ts). */
  meeting(): Set<string> {
    const around = (fn: AnyFunction) => this.#functions.around(fn);
    return this.roads.meeting({ objects: this.#copied(), around });
  }

  *#copied(): Iterable<object> {
    for (const value of this.#copies.keys()) {
      // An import may have been met after its copy, but a frozen object has its copy beside its name.
      const kind = this.specials[this.#indices.get(value) ?? -1]?.[0];
      if (kind !== special.frozen) yield value;
    }
  }

  /** True: `value` is no copy here. */
  isByName(value: unknown): boolean {
    const kind = this.specials[this.#indices.get(value) ?? -1]?.[0];
    return kind === special.imported || kind === special.frozen || kind === special.builtin;
  }

  /** The index of the special for `value`, made when needed; -1: it is a plain copy. */
  #special(value: unknown): number {
    const known = this.#indices.get(value);
    if (known !== undefined) {
      this.#again.add(value);
      this.roads.addAgain(value);
      return known;
    }
    if (typeof value === 'function') return this.#functions.encodeFunction(value, this);
    if (typeof value === 'symbol') return this.#symbol(value);
    if (typeof value !== 'object' || value === null || this.#copies.has(value)) return -1;
    const frozen = this.#functions.frozenImport(value, this);
    if (frozen !== undefined) return this.#frozen(value, frozen);
    if (isOrdinary(value)) return -1;
    const path = builtinPath(value);
    if (path !== undefined) return this.add(value, [special.builtin, ...this.#path(path)]);
    return this.#specialObject(value);
  }

  /** An import of the peer, with a copy for a peer whose module holds something else. */
  #frozen(value: object, named: readonly unknown[]): number {
    const cell: unknown[] = [0];
    const index = this.add(value, [...named, cell]);
    cell[0] = this.#copy(value);
    return index;
  }

  #path(path: readonly (string | symbol)[]): unknown[] {
    return path.map((key) => (typeof key === 'symbol' ? [wellKnownName(key)] : key));
  }

  addBuiltin(value: unknown, path: readonly (string | symbol)[]): number {
    return this.add(value, [special.builtin, ...this.#path(path)]);
  }

  #symbol(value: symbol): number {
    const key = Symbol.keyFor(value);
    if (key !== undefined) return this.add(value, [special.registeredSymbol, key]);
    const name = wellKnownName(value);
    if (name !== '') return this.add(value, [special.builtin, 'Symbol', name]);
    const mark = nameOfMark(value);
    if (mark !== undefined) return this.addBuiltin(value, [`@${mark}`]);
    const named = this.#functions.encodeSymbol(value, this);
    if (named !== undefined) return named;
    const identity = this.#functions.identify(value);
    return this.add(value, [special.symbol, identity, value.description]);
  }

  /** Objects that are re-created from their kind, not from their properties. */
  #specialObject(value: object): number {
    if (types.isProxy(value)) {
      // Before one of its traps is called.
      return this.#functions.encodeModule(value, this) ?? refuse(value, this.path);
    }
    const ofNode = nodeErrorParts(value);
    if (ofNode !== undefined) {
      return this.add(value, [special.nodeError, ofNode.layers, ofNode.path]);
    }
    const stream = standardStreamPath(value);
    if (stream !== undefined) return this.addBuiltin(value, stream);
    const hook = sendHook(value);
    if (hook !== undefined) return this.#sent(value, hook);
    const live = this.#live(value);
    if (live >= 0) return live;
    const platform = platformParts(value);
    if (platform !== undefined) return this.#platform(value, platform);
    if (types.isNativeError(value)) return this.#error(value);
    if (types.isSymbolObject(value)) {
      if (!this.#isCopyable(value)) refuse(value, this.path);
      const symbol = this.#symbol(value.valueOf());
      return this.#made(value, [special.boxedSymbol, symbol], Symbol.prototype);
    }
    if (types.isArrayBuffer(value)) return this.#buffer(value);
    if (types.isArgumentsObject(value)) return this.#arguments(value);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (value instanceof URL && prototype === URL.prototype) {
      this.#mustBeUnstamped(value, () => new URL(value.href));
      return this.#url(value);
    }
    if (value instanceof URLSearchParams && prototype === URLSearchParams.prototype) {
      this.#mustBeUnstamped(value, () => new URLSearchParams());
      const url = this.#urls.get(value);
      const entry = [special.searchParams, value.toString(), ...(url === undefined ? [] : [url])];
      return this.#made(value, entry, prototype);
    }
    if (value instanceof AsyncLocalStorage && prototype === AsyncLocalStorage.prototype) {
      this.#mustBeUnstamped(value, () => new AsyncLocalStorage());
      this.captured.add(value);
      return this.add(value, [special.asyncLocalStorage, this.#functions.identify(value)]);
    }
    const path = isHolder(value) ? nodeModulePath(value) : undefined;
    if (path !== undefined) return this.addBuiltin(value, path);
    const module = this.#functions.encodeModule(value, this);
    if (module !== undefined) return module;
    const owner = ownerOf(value);
    if (owner !== undefined) {
      const index = this.at('.constructor', () => this.#functions.encodeFunction(owner, this));
      return this.add(value, [special.prototype, index]);
    }
    return -1;
  }

  /** Writes a URL. Its `searchParams` may come before or after it. */
  #url(value: URL): number {
    const index = this.#made(value, [special.url, value.href], URL.prototype);
    const params = paramsOf(value);
    if (params === undefined) return index;
    this.#urls.set(params, index);
    this.specials[this.#indices.get(params) ?? -1]?.push(index);
    return index;
  }

  /** A value that another thread gets as it is; -1: it is none, or the peer is no thread of this process. */
  #live(value: object): number {
    const carried = this.carrier?.carry?.(value);
    if (carried === undefined) return -1;
    this.#mustBeConstant();
    const isMemory = ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
    if (isMemory) this.mustBeWhole(value);
    if (isMemory && !this.#isCopyable(value)) refuse(value, this.path);
    this.parcel ??= new Parcel();
    const at = this.parcel.add(value, carried.moved);
    const index = this.add(value, [special.live, this.parcel.id, at]);
    if (!isMemory) return index;
    this.holders.push(value);
    this.#propertiesOfLeaf(index, value);
    // A Buffer arrives as a Uint8Array.
    const arriving = Buffer.isBuffer(value) ? Uint8Array.prototype : leafPrototype(value);
    this.#finish(index, value, arriving);
    return index;
  }

  #sent(value: object, hook: AnyFunction): number {
    this.#mustBeConstant();
    const constructor: unknown = value.constructor;
    if (!isReceivedClass(constructor)) refuse(value, this.path);
    const data = dataBy(hook, value, this.path);
    const where = joinPath(this.path);
    const classCell = this.cell(constructor);
    const dataCell = this.at("[Symbol.for('manycore.send')]()", () => this.cell(data));
    return this.add(value, [special.received, classCell, dataCell, where]);
  }

  #error(value: Error): number {
    this.#mustBeConstant();
    this.mustBeWhole(value);
    if (!this.#isCopyable(value)) refuse(value, this.path);
    const stack = stackOf(value);
    const index = this.add(value, [special.error, errorBase(value), stack]);
    this.holders.push(value);
    for (const key of Reflect.ownKeys(value)) {
      if (key === 'stack' && stack !== undefined) continue;
      if (isEnhancer(key)) continue;
      if (!addInfoAccessor(this, index, value, key)) this.#property(index, value, key);
    }
    this.holders.pop();
    this.#prototype(index, value, errorPrototypes());
    this.#close(index, value);
    return index;
  }

  /** An object that the peer makes by `entry`, with the properties that were set on it. */
  #made(value: object, entry: unknown[], prototype: object): number {
    this.#mustBeConstant();
    const index = this.add(value, entry);
    this.holders.push(value);
    for (const key of Reflect.ownKeys(value)) this.#property(index, value, key);
    this.#finish(index, value, prototype);
    return index;
  }

  /** Symbol keys of such objects are Node's own. */
  #platform(value: object, [kind, parts]: readonly [kind: number, parts: Parts]): number {
    this.#mustBeConstant();
    this.mustBeWhole(value);
    if (value instanceof DOMException && !this.#isCopyable(value)) refuse(value, this.path);
    this.#mustBeUnstamped(value, () => makePlatform(kind, parts));
    const index = this.add(value, [special.platform, kind, parts]);
    this.holders.push(value);
    for (const key of Object.getOwnPropertyNames(value)) {
      const isMade = key === 'stack' || value instanceof Dirent;
      if (!isMade) this.#property(index, value, key);
    }
    this.holders.pop();
    if (value instanceof DOMException) {
      this.#prototype(index, value, new Set([DOMException.prototype]));
    }
    this.#close(index, value);
    return index;
  }

  /** Written by a view of all of it: V8's serializer passes views to us, but not the buffers themselves. */
  #buffer(value: ArrayBuffer): number {
    this.mustBeWhole(value);
    if (refusalOf(value) !== undefined || !this.#isCopyable(value)) refuse(value, this.path);
    return this.#made(value, [special.buffer, new Uint8Array(value)], ArrayBuffer.prototype);
  }

  /**
   * Arrives as a strict one, whose `callee` throws: that of a sloppy function would bring the function along.
   */
  #arguments(value: object): number {
    this.#mustBeConstant();
    if (!this.#isCopyable(value)) refuse(value, this.path);
    const index = this.add(value, [special.arguments]);
    this.holders.push(value);
    for (const key of Reflect.ownKeys(value)) {
      if (key !== 'callee' && key !== Symbol.iterator) this.#property(index, value, key);
    }
    this.#finish(index, value, Object.prototype);
    return index;
  }

  /** The object of the payload that stands for `value`. */
  #copy(value: object): object {
    const known = this.#copies.get(value);
    if (known !== undefined) {
      this.#again.add(value);
      return known;
    }
    this.#mustBeConstant();
    this.mustBeWhole(value);
    if (!this.#isCopyable(value)) refuse(value, this.path);
    if (isOrdinary(value)) return this.#object(value);
    if (refusalOf(value) !== undefined) refuse(value, this.path);
    if (Array.isArray(value)) return this.#array(value);
    if (types.isMap(value)) return this.#map(value);
    if (types.isSet(value)) return this.#set(value);
    if (isLeaf(value)) return this.#leaf(value);
    rememberOrdinary(value);
    return this.#object(value);
  }

  /** Refuses a value of which a copy would lose a part: one in a module that the worker loads for itself. */
  mustBeWhole(value: object): void {
    const prototype: object | null = Object.getPrototypeOf(value);
    if (prototype === null || prototype === Object.prototype || prototype === Array.prototype)
      return;
    if (prototype === Function.prototype) return;
    const where = this.#functions.hiddenState(value);
    if (where === undefined) return;
    if (refusalOf(value) !== undefined) refuse(value, this.path); // it has a way out of its own
    const why =
      `the module of its class, or one that this uses, keeps a part of it ${where}, which a copy cannot hold; ` +
      (this.path[0] === 'the result'
        ? plainResult
        : 'make it inside the function, or once per worker: perWorker(() => …)');
    throw transferError(
      'TRANSFER_UNSUPPORTED',
      this.path,
      `it is an instance of ${nameOfClass(value)}: ${why}`,
    );
  }

  /** Refuses an object of Node with private members of a user's class. Node's own come with `like`. */
  #mustBeUnstamped(value: object, like: () => object): void {
    if (hasMorePrivates(value, like)) refuseStamped(value, this.path);
  }

  /** True: it has no private members, which nothing here can read. */
  #isCopyable(value: object): boolean {
    if (isSameClass(this.#copyable, value)) return true;
    if (types.isProxy(value)) return true; // refused as one
    if (hasPrivateMembers(value)) return false;
    this.#copyable = value;
    return true;
  }

  #mustBeConstant(): void {
    if (this.isConstant) throw changeable;
  }

  #array(value: unknown[]): object {
    const copy: unknown[] = [];
    this.#begin(value, copy);
    copy.length = value.length;
    if (isPlainArray(value) && value.length <= maxElements) {
      for (let index = 0; index < value.length; index += 1) {
        if (Object.hasOwn(value, index)) this.#element(copy, index, value[index]);
      }
    } else {
      for (const key of Reflect.ownKeys(value)) this.#arrayKey(copy, value, key);
    }
    this.#finish(copy, value, Array.prototype);
    return copy;
  }

  #arrayKey(copy: unknown[], value: unknown[], key: string | symbol): void {
    const descriptor = descriptorOf(value, key);
    if (key === 'length' && descriptor?.writable === true) return;
    const isElement = typeof key === 'string' && isIndex(key) && isData(descriptor);
    if (isElement) this.#element(copy, Number(key), descriptor?.value);
    else this.#property(copy, value, key);
  }

  #element(copy: unknown[], index: number, value: unknown): void {
    if (isPlainPrimitive(value)) copy[index] = value;
    else {
      this.path.push(index);
      this.set(copy, index, value);
      this.path.pop();
    }
  }

  #map(value: Map<unknown, unknown>): object {
    const copy = new Map();
    this.#begin(value, copy);
    const entries: unknown[] = [];
    for (const [key, entry] of Map.prototype.entries.call(value)) {
      const at = entries.push(0, 0) - 2;
      this.at('key of the Map', () => this.set(entries, at, key));
      this.at(`.get(${shown(key)})`, () => this.set(entries, at + 1, entry));
    }
    this.fills.push(copy, entries);
    for (const key of Reflect.ownKeys(value)) this.#property(copy, value, key);
    this.#finish(copy, value, Map.prototype);
    return copy;
  }

  #set(value: Set<unknown>): object {
    const copy = new Set();
    this.#begin(value, copy);
    const entries: unknown[] = [];
    for (const entry of Set.prototype.values.call(value)) {
      const at = entries.push(0) - 1;
      this.at('element of the Set', () => this.set(entries, at, entry));
    }
    this.fills.push(copy, entries);
    for (const key of Reflect.ownKeys(value)) this.#property(copy, value, key);
    this.#finish(copy, value, Set.prototype);
    return copy;
  }

  /** Dates, regular expressions, buffers, views, boxed primitives: V8 writes them. */
  #leaf(value: object): object {
    this.#begin(value, value);
    this.#propertiesOfLeaf(value, value);
    this.#finish(value, value, leafPrototype(value));
    return value;
  }

  #propertiesOfLeaf(target: object | number, value: object): void {
    // A list of the names of a view holds a text for each element.
    const own = ArrayBuffer.isView(value) && isBare(value) ? [] : Reflect.ownKeys(value);
    for (const key of own) {
      if (typeof key === 'string' && (key === 'length' || isIndex(key))) continue;
      this.#property(target, value, key);
    }
  }

  #object(value: object): object {
    const copy: Record<string, unknown> = {};
    this.#begin(value, copy);
    const symbols = Object.getOwnPropertySymbols(value);
    const names = Object.getOwnPropertyNames(value);
    for (const key of symbols.length === 0 ? names : [...names, ...symbols]) {
      const descriptor = descriptorOf(value, key);
      if (descriptor === undefined) continue;
      const isOrdinary =
        typeof key === 'string' &&
        descriptor.enumerable === true &&
        descriptor.writable === true &&
        descriptor.configurable === true;
      if (!isOrdinary) {
        if (typeof key === 'string') assign(copy, key, 0); // keeps the order of keys
        this.#property(copy, value, key);
      } else if (isPlainPrimitive(descriptor.value)) assign(copy, key, descriptor.value);
      else this.at(`.${key}`, () => this.set(copy, key, descriptor.value));
    }
    this.#finish(copy, value, Object.prototype);
    return copy;
  }

  /** A property with its whole descriptor. `target`: the copy, or a special. */
  #property(target: object | number, value: object, key: string | symbol, since = 0): void {
    const descriptor = propertyOf(value, key);
    if (descriptor === undefined) return;
    const isAccessor = descriptor.get !== undefined || descriptor.set !== undefined;
    const flags =
      (descriptor.enumerable === true ? propertyFlags.enumerable : 0) |
      (descriptor.writable === true ? propertyFlags.writable : 0) |
      (descriptor.configurable === true ? propertyFlags.configurable : 0) |
      (isAccessor ? propertyFlags.accessor : 0);
    const cell = this.at(typeof key === 'symbol' ? `[${String(key)}]` : `.${key}`, () =>
      isAccessor ? this.cell(descriptor.get, descriptor.set) : this.cell(descriptor.value),
    );
    const name = typeof key === 'symbol' ? this.#special(key) : key;
    this.properties.push(target, name, flags, cell, since);
  }

  /** A property of a function or class that its text does not make. `since`: see classes.ts. */
  addProperty(index: number, value: object, key: string | symbol, since = 0): void {
    this.#property(index, value, key, since);
    const held: unknown = ownValue(value, key);
    this.noteStatic(held, this.properties, this.properties.length - 1);
  }

  /** Notes that a function or class lacks a property that its text makes, or has that one again. */
  addAbsence(index: number, key: string | symbol, since = 0, isRestored = false): void {
    const name = typeof key === 'symbol' ? this.#special(key) : key;
    const flags = isRestored ? propertyFlags.restored : propertyFlags.absent;
    this.properties.push(index, name, flags, [], since);
  }

  /** Writes the order of the keys of a function, class or prototype. */
  addOrder(index: number, keys: readonly (string | symbol)[], since = 0): void {
    this.properties.push(index, '', propertyFlags.order, this.cell(...keys), since);
  }

  /** Writes that a class, or its prototype, inherits from `above`, also for a copy that exists already. */
  addClassAbove(index: number, above: object | null, since: number): void {
    const cell = this.at('its prototype', () => this.cell(above));
    this.properties.push(index, '__proto__', propertyFlags.above, cell, since);
  }

  /** Gives the special at `index` the integrity of `value`: frozen, sealed or non-extensible. */
  addIntegrity(index: number, value: object): void {
    this.#close(index, value);
  }

  /** Gives the special at `index` the prototype `prototype`. */
  addPrototype(index: number, prototype: object | null): void {
    this.prototypes.push(prototype === null ? null : this.cell(prototype), [index]);
  }

  #begin(value: object, copy: object): void {
    this.#copies.set(value, copy);
    this.holders.push(value);
  }

  #finish(copy: object | number, value: object, expected: object | undefined): void {
    this.holders.pop();
    this.#prototype(copy, value, new Set([expected]));
    this.#close(copy, value);
  }

  #close(target: object | number, value: object): void {
    if (Object.isExtensible(value)) return;
    // V8 reports a sealed function whose prototype can be replaced as frozen.
    const isOpen = typeof value === 'function' && descriptorOf(value, 'prototype')?.writable;
    const how =
      Object.isFrozen(value) && isOpen !== true
        ? integrity.frozen
        : Object.isSealed(value)
          ? integrity.sealed
          : integrity.nonExtensible;
    this.integrities.push(target, how);
  }

  #prototype(target: object | number, value: object, expected: ReadonlySet<unknown>): void {
    const prototype = prototypeHere(value);
    if (expected.has(prototype)) return;
    const group = this.#groups.get(prototype);
    if (group !== undefined) {
      group.push(target);
      return;
    }
    const members = [target];
    this.#groups.set(prototype, members);
    const at = this.prototypes.push(null, members) - 2;
    if (prototype === null) return;
    this.prototypes[at] = this.at('its prototype', () => this.cell(prototype));
  }
}

/** Prototypes of the user's classes up to `Object` whose instances may travel. */
const ordinaryPrototypes = new WeakSet<object>();

/** True: an earlier instance of the same class consisted of its properties alone. */
function isOrdinary(value: object): boolean {
  if (types.isProxy(value)) return false;
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null || !ordinaryPrototypes.has(prototype)) return false;
  return !(send in value) && !Object.hasOwn(value, 'constructor');
}

function rememberOrdinary(value: object): void {
  const first: object | null = Object.getPrototypeOf(value);
  if (first === null || first === Object.prototype) return;
  for (let at: object | null = first; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    if (at === null || builtinPath(at) !== undefined || nodeModulePath(at) !== undefined) return;
  }
  ordinaryPrototypes.add(first);
}

function assign(container: object, key: string | number, value: unknown): void {
  // An inherited key may be `__proto__`, read-only, or a setter that was added to `Object.prototype`.
  if (key in container && !Object.hasOwn(container, key)) {
    defineOwn(container, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  } else Reflect.set(container, key, value);
}

function wellKnownName(value: symbol): string {
  const name = value.description?.startsWith('Symbol.') ? value.description.slice(7) : '';
  return name !== '' && Reflect.get(Symbol, name) === value ? name : '';
}

/** The class whose `prototype` this is. */
export function ownerOf(value: unknown): AnyFunction | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const descriptor = descriptorOf(value, 'constructor');
  const owner: unknown = descriptor?.value;
  return typeof owner === 'function' && owner.prototype === value ? owner : undefined;
}

/** True: it may be a module of Node: a namespace, or an object with functions of Node. */
function isHolder(value: object): boolean {
  if (types.isModuleNamespaceObject(value)) return true;
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return false;
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    const descriptor = descriptorOf(value, key);
    if (typeof descriptor?.value === 'function' || descriptor?.get !== undefined) return true;
  }
  return ownerOf(value) !== undefined;
}

/** True: a property as an assignment makes it. */
export function isData(descriptor: OwnDescriptor | undefined): boolean {
  return (
    descriptor?.writable === true &&
    descriptor.enumerable === true &&
    descriptor.configurable === true
  );
}

function shown(key: unknown): string {
  return typeof key === 'string' ? jsonOf(key) : typeof key === 'object' ? '{…}' : String(key);
}
