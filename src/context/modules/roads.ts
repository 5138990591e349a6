// The two roads to the state of a module. An export of a module is imported again in the worker, with state
// of its own there; other functions and variables of it are copied. A call may use both: an exported function
// that changes a variable, and a copy of that variable. Each variable must exist once in a call. So the
// module then travels as code as a whole, and so does every module that imports it and leads there. A copy is
// one of a variable that was captured, or of an object that a variable or export of the module holds as well
// (owners.ts). State that other code puts into a registry is not found.
// Not here: reading modules (reach.ts, outline.ts).

import * as types from 'node:util/types';
import { descriptorOf, descriptorsOf } from '../../lib/index.js';
import { outlineOf } from '../text/outline.js';
import type { Binding } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import { type Path, transferError } from '../values/refuse.js';
import { isCopied } from './copies.js';
import { type Around, isOwnerIn, noteImport, noteScript, type Owner, ownersOf } from './owners.js';
import { isProgram } from './program.js';
import { anyOf, changesLater, keyOf, type Reached, reachOf } from './reach.js';
import type { ModuleReference } from './references.js';
import { bareUrl, isOfUser, urlOfModule } from './resolve-module.js';
import type { Place, Script } from './scripts.js';

/** A function that uses an import by a name. */
export interface ImportUser {
  readonly place: Place;
  readonly length: number;
  readonly name: string;
}

interface Imported {
  readonly from: ModuleReference;
  readonly value: unknown;
  readonly parent: string;
  readonly user: ImportUser | undefined;
  /** To the function whose code loads the module when it runs: no copy can take its place. */
  readonly path: Path | undefined;
}

interface Copied {
  readonly url: string;
  readonly script: Script;
  readonly binding: Binding;
  readonly value: unknown;
}

/** The objects of a graph that are copies, and the scopes that show their owners. */
export interface Copies {
  readonly objects: Iterable<object>;
  readonly around: (fn: AnyFunction) => Around | undefined;
}

/** The uses of modules by one export: as imports, and as copies. */
export class Roads {
  /** Once for each function that uses them. */
  readonly #imports = new Map<string, Imported>();
  /** Modules that functions have used only by their properties so far. */
  readonly #parts = new Map<unknown, Imported>();
  readonly #copies = new Map<string, Copied>();
  /** Functions that travel as code, by any way that the call has them. */
  readonly #functions = new Map<AnyFunction, Place>();
  /** Scopes that some function of a script sees, by script. */
  readonly #scripts = new Map<Script, readonly object[]>();

