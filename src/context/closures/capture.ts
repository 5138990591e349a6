// The scopes around a function, its place and its bound parts, at this moment. The inspector reads them once for
// each piece of code. Where the native reader finds the same names and values there, it reads them from then on.
// Node lists variables at the top of classic scripts by name: a program that has
// none, as nearly all, needs no capture for them, others one for each export.
// Not here: the inspector (inspector.ts), the native reader (closure-reader.ts), the variables that code uses
// (describe.ts).

import { defineOwn, isMainRealm } from '../../lib/index.js';
import type { LearntScopes, NativeClosureReader } from '../../native.js';
import { noteScriptName } from '../modules/scripts.js';
import type { AnyFunction } from '../types.js';
import { closureReader } from './closure-reader.js';
import { type Capture, canInspect, type FunctionLocation, inspectSelf } from './inspector.js';
import { valueIn } from './scopes.js';

interface Known extends LearntScopes {
  readonly location: FunctionLocation | undefined;
}

/** Pieces of code whose scopes are remembered. */
const maxKnown = 10_000;
/** By the number of the native reader. */
const codes = new Map<number, Known>();

/** Stands for the value of a variable whose declaration has not run. */
const unset = Symbol('unset');

/** The context of a scope: that of `fn`, so many steps up. */
class Context {
  readonly fn: AnyFunction;
  readonly depth: number;

  constructor(fn: AnyFunction, depth: number) {
    this.fn = fn;
    this.depth = depth;
  }
}

/** Key of the context in a scope. No WeakMap: scopes are made at each call. */
const contextKey = Symbol('context');

/** The context of a scope; `undefined`: the inspector has shown it. */
export function contextAround(scope: object | undefined): Context | undefined {
  const held: unknown = scope && Reflect.get(scope, contextKey);
  return held instanceof Context ? held : undefined;
}

/** A function of this realm. */
const ofRealm = (): void => {};

/** Captures of one export. */
export class Captures {
  readonly #captures = new Map<AnyFunction, Capture>();
  /** The scope of variables at the top of classic scripts, once it was captured. */
  #ofScripts: object | undefined;

  forget(): void {
    this.#captures.clear();
    this.#ofScripts = undefined;
  }

  of(fn: AnyFunction): Capture {
    const known = this.#captures.get(fn);
    if (known !== undefined) return known;
    const capture = this.#natively(fn) ?? inspected(fn);
    this.#captures.set(fn, capture);
    return capture;
  }

  #natively(fn: AnyFunction): Capture | undefined {
    const reader = codes.size > 0 && isMainRealm ? closureReader() : undefined;
    if (reader === undefined) return undefined;
    const read = readScopes(reader, fn);
    if (read === undefined) return undefined;
    if (scriptVariables().size === 0) return read;
    // One capture by the inspector has the scope that all functions of the realm see.
    this.#ofScripts ??= inspectSelf().capture(fn).ofScripts;
    return withScripts(read, this.#ofScripts);
  }
}

const nothing: ReadonlySet<string> = new Set();
let scriptNames = nothing;
/** The number of contexts of classic scripts with which they had these names; -1: not known. */
let scriptContexts = -1;

/** Names of variables at the top of classic scripts of this realm. */
export function scriptVariables(): ReadonlySet<string> {
  if (!isMainRealm || !canInspect()) return nothing;
  const count = closureReader()?.scriptContexts(ofRealm) ?? -1;
  if (count >= 0 && count === scriptContexts) return scriptNames;
  scriptNames = new Set(inspectSelf().scriptVariables());
  scriptContexts = count;
  return scriptNames;
}

/** True: two scopes that were captured are one; `undefined`: not known. */
export function isSameScope(scope: object, other: object): boolean | undefined {
  const [one, two] = [contextAround(scope), contextAround(other)];
  if (one === undefined || two === undefined) return undefined;
  return closureReader()?.sharesContext(one.fn, one.depth, two.fn, two.depth) ?? undefined;
}

function readScopes(reader: NativeClosureReader, fn: AnyFunction): Capture | undefined {
  const values: unknown[] = [];
  const known = codes.get(reader.readScopes(fn, ofRealm, unset, values));
  if (known === undefined) return undefined;
  let at = 0;
  const scopes = known.names.map((names, order) => {
    const scope: Record<string | symbol, unknown> = Object.create(null);
    for (const name of names) {
      const value = values[at];
      at += 1;
      if (value === unset) defineOwn(scope, name, { get: hasNoValue, enumerable: true });
      else scope[name] = value;
    }
    scope[contextKey] = new Context(fn, known.depths[order] ?? 0);
    return scope;
  });
  const { location, hasThis } = known;
  const read = { scopes, ofScripts: undefined, global: globalThis, location, bound: undefined };
  const value = values[at];
  return hasThis && value !== unset ? { ...read, outerThis: { value } } : read;
}

function hasNoValue(): never {
  throw new ReferenceError('the declaration of this variable has not run');
}

/** Captures by the inspector, and learns the code of `fn`. */
function inspected(fn: AnyFunction): Capture {
  const capture = inspectSelf().capture(fn);
  const reader = isMainRealm && capture.global === globalThis ? closureReader() : undefined;
  if (reader !== undefined && capture.location !== undefined) {
    noteScriptName(capture.location.scriptId, () => reader.scriptName(fn));
  }
  const learnt = reader?.learnScopes(fn) ?? undefined;
  if (reader === undefined || learnt === undefined) return capture;
  codes.set(learnt.number, { ...learnt, location: capture.location });
  const read = readScopes(reader, fn);
  if (read === undefined || !isSame(capture, read)) {
    codes.delete(learnt.number);
    reader.forgetScopes(fn);
    return capture;
  }
  if (codes.size > maxKnown) {
    for (const oldest of codes.keys()) {
      codes.delete(oldest);
      break;
    }
  }
  return withScripts(read, capture.ofScripts);
}

function withScripts(read: Capture, ofScripts: object | undefined): Capture {
  return ofScripts === undefined
    ? read
    : { ...read, scopes: [...read.scopes, ofScripts], ofScripts };
}

/** True: both have the same variables with the same values, in the same scopes. */
function isSame({ scopes, ofScripts }: Capture, read: Capture): boolean {
  const shown = scopes.filter((scope) => scope !== ofScripts && Object.keys(scope).length > 0);
  if (shown.length !== read.scopes.length) return false;
  return shown.every((scope, at) => {
    const other = read.scopes[at] ?? {};
    const names = Object.keys(scope);
    if (names.length !== Object.keys(other).length) return false;
    return names.every(
      (name) => Object.hasOwn(other, name) && Object.is(valueIn(scope, name), valueIn(other, name)),
    );
  });
}
