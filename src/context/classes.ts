// In what a class differs from its text: decorated and patched members, symbols, statics that hold
// something else by now, what was deleted. A member is the text's own when its function stands where
// the text has it; names alone say nothing. Every difference has the version of the class in which it
// was met first, so that a peer that has the class already takes over exactly what changed since.
// Not here: what the text says (members.ts), writing functions (functions.ts).

import {
  descriptorOf,
  type OwnDescriptor,
  ownOf,
  ownValue,
  sourceText,
} from '../internal/index.js';
import type { Code } from './code.js';
import { type FunctionLocation, inspectSelf } from './inspector.js';
import type { Member } from './members.js';
import type { Place } from './scripts.js';
import type { AnyFunction } from './types.js';
import { type How, isSame, type Sent, sinceOf } from './versions.js';

type Key = string | symbol;

/** A property of a class or its prototype that evaluating the text does not give. */
export interface Difference {
  readonly target: object;
  readonly key: Key;
  /** `restored`: as the text makes it again, after it was something else. */
  readonly how: How;
  /** The version of the class since which it is so. */
  readonly since: number;
}

export interface ClassState {
  readonly version: number;
  readonly differences: readonly Difference[];
  /** The version since which its private statics hold what they hold. */
  readonly privatesSince: number;
  /** Whether its name or what it inherits is not what it was at first: then both go along. */
  readonly isRenamed: boolean;
  readonly isMoved: boolean;
}

/** What the text makes of one key. */
interface Made {
  value?: Member;
  get?: Member;
  set?: Member;
}

const locations = new WeakMap<AnyFunction, FunctionLocation | undefined>();

function locate(fn: AnyFunction): FunctionLocation | undefined {
  if (locations.has(fn)) return locations.get(fn);
  const found = inspectSelf().locate(fn);
  locations.set(fn, found);
  return found;
}

/** Functions that were found to be those of a member, so that they are not read twice. */
const membersOfText = new WeakMap<AnyFunction, Member>();

/** Whether `fn` is the function that evaluating the text of the class made for `member`. */
function isMadeBy(fn: unknown, member: Member | undefined, code: Code, place?: Place): boolean {
  if (typeof fn !== 'function' || member === undefined) return fn === undefined && !member;
  if (membersOfText.get(fn) === member) return true;
  const text = sourceText(fn);
  if (
    member.end - text.length < member.start ||
    !code.text.startsWith(text, member.end - text.length)
  )
    return false;
  if (place !== undefined && place.start >= 0) {
    const { lineStarts } = place.script;
    const at = locate(fn);
    const offset = at === undefined ? -1 : (lineStarts[at.line] ?? Number.NaN) + at.column;
    const [from, to] = [place.start + member.anchor, place.start + member.end];
    if (!(member.kind === 'field' ? offset >= from && offset < to : offset === from)) return false;
  }
  membersOfText.set(fn, member);
  return true;
}

function sideOf(fn: AnyFunction, member: Member): object {
  const prototype: unknown = fn.prototype;
  return member.isStatic || typeof prototype !== 'object' || prototype === null ? fn : prototype;
}

/** Keys that were read from a class: where a member was replaced or deleted since, they are known still. */
const keysRead = new WeakMap<AnyFunction, Map<Member, Key>>();

/** The key that a member with brackets got when the class was made; `undefined`: it is gone. */
export function keyOf(fn: AnyFunction, code: Code, member: Member, place?: Place): Key | undefined {
  if (member.key !== undefined) return member.key;
  const known = keysRead.get(fn)?.get(member);
  if (known !== undefined) return known;
  const target = sideOf(fn, member);
  const part = member.kind === 'get' || member.kind === 'set' ? member.kind : 'value';
  const key = Reflect.ownKeys(target).find((candidate) => {
    const found: unknown = descriptorOf(target, candidate)?.[part];
    return typeof found === 'function' && isMadeBy(found, member, code, place);
  });
  if (key !== undefined) {
    const keys = keysRead.get(fn) ?? new Map<Member, Key>();
    keysRead.set(fn, keys.set(member, key));
  }
  return key;
}

