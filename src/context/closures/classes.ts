// Differences between a class and its text: decorated and patched members, symbols, statics with other
// values, deleted members. A member is the text's own when its function stands where the text has it; names
// alone prove nothing. Every difference has the version of the class in which it was first found. So a peer
// that has the class takes over exactly what changed since.
// Not here: what the text states (members.ts), writing functions (functions.ts).

import { descriptorOf, type OwnDescriptor, ownOf, ownValue, sourceText } from '../../lib/index.js';
import { allPristineOf } from '../decode/pristine.js';
import type { Place } from '../modules/scripts.js';
import type { Code } from '../text/code.js';
import type { Member } from '../text/members.js';
import {
  changesOf,
  functionsOf,
  openDescriptor,
  type TextMember,
  usualOf,
} from '../text/text-members.js';
import type { AnyFunction } from '../types.js';
import { type How, isSame, type Sent, sinceOf } from '../values/versions.js';
import { type FunctionLocation, inspectSelf } from './inspector.js';

type Key = string | symbol;

/** A property of a class or its prototype that evaluating the text does not give. */
export interface Difference {
  readonly target: object;
  readonly key: Key;
  /** `restored`: as the text makes it again, after it was something else. */
  readonly how: How;
  /** The version of the class in which the difference began. */
  readonly since: number;
}

export interface ClassState {
  readonly version: number;
  readonly differences: readonly Difference[];
  readonly members: readonly TextMember[];
  /** The class, its prototype or both: those whose keys are in another order than evaluation gives. */
  readonly reordered: readonly object[];
  /** The version in which its private statics got their present values. */
  readonly privatesSince: number;
  /** True: its name or its parents changed since the first snapshot; then both are sent. */
  readonly isRenamed: boolean;
  readonly isMoved: boolean;
}

/** The property that the text makes for one key. */
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

/** Functions that were found to be those of a member, to read each once. */
const membersOfText = new WeakMap<AnyFunction, Member>();

/** True: evaluating the text of the class made `fn` for `member`. */
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

/** Keys that were read from a class: still available after a member was replaced or deleted. */
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

/** Properties that the text makes, by key, on the static or on the instance side. */
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

type Found = Omit<Difference, 'since'>;

interface Side {
  readonly found: Found[];
  readonly members: TextMember[];
  /** Keys in the order in which the text makes them. */
  readonly made: readonly Key[];
}

/**
 * Differences between `target`, a class or its prototype, and its text. `isUsual` judges keys that the text
 * does not name.
 */
function differencesOf(
  fn: AnyFunction,
  target: object,
  code: Code,
  place: Place | undefined,
  isUsual: (key: Key) => boolean,
): Side {
  const known = allPristineOf(target);
  const made = known === undefined ? madeOf(fn, code, target === fn, place) : undefined;
  const isAsText = (key: Key, descriptor: OwnDescriptor): boolean => {
    const before = known?.get(key);
    if (before !== undefined) return isSame(before, descriptor);
    const member = made?.get(key);
    if (member !== undefined) return isAsMade(descriptor, member, code, place);
    return known === undefined && isUsual(key);
  };
  const found: Found[] = [];
  const members: TextMember[] = [];
  for (const key of Reflect.ownKeys(target)) {
    const descriptor = openDescriptor(target, key);
    if (descriptor === undefined) continue;
    let isAsMade = isAsText(key, descriptor);
    for (const [part, each] of isAsMade ? functionsOf(descriptor, fn) : []) {
      const usual = usualOf(each, key, part, made?.get(key)?.[part]);
      const changed = changesOf(each, usual);
      if (changed === undefined) isAsMade = false;
      else {
        const isMoved = Object.getPrototypeOf(each) !== usual.above;
        members.push({ fn: each, target, key, part, changed, isMoved });
      }
    }
    if (!isAsMade) found.push({ target, key, how: 'own' });
  }
  const usual = target === fn ? ['name', 'length'] : ['constructor'];
  const expected = new Set(known?.keys() ?? [...usual, ...(made?.keys() ?? [])]);
  for (const key of expected) {
    if (!Object.hasOwn(target, key)) found.push({ target, key, how: 'absent' });
  }
  const first = target === fn ? ['length', 'name', 'prototype'] : ['constructor'];
  return { found, members, made: [...(known?.keys() ?? [...first, ...(made?.keys() ?? [])])] };
}

