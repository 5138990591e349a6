// The meaning of `this` and `arguments` in an arrow: those of the function or the class field around it. The
// source may put an arrow on its object: `field = () => …`, or `this.name = () => …` in a constructor or
// method of it, also under a computed key. Such an arrow has that object as `this`, so it is bound to the
// copy. Otherwise `this` is read natively, or else from the frame that made the arrow, while that still runs.
// Not here: captured variables (describe.ts).

import * as types from 'node:util/types';
import { descriptorOf, ownValue, sourceText } from '../../lib/index.js';
import { originOf } from '../decode/recreate.js';
import { cjsThis } from '../modules/references.js';
import { type Place, placeAt, scopeAround } from '../modules/scripts.js';
import type { Code } from '../text/code.js';
import type { Scope } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import { type Path, transferError } from '../values/refuse.js';
import { readOnce } from './closure-reader.js';
import { type Capture, inspectSelf } from './inspector.js';

/** Gives the place of a function of this process. */
export type PlaceOf = (fn: AnyFunction) => Place | undefined;

interface Found {
  readonly value: unknown;
}

/**
 * `[this, arguments]` for an arrow that uses one of them, else `[]`. `holders`: see `Graph`. A third element:
 * true when the arrow belongs to the object that is its `this`, and is made with each copy.
 */
export function selfOf(
  fn: AnyFunction,
  code: Code,
  capture: Capture,
  place: Place | undefined,
  holders: readonly object[],
  placeOf: PlaceOf,
  path: Path,
): unknown[] {
  if (!code.usesOuterThis && !code.usesOuterArguments) return [];
  const self: unknown[] = [undefined, undefined];
  if (code.usesOuterArguments) self[1] = argumentsOf(capture, path);
  else if (code.usesEval && place !== undefined && thisScope(place)?.parent !== undefined) {
    self[1] = argumentsIn(capture); // the text given to eval() may name them
  }
  if (!code.usesOuterThis) return self;
  const read = place && readThis(fn, place, capture);
  const holder = place && holderOf(fn, place, holders, placeOf, read, path);
  if (holder !== undefined) return [holder.value, self[1], true];
  const found = read ?? (place && thisAround(place, capture.location?.scriptId));
  if (found === undefined) {
    const why = code.usesEval
      ? 'its eval() may use `this` of the code around it, which cannot be read here: write a function ' +
        'instead of the arrow, or `(0, eval)(text)`, which sees globals alone'
      : 'it uses `this` of the code around it, which cannot be read here: write `const self = this` ' +
        'before it and use self, or pass the object whose property it is; where that is of a ' +
        'library, make it inside the function, or once per worker with perWorker(() => …)';
    throw transferError('TRANSFER_UNREADABLE', path, why);
  }
  self[0] = found.value;
  return self;
}

function argumentsOf(capture: Capture, path: Path): unknown[] {
  const list = argumentsIn(capture);
  if (list !== undefined) return list;
  throw transferError('TRANSFER_UNREADABLE', path, 'it uses `arguments`: name the parameters');
}

/** `undefined`: V8 did not keep them. */
function argumentsIn({ scopes }: Capture): unknown[] | undefined {
  const scope = scopes.find((candidate) => Object.hasOwn(candidate, 'arguments'));
  const list: unknown = scope && Reflect.get(scope, 'arguments');
  return types.isArgumentsObject(list) ? Array.from<unknown>(list) : undefined;
}

/** The scope whose `this` the code at `place` uses. */
function thisScope(place: Place): Scope | undefined {
  let scope = scopeAround(place);
  while (scope !== undefined && !scope.ownsThis) scope = scope.parent;
  return scope;
}

/**
 * Objects that own an arrow whose `this` is not read: the same arrow on a second object was copied there, with the first as `this`.
 */
const owners = new WeakMap<AnyFunction, WeakRef<object>>();

/**
 * The object on the way to `fn` that the source makes its `this`. `read`: the `this` that is known; then only
 * whether it has `fn` from there.
 */
function holderOf(
  fn: AnyFunction,
  place: Place,
  holders: readonly object[],
  placeOf: PlaceOf,
  read: Found | undefined,
  path: Path,
): Found | undefined {
  const scope = thisScope(place);
  const key = scope && keyFor(place, scope);
  if (scope === undefined || key === undefined) return undefined;
  // The class of the field or method, or the function itself: a constructor, or a method of an object.
  const maker = scope.field !== undefined || isClass(scope.parent) ? scope.parent : scope;
  const isHolder = (candidate: object): boolean => {
    const at = holders.indexOf(candidate);
    const held = (at === -1 ? undefined : holders[at + 1]) ?? fn;
    if (maker === undefined || !holds(candidate, key.name, held)) return false;
    return isMadeBy(candidate, maker, place, placeOf);
  };
  if (read !== undefined) {
    const { value } = read;
    const isHeld = typeof value === 'object' || typeof value === 'function';
    return isHeld && value !== null && isHolder(value) ? read : undefined;
  }
  const holder = holders.find(isHolder);
  if (holder === undefined) return undefined;
  const owner = owners.get(fn)?.deref();
  if (owner !== undefined && owner !== holder) {
    throw transferError(
      'TRANSFER_UNREADABLE',
      path,
      'it uses `this` of the object that it was made for and was copied to another one: make the ' +
        'copy with the constructor, or write a method instead of the arrow',
    );
  }
  owners.set(fn, new WeakRef(holder));
  return { value: holder };
}