/** What the text makes, by key; on the one side or the other. */
function madeOf(fn: AnyFunction, code: Code, isStatic: boolean, place?: Place): Map<Key, Made> {
  const made = new Map<Key, Made>();
  for (const member of code.members) {
    if (member.isStatic !== isStatic) continue;
    const key = keyOf(fn, code, member, place) ?? member.slot;
    const { kind } = member;
    if (kind === 'get' || kind === 'set') {
      const { get, set } = made.get(key) ?? {};
      made.set(key, { ...(get && { get }), ...(set && { set }), [kind]: member });
    } else made.set(key, { value: member });
  }
  return made;
}

function isAsMade(
  descriptor: OwnDescriptor,
  made: Made,
  code: Code,
  place: Place | undefined,
): boolean {
  if (descriptor.configurable !== true) return false;
  if (made.value === undefined) {
    if ('value' in descriptor || descriptor.enumerable === true) return false;
    return (
      isMadeBy(descriptor.get, made.get, code, place) &&
      isMadeBy(descriptor.set, made.set, code, place)
    );
  }
  return (
    descriptor.writable === true &&
    descriptor.enumerable === (made.value.kind === 'field') &&
    isMadeBy(descriptor.value, made.value, code, place)
  );
}

/** A property as it was before its holder was sealed or frozen, which travels by itself. */
function openDescriptor(target: object, key: Key): OwnDescriptor | undefined {
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

/** Descriptors of a class and its prototype, right after the text was evaluated here. */
const pristine = new WeakMap<object, ReadonlyMap<Key, OwnDescriptor>>();

/** Remembers what evaluating the text made, before anything is changed. */
export function rememberPristine(fn: AnyFunction): void {
  const prototype: unknown = fn.prototype;
  for (const target of [fn, prototype]) {
    if ((typeof target !== 'object' && typeof target !== 'function') || target === null) continue;
    const entries = Reflect.ownKeys(target).flatMap((key): [Key, OwnDescriptor][] => {
      const descriptor = descriptorOf(target, key);
      return descriptor === undefined ? [] : [[key, descriptor]];
    });
    pristine.set(target, new Map(entries));
  }
}

/** What evaluating the text made of a property of a class that was made again here. */
export function pristineOf(target: object, key: Key): OwnDescriptor | undefined {
  return pristine.get(target)?.get(key);
}

type Found = Omit<Difference, 'since'>;

/** Where `target`, a class or its prototype, is not as its text made it. `usual`: not to be judged. */
function differencesOf(
  fn: AnyFunction,
  target: object,
  code: Code,
  place: Place | undefined,
  isUsual: (key: Key) => boolean,
): Found[] {
  const known = pristine.get(target);
  const made = known === undefined ? madeOf(fn, code, target === fn, place) : undefined;
  const isAsText = (key: Key, descriptor: OwnDescriptor): boolean => {
    const before = known?.get(key);
    if (before !== undefined) return isSame(before, descriptor);
    const member = made?.get(key);
    if (member !== undefined) return isAsMade(descriptor, member, code, place);
    return known === undefined && isUsual(key);
  };
  const found: Found[] = [];
  for (const key of Reflect.ownKeys(target)) {
    const descriptor = openDescriptor(target, key);
    if (descriptor === undefined || isAsText(key, descriptor)) continue;
    found.push({ target, key, how: 'own' });
  }
  const usual = target === fn ? ['name', 'length'] : ['constructor'];
  const expected = new Set(known?.keys() ?? [...usual, ...(made?.keys() ?? [])]);
  for (const key of expected) {
    if (!Object.hasOwn(target, key)) found.push({ target, key, how: 'absent' });
  }
  return found;
}

interface Versions {
  version: number;
  readonly first: readonly unknown[];
  isRenamed: boolean;
  isMoved: boolean;
  readonly statics: Map<Key, Sent>;
  readonly members: Map<Key, Sent>;
  readonly privates: Map<Key, Sent>;
}

/** Name, what the class inherits from, and what its instances do. */
function linksOf(fn: AnyFunction): unknown[] {
  const prototype: unknown = fn.prototype;
  const isObject = typeof prototype === 'object' && prototype !== null;
  return [
    ownValue(fn, 'name'),
    Object.getPrototypeOf(fn),
    isObject ? Object.getPrototypeOf(prototype) : null,
  ];
}

export class ClassStates {
  readonly #versions = new WeakMap<AnyFunction, Versions>();

  /** How `fn` differs from its text now. `isUsual` judges what the text does not name. */
  read(
    fn: AnyFunction,
    code: Code,
    place: Place | undefined,
    isUsual: (target: object, key: Key) => boolean,
    privates: readonly unknown[],
  ): ClassState {
    let versions = this.#versions.get(fn);
    if (versions === undefined) {
      versions = {
        version: 0,
        first: linksOf(fn),
        isRenamed: false,
        isMoved: false,
        statics: new Map(),
        members: new Map(),
        privates: new Map(),
      };
      this.#versions.set(fn, versions);
    }
    const [name, above, aboveInstances] = linksOf(fn);
    versions.isRenamed ||= versions.first[0] !== name;
    versions.isMoved ||= versions.first[1] !== above || versions.first[2] !== aboveInstances;
    const next = versions.version + 1;
    const prototype: unknown = fn.prototype;
    const differences = this.#side(fn, fn, code, place, isUsual, versions.statics, next);
    if (typeof prototype === 'object' && prototype !== null) {
      differences.push(...this.#side(fn, prototype, code, place, isUsual, versions.members, next));
    }
    const values = ownOf({ value: privates, configurable: true });
    const privatesSince = sinceOf(versions.privates, '#', 'own', values, next);
    const isNew = next === 1 || privatesSince === next;
    if (isNew || differences.some(({ since }) => since === next)) versions.version = next;
    const { version, isRenamed, isMoved } = versions;
    return { version, differences, privatesSince, isRenamed, isMoved };
  }

  #side(
    fn: AnyFunction,
    target: object,
    code: Code,
    place: Place | undefined,
    isUsual: (target: object, key: Key) => boolean,
    sent: Map<Key, Sent>,
    next: number,
  ): Difference[] {
    const found = differencesOf(fn, target, code, place, (key) => isUsual(target, key));
    const keys = new Set(found.map(({ key }) => key));
    for (const key of sent.keys()) {
      if (!keys.has(key)) {
        found.push({ target, key, how: Object.hasOwn(target, key) ? 'restored' : 'absent' });
      }
    }
    return found.map(({ key, how }) => {
      const descriptor = descriptorOf(target, key);
      return { target, key, how, since: sinceOf(sent, key, how, descriptor, next) };
    });
  }
}

/** A class as it was: to see without a message whether it is so still. */
export type Glance = readonly unknown[];

/** What a class and its prototype hold, flat. */
export function glanceAt(fn: AnyFunction): Glance {
  const seen: unknown[] = [];
  const prototype: unknown = fn.prototype;
  for (const target of [fn, prototype]) {
    if ((typeof target !== 'object' && typeof target !== 'function') || target === null) continue;
    seen.push(Object.getPrototypeOf(target), Object.isExtensible(target));
    for (const key of Reflect.ownKeys(target)) {
      const descriptor = descriptorOf(target, key);
      if (descriptor === undefined) continue;
      const { value, get, set, writable, enumerable, configurable } = descriptor;
      const flags = Number(writable) + 2 * Number(enumerable) + 4 * Number(configurable);
      seen.push(key, value, get, set, flags);
    }
  }
  return seen;
}
