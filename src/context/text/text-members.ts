// Parts of a function that the text of a class makes (a method, half of an accessor, a function in a static
// field) beside that text: properties, another name, another prototype. A peer changes its copy in place, so
// that it keeps `super` and `#private`.
// Not here: whether a function is the text's own (classes.ts), writing it (additions.ts).

import * as types from 'node:util/types';
import { descriptorOf, type OwnDescriptor, ownOf, ownValue } from '../../lib/index.js';
import type { AnyFunction } from '../types.js';
import type { Member } from './members.js';

type Key = string | symbol;

/** A function that the text of a class makes. */
export interface TextMember {
  readonly fn: AnyFunction;
  readonly target: object;
  readonly key: Key;
  readonly part: 'value' | 'get' | 'set';
  /** Own keys that differ from the text, or did when it was sent. */
  readonly changed: readonly Key[];
  /** True: its prototype is sent too. */
  readonly isMoved: boolean;
}

/** The functions of a property of `owner`, by the part of the descriptor. */
export function functionsOf(
  { value, get, set }: OwnDescriptor,
  owner: AnyFunction,
): [TextMember['part'], AnyFunction][] {
  const parts: [TextMember['part'], unknown][] = [
    ['value', value],
    ['get', get],
    ['set', set],
  ];
  return parts.filter(
    (part): part is [TextMember['part'], AnyFunction] =>
      typeof part[1] === 'function' && part[1] !== owner,
  );
}

/** A property as it was before its holder was sealed or frozen, which travels by itself. */
export function openDescriptor(target: object, key: Key): OwnDescriptor | undefined {
  const descriptor = descriptorOf(target, key);
  if (descriptor === undefined || key === 'prototype' || !Object.isSealed(target))
    return descriptor;
  const isFrozenData = Object.isFrozen(target) && 'value' in descriptor;
  // `name` and `length` cannot be written before either.
  const isNamed = typeof target === 'function' && (key === 'name' || key === 'length');
  return ownOf({
    ...descriptor,
    configurable: true,
    ...(isFrozenData && !(isNamed && descriptor.enumerable === false) && { writable: true }),
  });
}

/** The state of a member's function when it was made: own keys but `prototype`, and its prototype. */
interface Usual {
  readonly name: string | undefined;
  readonly length: number;
  readonly above: object | null;
}

const usualOfPristine = new WeakMap<object, Usual>();

/** Records the state that evaluating the text gave a function, before anything is changed. */
export function rememberUsual(fn: AnyFunction): void {
  const [name, length] = [ownValue(fn, 'name'), ownValue(fn, 'length')];
  usualOfPristine.set(fn, {
    name: typeof name === 'string' ? name : undefined,
    length: typeof length === 'number' ? length : 0,
    above: Object.getPrototypeOf(fn),
  });
}

/** The state that the text of its class gives `fn`, which stands under `key`. */
export function usualOf(
  fn: AnyFunction,
  key: Key,
  part: TextMember['part'],
  member?: Member,
): Usual {
  const known = usualOfPristine.get(fn);
  if (known !== undefined) return known;
  const ofKey = typeof key === 'string' ? key : key.description && `[${key.description}]`;
  const name = member?.givenName ?? `${part === 'value' ? '' : `${part} `}${ofKey ?? ''}`;
  return { name, length: member?.givenLength ?? 0, above: usualAbove(fn) };
}

/** The prototypes of functions: plain ones, async ones, generators, async generators. */
const kinds = [() => {}, async () => {}, function* () {}, async function* () {}].map(
  (each): object => Object.getPrototypeOf(each),
);

/** The prototype of a function of this kind, in its realm, if unchanged. */
function usualAbove(fn: AnyFunction): object | null {
  const above: object | null = Object.getPrototypeOf(fn);
  const usual =
    kinds[Number(types.isAsyncFunction(fn)) + 2 * Number(types.isGeneratorFunction(fn))];
  if (usual === undefined || above === null) return usual ?? above;
  const [maker, other] = [ownValue(usual, 'constructor'), ownValue(above, 'constructor')];
  if (typeof maker !== 'function' || typeof other !== 'function') return usual;
  const isOfOtherRealm = other.prototype === above && other.name === maker.name;
  return isOfOtherRealm ? above : usual;
}

function isUsualKey(fn: AnyFunction, key: Key, usual: Usual): boolean {
  if (key !== 'name' && key !== 'length') return key === 'prototype';
  const own = openDescriptor(fn, key);
  const isClosed = own?.writable === false && own.enumerable === false && own.configurable === true;
  return isClosed && own.value === usual[key];
}

/** Keys of a member that differ from its text; `undefined`: more than a peer can change in its copy. */
export function changesOf(fn: AnyFunction, usual: Usual): Key[] | undefined {
  const keys = new Set([...Reflect.ownKeys(fn), 'name', 'length']);
  const changed = [...keys].filter((key) => !isUsualKey(fn, key, usual));
  const isOpen = changed.every((key) => descriptorOf(fn, key)?.configurable !== false);
  if (!isOpen || (changed.length > 0 && !Object.isExtensible(fn))) return undefined;
  const prototype = descriptorOf(fn, 'prototype');
  if (prototype === undefined) return changed;
  const { value } = prototype;
  const isMade =
    (prototype.writable === true || Object.isFrozen(fn)) &&
    typeof value === 'object' &&
    value !== null &&
    prototype.configurable === false &&
    isUntouched(value, fn);
  return isMade ? changed : undefined;
}

/** True: the prototype of a generator, or of a function that is a static field, is as it was made. */
function isUntouched(prototype: object, fn: AnyFunction): boolean {
  if (!Object.isExtensible(prototype)) return false;
  const keys = Reflect.ownKeys(prototype);
  const above: object | null = Object.getPrototypeOf(prototype);
  if (types.isGeneratorFunction(fn)) {
    return keys.length === 0 && above === ownValue(usualAbove(fn) ?? {}, 'prototype');
  }
  const own = descriptorOf(prototype, 'constructor');
  const isUsual = own?.value === fn && own.enumerable === false && own.writable === true;
  return keys.length === 1 && isUsual && above !== null && Object.getPrototypeOf(above) === null;
}
