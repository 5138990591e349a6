// Classes of errors that Node does not export: one for each of its codes, so no name leads to them. Such a
// class is recognized by its effect on an error: the class it shows, the code that its `toString` writes. A
// peer makes one with the same effect, and has one for all errors of a code.
// Not here: classes of Node that can be reached (intrinsics.ts), properties of errors (encode.ts).

import { defineOwn, descriptorOf, jsonOf, type OwnDescriptor, ownValue } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import { internalErrors, nameOfMark } from './internal-errors.js';
import { builtinPath, followPath, nodeModulePath } from './intrinsics.js';
import { twinHere } from './realms.js';
import { isOfNode } from './refuse.js';

/**
 * Prototypes above an error of Node: `[how, text]` of each, flat, then the path of the first that has a name.
 */
export interface NodeErrorParts {
  readonly layers: readonly (string | number)[];
  readonly path: readonly string[];
}

const how = {
  /** `constructor` gives a class above; text: its name */
  shown: 0,
  /**
   * `constructor` gives the class above, errors are marked as Node's; text: code that `toString` writes, or
   * ''
   */
  coded: 1,
  /** A class; text: its name */
  named: 2,
  /** The same, whose `toString` writes the code of the error */
  writing: 3,
} as const;

const known = new WeakMap<object, NodeErrorParts | false>();
const made = new Map<string, object>();

/**
 * The parts of the prototype of an error whose class Node does not export; `undefined`: it is another object.
 */
export function nodeErrorParts(prototype: object): NodeErrorParts | undefined {
  if (!Object.hasOwn(prototype, 'constructor')) return undefined;
  const found = known.get(prototype) ?? findParts(prototype) ?? false;
  known.set(prototype, found);
  return found === false ? undefined : found;
}

function findParts(prototype: object): NodeErrorParts | undefined {
  const layers: (string | number)[] = [];
  for (let at: object | null = prototype; at !== null; at = Object.getPrototypeOf(at)) {
    const path = pathOf(twinHere(at) ?? at);
    if (path !== undefined) {
      return layers.length > 0 && isOfErrors(path) ? { layers, path } : undefined;
    }
    const layer = layerOf(at);
    if (layer === undefined) return undefined;
    layers.push(...layer);
  }
  return undefined;
}

/** A path that is in every process; `undefined`: the prototype has none. */
function pathOf(prototype: object): string[] | undefined {
  const path = builtinPath(prototype) ?? nodeModulePath(prototype) ?? pathOfOwner(prototype);
  return path?.every((key) => typeof key === 'string') === true ? path.map(String) : undefined;
}

function pathOfOwner(prototype: object): (string | symbol)[] | undefined {
  const owner = ownValue(prototype, 'constructor');
  const path = typeof owner === 'function' ? builtinPath(owner) : undefined;
  return path && [...path, 'prototype'];
}

function isOfErrors(path: readonly string[]): boolean {
  // In the main realm, where Node does not export its class.
  for (let at: unknown = followPath(path); at !== null; at = Object.getPrototypeOf(at)) {
    if (typeof at !== 'object' || at === null) return false;
    if ((twinHere(at) ?? at) === Error.prototype) return true;
  }
  return false;
}

function layerOf(prototype: object): [number, string] | undefined {
  const { get, value } = descriptorOf(prototype, 'constructor') ?? {};
  if (get !== undefined) {
    const isMarked = Object.getOwnPropertySymbols(prototype).some(
      (each) => nameOfMark(each) === 'kIsNodeError',
    );
    if (isMarked) return [how.coded, codeOf(prototype)];
    if (Reflect.ownKeys(prototype).length > 1) return undefined;
    const shown: unknown = Reflect.get(prototype, 'constructor');
    return typeof shown === 'function' ? [how.shown, shown.name] : undefined;
  }
  if (typeof value !== 'function' || value.prototype !== prototype || !isOfNode(value)) {
    return undefined;
  }
  const code = codeOf(prototype);
  return [code === sample.code ? how.writing : how.named, value.name];
}

const sample = { name: '', code: '*', message: '' };

/** The code that an own `toString` of Node writes: that of the class, or of the error. */
function codeOf(prototype: object): string {
  const write = ownValue(prototype, 'toString');
  if (typeof write !== 'function') return '';
  return /^ \[(.*)\]: $/.exec(String(Reflect.apply(write, sample, [])))?.[1] ?? '';
}

/** A prototype with the effect of the parts: one for all errors that have the same. */
export function makeNodeErrorPrototype(parts: NodeErrorParts): object {
  const key = jsonOf([parts.layers, parts.path]);
  const before = made.get(key);
  if (before !== undefined) return before;
  let at = Object(followPath(parts.path));
  for (let index = parts.layers.length - 2; index >= 0; index -= 2) {
    at = makeLayer(Number(parts.layers[index]), String(parts.layers[index + 1]), at);
  }
  known.set(at, parts);
  made.set(key, at);
  return at;
}

function makeLayer(kind: number, text: string, above: object): object {
  const base = constructorOf(above, kind === how.shown ? text : undefined);
  if (kind === how.named || kind === how.writing) {
    const prototype = classNamed(text, base, above);
    if (kind === how.writing) addWriter(prototype, undefined);
    return prototype;
  }
  const prototype: object = Object.create(above);
  hide(prototype, 'constructor', { get: () => base });
  if (kind !== how.coded) return prototype;
  if (text !== '') addWriter(prototype, text);
  hide(prototype, internalErrors.kIsNodeError(), { get: () => true });
  return prototype;
}

/** The constructor of the first above of that name. */
function constructorOf(above: object, name: string | undefined): unknown {
  const first: unknown = Reflect.get(above, 'constructor');
  if (name === undefined) return first;
  for (let at: object | null = above; at !== null; at = Object.getPrototypeOf(at)) {
    const found: unknown = Reflect.get(at, 'constructor');
    if (typeof found === 'function' && found.name === name) return found;
  }
  return first;
}

/** The prototype of a class of this name that can have no other instance. */
function classNamed(name: string, base: unknown, above: object): object {
  const named = (): never => {
    throw new TypeError(`${name} is a class of Node.js that only Node.js makes instances of`);
  };
  hide(named, 'name', { value: name });
  if (typeof base === 'function') Object.setPrototypeOf(named, base);
  const prototype: object = Object.create(above);
  hide(prototype, 'constructor', { value: named, writable: true });
  defineOwn(named, 'prototype', { value: prototype, writable: false });
  return prototype;
}

function addWriter(prototype: object, code: string | undefined): void {
  const write = function (this: Record<string, unknown>): string {
    return `${this['name']} [${code ?? this['code']}]: ${this['message']}`;
  };
  hide(write, 'name', { value: 'toString' });
  hide(prototype, 'toString', { value: write, writable: true });
}

function hide(target: object, key: string | symbol, descriptor: OwnDescriptor): void {
  defineOwn(target, key, { ...descriptor, enumerable: false, configurable: true });
}

/**
 * True: `value` is an error of Node that has `info` of a system call, and shows parts of that by accessors.
 */
export function isSystemError(value: object): boolean {
  return (
    Object.hasOwn(value, 'info') &&
    Object.prototype.isPrototypeOf.call(internalErrors.SystemError().prototype, value)
  );
}

/** Half of an accessor of such an error: of `key` in the present object in `cell`. */
export function infoAccessor(
  isSetter: boolean,
  key: string,
  cell: readonly unknown[],
): AnyFunction {
  const info = (): object => Object(cell[0]);
  return isSetter
    ? (value: unknown) => {
        Reflect.set(info(), key, value);
      }
    : () => Reflect.get(info(), key);
}
