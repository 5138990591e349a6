// Values that code compares by identity: symbols, frozen objects and functions which modules export. Where a
// function of the call imports the module, such a value is that of the module in the worker. In a result it
// is that of the caller's module. A frozen object is sent with a copy, for modules that made another one
// there.
// Not here: objects that can change, which are copied: an argument must have the properties that its caller
// sees.

import * as types from 'node:util/types';
import { descriptorOf, ownValue, sourceText } from '../../lib/index.js';
import { sendingHalf } from '../late.js';
import type { ModuleReference } from '../modules/references.js';

/** An import as a module wrote it. */
export interface ImportSource {
  readonly specifier: string;
  /** URL of the importing module; '' for an absolute specifier. */
  readonly parent: string;
  readonly isRequired: boolean;
  readonly importType: string;
}

/** The import that a value is, and the content of a frozen object. */
export interface Named {
  readonly reference: ModuleReference;
  readonly parent: string;
  readonly importType: string;
  readonly contents: string;
}

interface Entry {
  readonly source: ImportSource;
  readonly name: string;
  /** Properties that lead from the export to the value, each with a dot before it; '': it is the export. */
  readonly members: string;
}

type Exported = readonly (readonly [name: string, value: unknown])[];

/** Objects of more parts are copied. */
const maxParts = 200;
/** Depth in exported objects, and namespaces that are exports, down to which values are found. */
const maxSteps = 2;

export class Sentinels {
  readonly #symbols = new Map<symbol, Entry>();
  readonly #objects = new WeakMap<object, Entry>();
  readonly #functions = new WeakSet<object>();
  /** Functions in exported objects that cannot change. */
  readonly #members = new WeakMap<object, Entry>();
  /** Exported objects, and namespaces that are exports, whose properties were not read yet. */
  readonly #holders = new Map<object, Entry>();
  readonly #seenHolders = new WeakSet<object>();
  /** Modules whose other exports were not read yet. */
  readonly #unread = new Map<string, () => readonly [ImportSource, Exported]>();
  readonly #read = new Set<string>();
  readonly #whole = new Set<string>();

  /**
   * Notes that a function imports `value`, an export of a module (`*`: the module itself). `read` returns all
   * exports of that module, and how each is imported. It is called when a value is met that may be one of
   * them.
   */
  note(
    value: unknown,
    name: string,
    source: ImportSource,
    read: (() => readonly [ImportSource, Exported]) | undefined,
  ): void {
    if (typeof value === 'function') this.#functions.add(value);
    this.#add(value, { source, name, members: '' });
    const key = `${source.specifier} ${source.parent}`;
    if (name === '*' && !this.#whole.has(key)) {
      this.#whole.add(key);
      for (const [, each] of exportsIn(value)) {
        if (typeof each === 'function') this.#functions.add(each);
      }
    }
    if (read !== undefined && !this.#read.has(key)) this.#unread.set(key, read);
  }

  /** True: `fn` is an import of a function, so that it may be compared. */
  isImport(fn: object): boolean {
    return this.#functions.has(fn);
  }

  /** The export that contains the function `fn`, where that cannot change. */
  member(fn: object): (ModuleReference & { readonly parent: string }) | undefined {
    this.#readHolders();
    const entry = this.#members.get(fn);
    if (entry === undefined) return undefined;
    const { source, name, members } = entry;
    const { specifier, isRequired, parent } = source;
    return { specifier, isRequired, name, variable: members, parent };
  }

  #readAll(): void {
    for (const [key, read] of this.#unread) {
      const [source, exports] = read();
      for (const [name, exported] of exports) this.#add(exported, { source, name, members: '' });
      this.#read.add(key);
    }
    this.#unread.clear();
    this.#readHolders();
  }

  #readHolders(): void {
    for (const [holder, { source, name, members }] of this.#holders) {
      this.#seenHolders.add(holder);
      for (const [key, member] of exportsIn(holder).slice(0, maxParts)) {
        if (key.includes(' ')) continue;
        const steps = members === '' ? `.${key}` : `${members} .${key}`;
        const entry = { source, name, members: steps };
        const isFixed = types.isModuleNamespaceObject(holder) || Object.isFrozen(holder);
        if (typeof member !== 'function') this.#add(member, entry);
        else if (isFixed && !this.#members.has(member)) this.#members.set(member, entry);
      }
    }
    this.#holders.clear();
  }