interface Versions {
  version: number;
  readonly first: readonly unknown[];
  isRenamed: boolean;
  isMoved: boolean;
  readonly statics: Map<Key, Sent>;
  readonly members: Map<Key, Sent>;
  readonly privates: Map<Key, Sent>;
  /** Keys of the class and of its prototype in the order in which a peer has them. */
  readonly orders: Map<object, Key[]>;
  readonly reordered: Set<object>;
  /** Keys of members that were sent, and members whose prototype was sent. */
  readonly changed: WeakMap<AnyFunction, Set<Key>>;
  readonly moved: WeakSet<AnyFunction>;
}

/** The name, the class that it extends, and the prototype of its instances' prototype. */
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

  /** Reads the differences between `fn` and its text. `isUsual` judges keys that the text does not name. */
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
        orders: new Map(),
        reordered: new Set(),
        changed: new WeakMap(),
        moved: new WeakSet(),
      };
      this.#versions.set(fn, versions);
    }
    const [name, above, aboveInstances] = linksOf(fn);
    versions.isRenamed ||= versions.first[0] !== name;
    versions.isMoved ||= versions.first[1] !== above || versions.first[2] !== aboveInstances;
    const next = versions.version + 1;
    const prototype: unknown = fn.prototype;
    const differences: Difference[] = [];
    const members: TextMember[] = [];
    for (const target of [fn, prototype]) {
      if ((typeof target !== 'object' && typeof target !== 'function') || target === null) continue;
      const side = differencesOf(fn, target, code, place, (key) => isUsual(target, key));
      const sent = target === fn ? versions.statics : versions.members;
      differences.push(...since(target, side.found, sent, next));
      members.push(...side.members.map((member) => noted(member, versions)));
      noteOrder(target, side.made, versions);
    }
    const values = ownOf({ value: privates, configurable: true });
    const privatesSince = sinceOf(versions.privates, '#', 'own', values, next);
    const isNew = next === 1 || privatesSince === next;
    if (isNew || differences.some(({ since }) => since === next)) versions.version = next;
    const { version, isRenamed, isMoved } = versions;
    const reordered = [...versions.reordered];
    return { version, differences, members, reordered, privatesSince, isRenamed, isMoved };
  }
}

/** The differences of one side, with those that were sent and no longer exist. */
function since(target: object, found: Found[], sent: Map<Key, Sent>, next: number): Difference[] {
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

/** A member with every change that was ever sent: a peer may still have it. */
function noted(member: TextMember, { changed, moved }: Versions): TextMember {
  const { fn } = member;
  if (member.isMoved) moved.add(fn);
  const before = changed.get(fn);
  if (before === undefined && member.changed.length === 0 && !moved.has(fn)) return member;
  const all = new Set([...(before ?? []), ...member.changed]);
  changed.set(fn, all);
  return { ...member, changed: [...all], isMoved: moved.has(fn) };
}

/** Notes whether a peer has the keys of `target` in another order, in any of its versions. */
function noteOrder(target: object, made: readonly Key[], { orders, reordered }: Versions): void {
  const before = orders.get(target) ?? made;
  const now = Reflect.ownKeys(target);
  const [own, known] = [new Set(now), new Set(before)];
  const added = now.filter((key) => !known.has(key));
  const expected = [...before.filter((key) => own.has(key)), ...added];
  if (now.some((key, at) => key !== expected[at])) reordered.add(target);
  if (added.length > 0 || !orders.has(target)) orders.set(target, [...before, ...added]);
}