/**
 * The key under which the source puts the function at `place` on its `this`; without `name`: a computed one.
 */
interface Key {
  readonly name: string | undefined;
}

function holds(holder: object, name: string | undefined, held: object): boolean {
  if (name !== undefined) return ownValue(holder, name) === held;
  return Reflect.ownKeys(holder).some((key) => ownValue(holder, key) === held);
}

function keyFor(place: Place, scope: Scope): Key | undefined {
  const { field } = scope;
  if (field !== undefined) {
    if (field.computed) return { name: undefined };
    if (field.key.type === 'Identifier') return { name: field.key.name };
    return field.key.type === 'Literal' ? { name: String(field.key.value) } : undefined;
  }
  const assigned = place.script.analysis?.ownAssignments ?? [];
  const found = assigned.findLast(
    (each) => each.scope === scope && each.start <= place.start && place.start < each.end,
  );
  return found && { name: found.key };
}

function isClass(scope: Scope | undefined): boolean {
  return scope?.node.type === 'ClassDeclaration' || scope?.node.type === 'ClassExpression';
}

/**
 * True: `holder` is an instance of the class or constructor in `scope`, or that class itself, or has the
 * function in `scope` as a method.
 */
function isMadeBy(holder: object, scope: Scope, place: Place, placeOf: PlaceOf): boolean {
  const isFunction = typeof holder === 'function';
  for (let at: object | null = holder; at !== null; at = Object.getPrototypeOf(at)) {
    const maker: unknown = isFunction ? at : ownValue(at, 'constructor');
    if (typeof maker === 'function' && isAt(maker, scope.node.start, place, placeOf)) return true;
    if (!isClass(scope) && hasMethod(at, scope, place, placeOf)) return true;
  }
  return false;
}

/** True: the function in `scope` is a method of `holder`, or a half of an accessor. */
function hasMethod(holder: object, scope: Scope, place: Place, placeOf: PlaceOf): boolean {
  const { start, end } = scope.node;
  const text = place.script.source?.slice(start, end);
  if (text === undefined || types.isProxy(holder) || ArrayBuffer.isView(holder)) return false;
  return Reflect.ownKeys(holder).some((key) => {
    const { value, get, set } = descriptorOf(holder, key) ?? {};
    return [value, get, set].some((each) => {
      if (typeof each !== 'function') return false;
      // The text of a method begins with its name, before its parameters.
      const whole = originOf(each)?.definition.text ?? sourceText(each);
      return whole.endsWith(text) && isAt(each, end - whole.length, place, placeOf);
    });
  });
}

function isAt(fn: AnyFunction, start: number, { script }: Place, placeOf: PlaceOf): boolean {
  const definition = originOf(fn)?.definition;
  if (definition !== undefined) {
    const { line, column } = placeAt(script, start);
    return (
      definition.url === script.url && definition.line === line && definition.column === column
    );
  }
  const place = placeOf(fn);
  return place?.script.url === script.url && place.start === start;
}

/** `this` of the function or class around an arrow, read natively; `undefined`: it cannot be read so. */
function readThis(fn: AnyFunction, place: Place, { outerThis }: Capture): Found | undefined {
  if (thisScope(place)?.parent === undefined) return undefined;
  if (outerThis !== undefined) return outerThis;
  const values = readOnce(fn, ['this']);
  return values && { value: values[0] };
}

/** `this` where an arrow was written, known by the kind of its file or read while that code runs. */
function thisAround(place: Place, scriptId: string | undefined): Found | undefined {
  const owner = thisScope(place);
  if (owner === undefined || scriptId === undefined) return undefined;
  if (owner.parent !== undefined) return thisOfFrame(place, owner, scriptId);
  const { isCommonJs, isModule, url } = place.script;
  if (isModule) return { value: undefined };
  // Code of a direct eval has the `this` of its caller, and no name that identifies it.
  if (isCommonJs) return cjsThis(place.script);
  return url === '' ? undefined : { value: globalThis };
}

/** `this` of the frame of `owner` that made an arrow, while that still runs. */
function thisOfFrame(place: Place, owner: Scope, scriptId: string): Found | undefined {
  const { lineStarts } = place.script;
  const heads: (readonly [start: number, end: number])[] = [];
  for (let scope = scopeAround(place); scope !== undefined; scope = scope.parent) {
    const { node } = scope;
    if ('params' in node && 'body' in node) {
      const { body } = node;
      if (!Array.isArray(body)) heads.push([node.start, body.start]);
    }
    if (scope === owner) break;
  }
  return inspectSelf().thisOfFrame((at) => {
    const offset = (lineStarts[at.line] ?? Number.NaN) + at.column;
    return (
      at.scriptId === scriptId && heads.some(([start, end]) => offset >= start && offset <= end)
    );
  });
}