  addImport(
    value: unknown,
    from: ModuleReference,
    parent: string,
    user: ImportUser | undefined,
  ): void {
    const { specifier, name, variable = '' } = from;
    const site =
      user === undefined ? '' : `${user.place.script.url} ${user.place.start} ${user.name}`;
    const key = `${specifier} ${parent} ${name} ${variable} ${site}`;
    if (this.#imports.has(key)) return;
    this.#imports.set(key, { from, value, parent, user, path: undefined });
  }

  /** Notes that `value` is the module, of which a function uses some properties. */
  addPart(value: object, from: ModuleReference, parent: string): void {
    this.#parts.set(value, { from, value, parent, user: undefined, path: undefined });
  }

  /** Notes that `value` is met once more, as a value. */
  addAgain(value: unknown): void {
    const known = this.#parts.get(value);
    if (known !== undefined) this.addImport(value, known.from, known.parent, undefined);
  }

  /**
   * Notes modules that the code of a function names in `import()` or, when workers have its `require`, in
   * that.
   */
  addLoads({ script, start }: Place, { length }: string, requires: boolean, path: Path): void {
    if (script.analysis === undefined || start < 0) return;
    for (const load of outlineOf(script.analysis).loads) {
      if (load.start < start || load.start >= start + length) continue;
      if (load.isRequired && !requires) continue;
      const from = { specifier: load.source, name: '*', isRequired: false };
      const key = `load ${load.source} ${script.url}`;
      const [parent, at] = [script.url, [...path]];
      this.#imports.set(key, { from, value: undefined, parent, user: undefined, path: at });
    }
  }

  /** Notes the scopes around a function that is copied. */
  addScopes(script: Script, scopes: readonly object[]): void {
    this.#scripts.set(script, scopes);
  }

  /** Notes a function that is copied: an import may reach a variable that holds it. */
  addFunction(fn: AnyFunction, place: Place): void {
    if (place.start >= 0) this.#functions.set(fn, place);
  }

  /** Notes a variable of a module that travels as its value, where that is no import itself. */
  addCopy(script: Script, binding: Binding, value: unknown): void {
    if (!mayBeImported(script)) return;
    const url = bareUrl(script.url);
    this.#copies.set(keyOf(url, binding), { url, script, binding, value });
  }

  /** A copy without the function `fn`, the scopes that it sees, and the variables that hold these objects. */
  without(fn: AnyFunction, objects: readonly object[]): Roads {
    const copy = new Roads();
    copy.addAll(this);
    copy.#functions.delete(fn);
    for (const [key, { value }] of copy.#copies) {
      if (objects.some((object) => object === value)) copy.#copies.delete(key);
    }
    return copy;
  }

  addAll(other: Roads): void {
    for (const [key, each] of other.#imports) this.#imports.set(key, each);
    for (const [value, each] of other.#parts) this.#parts.set(value, each);
    for (const [key, each] of other.#copies) this.#copies.set(key, each);
    for (const [fn, place] of other.#functions) this.#functions.set(fn, place);
  }

  /**
   * The modules that the call imports and that lead to variables of which it has copies. Throws for one that
   * it loads by `import()` or `require`.
   */
  meeting(copies?: Copies): Set<string> {
    const found = new Set<string>();
    if (this.#imports.size === 0) return found;
    for (const [fn, place] of this.#functions) this.#addHeld(fn, place);
    const owners = copies === undefined ? [] : this.#ownersOf(copies);
    if (this.#copies.size === 0 && owners.length === 0) return found;
    for (const each of this.#imports.values()) {
      const url = urlOf(each);
      if (url === undefined || (found.has(url) && each.path === undefined)) continue;
      const variable = this.#meets(each, url, owners);
      if (variable === undefined) continue;
      if (each.path !== undefined || isCopied(url)) refuseLoad(each, variable);
      found.add(url);
    }
    return found;
  }

  /**
   * Notes the variable that holds `fn` and whose properties its module assigns, as one that counts its calls.
   */
  #addHeld(fn: AnyFunction, { script, start }: Place): void {
    if (script.analysis === undefined || !mayBeImported(script)) return;
    const { extended, parts } = outlineOf(script.analysis);
    for (const binding of extended) {
      const isHeld = parts.get(binding)?.some((part) => part.start === start);
      if (isHeld === true) this.addCopy(script, binding, fn);
    }
  }

  /** The variables and exports that hold an object of which there is a copy. */
  #ownersOf({ objects, around }: Copies): Owner[] {
    const found: Owner[] = [];
    let isNoted = false;
    for (const object of objects) {
      if (isFixed(object)) continue;
      if (!isNoted) this.#noteOwners(around);
      isNoted = true;
      found.push(...ownersOf(object));
    }
    return found;
  }

  #noteOwners(around: Copies['around']): void {
    for (const [script, scopes] of this.#scripts) noteScript({ script, scopes });
    for (const each of this.#imports.values()) {
      const url = urlOf(each);
      if (url !== undefined) noteImport(each.value, url, each.from.name, around);
    }
  }

  /** The name of a variable that the import leads to and of which there is a copy. */
  #meets({ from, user }: Imported, url: string, owners: readonly Owner[]): string | undefined {
    const reaches = membersOf(from.name, user).map((member) =>
      reachOf(url, from.name, member, from.variable),
    );
    for (const [key, copied] of this.#copies) {
      const isIn = (reach: Reached): boolean => reach.has(key) || reach.has(anyOf(copied.url));
      if (reaches.some(isIn) && isState(copied)) return copied.binding.name;
    }
    return owners.find((owner) => reaches.some((reach) => isOwnerIn(reach, owner)))?.name;
  }
}

/** True: a call with both meets the state of a module on two roads. */
export function meet(some: Roads | undefined, others: Roads | undefined): boolean {
  if (some === undefined || others === undefined) return false;
  const both = new Roads();
  both.addAll(some);
  both.addAll(others);
  return both.meeting().size > 0;
}

function refuseLoad({ from, path = [] }: Imported, variable: string): never {
  throw transferError(
    'TRANSFER_SHARED_VARIABLE',
    path,
    `it loads ${from.specifier}, which uses the variable \`${variable}\`, and the call has a copy of that as well: import ` +
      'the module at the top of the file, or let it export the function that uses the variable',
  );
}

function urlOf({ from, parent }: Imported): string | undefined {
  return urlOfModule(from.specifier, parent);
}

const whole: readonly undefined[] = [undefined];
const members = new WeakMap<Script, Map<string, readonly (string | undefined)[]>>();

/** The properties of a module that its user names; `undefined` among them: all. */
export function membersOf(
  imported: string,
  user: ImportUser | undefined,
): readonly (string | undefined)[] {
  if (user === undefined || (imported !== '*' && imported !== 'default')) return whole;
  const { place, length, name } = user;
  const { analysis } = place.script;
  if (analysis === undefined || place.start < 0) return whole;
  const bySite = members.get(place.script) ?? new Map<string, readonly (string | undefined)[]>();
  members.set(place.script, bySite);
  const site = `${place.start} ${length} ${name}`;
  const known = bySite.get(site);
  if (known !== undefined) return known;
  const found = new Set<string | undefined>();
  for (const use of outlineOf(analysis).uses) {
    const isInside = use.start >= place.start && use.start < place.start + length;
    const isMeant = use.binding === undefined ? isOfCommonJs(name) : use.binding.name === name;
    if (isInside && isMeant) found.add(use.member);
  }
  const list = found.size === 0 || found.has(undefined) ? whole : [...found];
  bySite.set(site, list);
  return list;
}

function isOfCommonJs(name: string): boolean {
  return name === 'exports' || name === 'module';
}

const importable = new WeakMap<Script, boolean>();

/** True: workers load the module of the user's, when no call copies it. */
function mayBeImported(script: Script): boolean {
  const known = importable.get(script);
  if (known !== undefined) return known;
  const { url } = script;
  const isFound = isOfUser(url) && (isCopied(bareUrl(url)) || !isProgram(url));
  importable.set(script, isFound);
  return isFound;
}

/** True: a second copy of the variable could differ. */
function isState({ script: { analysis, source = '' }, binding, value }: Copied): boolean {
  if (analysis === undefined) return true;
  const outline = outlineOf(analysis);
  if (changesLater(binding, analysis) || typeof value === 'symbol' || types.isProxy(value))
    return true;
  if (typeof value === 'function') {
    return (
      isClass(value) ||
      Object.keys(value).length > 0 ||
      outline.compared.has(binding) ||
      outline.extended.has(binding)
    );
  }
  if (typeof value !== 'object' || value === null) {
    const parts = outline.parts.get(binding) ?? [];
    return parts.some(({ start, end }) => differsByWorker.test(source.slice(start, end)));
  }
  return outline.compared.has(binding) || !isFixed(value);
}

/** True: it never changes, and holds no code. */
function isFixed(value: object): boolean {
  if (types.isRegExp(value)) return !value.global && !value.sticky;
  return Object.isFrozen(value) && isData(value);
}

const differsByWorker = /\b(?:random\w*|now|hrtime|pid|threadId|new Date)\b/;

function isClass(value: object): boolean {
  return descriptorOf(value, 'prototype')?.writable === false;
}

/** A frozen object of frozen objects, which hold no code. */
function isData(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function';
  if (!Object.isFrozen(value) || depth > 8 || types.isProxy(value)) return false;
  if (types.isMap(value) || types.isSet(value) || ArrayBuffer.isView(value)) return false;
  return descriptorsOf(value).every(([, own]) => 'value' in own && isData(own.value, depth + 1));
}