  /** The import that `value` is; `undefined`: none, or it can change. */
  find(value: symbol | object): Named | undefined {
    if (typeof value === 'object' && (types.isProxy(value) || Object.isExtensible(value))) {
      return undefined;
    }
    let entry = this.#entryOf(value);
    if (entry === undefined) {
      this.#readAll();
      entry = this.#entryOf(value);
    }
    const found = entry ?? cjsEntry(value);
    if (found === undefined) return undefined;
    const contents = typeof value === 'symbol' ? '' : contentsOf(value);
    if (contents === undefined) return undefined;
    const { source, name, members } = found;
    const { specifier, isRequired, parent, importType } = source;
    const reference = { specifier, name, isRequired, variable: members };
    return { reference, parent, importType, contents };
  }

  #entryOf(value: symbol | object): Entry | undefined {
    return typeof value === 'symbol' ? this.#symbols.get(value) : this.#objects.get(value);
  }

  #add(value: unknown, entry: Entry): void {
    if (typeof value === 'symbol') {
      if (!this.#symbols.has(value)) this.#symbols.set(value, entry);
    } else if (typeof value === 'object' && value !== null) {
      if (!this.#objects.has(value)) this.#objects.set(value, entry);
      const isDeep = entry.members.split(' ').length >= maxSteps;
      if (entry.name !== '*' && !isDeep && isHolder(value) && !this.#seenHolders.has(value)) {
        this.#holders.set(value, entry);
      }
    } else if (typeof value === 'function') this.#functions.add(value);
  }
}

/** True: a namespace, or an object that code wrote as `{ … }`. */
function isHolder(value: object): boolean {
  if (types.isModuleNamespaceObject(value)) return true;
  if (types.isProxy(value)) return false;
  const prototype: object | null = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** The value of the properties `members` of an export, as `Entry` names them; `undefined`: there is none. */
export function memberOf(exported: unknown, members: string): unknown {
  let found = exported;
  for (const step of members.split(' ')) {
    const holder = found;
    found = undefined;
    for (const [key, value] of exportsIn(holder)) if (`.${key}` === step) found = value;
  }
  return found;
}

function cjsEntry(value: symbol | object): Entry | undefined {
  const found = sendingHalf().sentinelOfCjs(value);
  if (found === undefined) return undefined;
  const { specifier, isRequired, name } = found;
  const source = { specifier, isRequired, parent: '', importType: '' };
  return { source, name, members: '' };
}

/**
 * The contents of a frozen object, with everything in it, as text; `undefined`: it can change, or is large.
 */
export function contentsOf(value: unknown): string | undefined {
  const parts: string[] = [];
  return addContents(value, parts, new Set()) ? parts.join('\n') : undefined;
}

function addContents(value: unknown, parts: string[], above: Set<unknown>): boolean {
  if (parts.length >= maxParts) return false;
  if (typeof value === 'function') parts.push(sourceText(value));
  else if (typeof value !== 'object' || value === null) {
    parts.push(`${typeof value} ${Object.is(value, -0) ? '-0' : String(value)}`);
  } else {
    // The contents of a Map, a Date or a buffer can change even when it is frozen.
    if (above.has(value) || types.isProxy(value) || hasInnerState(value)) return false;
    if (!Object.isFrozen(value)) return false;
    const prototype: object | null = Object.getPrototypeOf(value);
    const owner: unknown = prototype && ownValue(prototype, 'constructor');
    parts.push(`object ${typeof owner === 'function' ? owner.name : ''}`);
    above.add(value);
    for (const key of Reflect.ownKeys(value)) {
      const own = descriptorOf(value, key);
      if (own === undefined || !('value' in own)) return false;
      parts.push(String(key));
      if (!addContents(own.value, parts, above)) return false;
    }
    above.delete(value);
  }
  return true;
}

function hasInnerState(value: object): boolean {
  return (
    types.isMap(value) ||
    types.isSet(value) ||
    types.isWeakMap(value) ||
    types.isWeakSet(value) ||
    types.isDate(value) ||
    types.isRegExp(value) ||
    types.isAnyArrayBuffer(value) ||
    ArrayBuffer.isView(value) ||
    types.isPromise(value) ||
    types.isGeneratorObject(value) ||
    types.isModuleNamespaceObject(value)
  );
}

/** The exports of a module that was imported: its namespace, or the exports of CommonJS. */
export function exportsIn(module: unknown): Exported {
  if ((typeof module !== 'object' && typeof module !== 'function') || module === null) return [];
  if (types.isProxy(module)) return [];
  const found: (readonly [string, unknown])[] = [];
  for (const name of Object.getOwnPropertyNames(module)) {
    try {
      const own = descriptorOf(module, name);
      if (own?.enumerable === true && 'value' in own) found.push([name, own.value]);
    } catch {
      // The declaration has not run.
    }
  }
  return found;
}
