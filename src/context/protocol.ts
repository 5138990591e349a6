// The shapes of definitions and payloads, and the functions that parse them from the bytes of another
// process. A payload is a plain copy of a value's graph, plus a list of "specials" (values that V8 cannot
// write: functions, classes, symbols, ...) and of fix-ups that put them in place. The plain part keeps
// identity and cycles, because V8 does.

import { isUint8Array } from 'node:util/types';
import { corrupt } from './wire.js';

/** First element of a special. The rest is in the comment; `#n` is the index of another special. */
export const special = {
  /** path: a property path from the built-in globals, or from `node:x` modules */
  builtin: 0,
  /** key of `Symbol.for` */
  registeredSymbol: 1,
  /** identity, description */
  symbol: 2,
  /**
   * id of a module definition, export name (`*`: namespace), variable; identity and description of a symbol
   */
  imported: 3,
  /** id of a closure definition */
  closure: 4,
  /**
   * id of a code definition, identity, slots, 1 where nothing in it can change, [this]. Then the identity
   * that the peer which made the function gave it, where the function is still only its text.
   */
  function: 5,
  /** the same for a class, then version, private statics, the version of those */
  class: 6,
  /** #n: the `prototype` of a function or class */
  prototype: 7,
  /** [target, this, ...arguments], identity */
  bound: 8,
  /** name of the built-in error class, stack; without a stack where it is no text */
  error: 9,
  /** href */
  url: 10,
  /** class cell [class], data cell [data] */
  received: 11,
  /** identity, [factory] */
  perWorker: 12,
  /** module URL, export name */
  task: 13,
  /** identity */
  asyncLocalStorage: 14,
  /** URL of the module that it belongs to */
  require: 15,
  cjsModule: 16,
  /** text of URLSearchParams; #n: the URL whose own it is */
  searchParams: 17,
  /** view of all of an ArrayBuffer */
  buffer: 18,
  /** an `arguments` object; its elements are fix-ups */
  arguments: 19,
  /** number of its kind, its parts (platform.ts) */
  platform: 20,
  /** #n: a symbol, which must come before */
  boxedSymbol: 21,
  /** number of a parcel, index in it */
  live: 22,
  /** id of a module definition, export name, variable, the content that it must hold, [a copy] */
  frozen: 23,
  /** [how and text of each prototype], path of the one above (node-errors.ts) */
  nodeError: 24,
  /** 1: sets; key, [info]: half of an accessor of an error of Node (node-errors.ts) */
  infoAccessor: 25,
  /** URL of the module whose `import()` it is */
  importer: 26,
  /** id of a module definition, export name: a cell that reads the present value of the export */
  importedCell: 27,
  /** URL of the module whose `import.meta` it is */
  meta: 28,
  /**
   * #n: a class; 1: static, 0: of its prototype; [key]; `value`, `get` or `set`: a function that its text
   * makes
   */
  member: 29,
} as const;

/** Names a function, class or symbol of the process that made it: `[tag of its exporter, number]`. */
export type Identity = readonly [tag: number, serial: number];

/** In place of an import attribute: the namespace of a module of Node, which is loaded asynchronously. */
export const namespaceType = '*';

export interface CodeDefinition {
  readonly kind: 'code';
  /** The user's text, and the text as compiled (`import.meta` and the like replaced). */
  readonly text: string;
  readonly compiled: string;
  readonly form: string;
  readonly isClass: boolean;
  readonly isStrict: boolean;
  /** File name in stacks, URL of the module, zero-based place of the text's first character. */
  readonly fileName: string;
  readonly url: string;
  readonly line: number;
  readonly column: number;
  /** The captured names, in the order of their values; the internal names never collide with them. */
  readonly slots: readonly string[];
  /** Slots that hold `[value]`, shared with other functions. */
  readonly cells: readonly string[];
  /** Slots that are assigned after the function was made; all others are constants. */
  readonly variables: readonly string[];
  /** Index of the slot that a class extends; -1: none. */
  readonly heritage: number;
  /** Private static fields whose values travel. */
  readonly privates: readonly string[];
  /** The names that stand for `import.meta` and `import`; '' when not used. */
  readonly metaName: string;
  readonly importName: string;
  /** The `name` of the function where the text alone gives another. */
  readonly functionName: string | undefined;
  /** Prefix for the factory's own names, not used in the text. */
  readonly prefix: string;
}

export interface ModuleDefinition {
  readonly kind: 'module';
  readonly specifier: string;
  /** URL of the importing module; '' when `specifier` is absolute. */
  readonly parent: string;
  /** True: the importer loads it like `require`; else like `import`. */
  readonly isRequired: boolean;
  /** The import attribute `type`, or ''. */
  readonly importType: string;
  /** That of the sender, for a peer on another machine; `undefined`: any will do. */
  readonly version?: string | undefined;
}

export interface ClosureDefinition {
  readonly kind: 'closure';
  /** A payload whose root is the function; nothing in it can change. */
  readonly bytes: Uint8Array;
}

/** The function is in the state of each call. */
export interface CallDefinition {
  readonly kind: 'call';
}

/** A function with its captures at one moment, for many calls. */
export interface PinnedDefinition {
  readonly kind: 'pinned';
  /** The definition of the function, and its state. */
  readonly target: number;
  readonly state: Uint8Array;
}

/** Code with the imports and functions that all its functions have; the state has the other values. */
export interface FormDefinition {
  readonly kind: 'form';
  /** The definition of the code. */
  readonly target: number;
  /** Slots of the code, each as its index and the parts of the special. */
  readonly fixed: readonly (readonly unknown[])[];
}

export type Definition =
  | CodeDefinition
  | ModuleDefinition
  | ClosureDefinition
  | CallDefinition
  | PinnedDefinition
  | FormDefinition;

export function parseDefinition(value: unknown): Definition {
  const fields = new Fields(value, 'a definition');
  switch (fields.string('kind')) {
    case 'code':
      return {
        kind: 'code',
        text: fields.string('text'),
        compiled: fields.string('compiled'),
        form: fields.string('form'),
        isClass: fields.boolean('isClass'),
        isStrict: fields.boolean('isStrict'),
        fileName: fields.string('fileName'),
        url: fields.string('url'),
        line: fields.number('line'),
        column: fields.number('column'),
        slots: fields.names('slots'),
        cells: fields.names('cells'),
        variables: fields.names('variables'),
        heritage: fields.integer('heritage'),
        privates: fields.names('privates'),
        metaName: fields.name('metaName'),
        importName: fields.name('importName'),
        functionName: fields.optionalString('functionName'),
        prefix: fields.name('prefix'),
      };
    case 'module':
      return {
        kind: 'module',
        specifier: fields.string('specifier'),
        parent: fields.string('parent'),
        isRequired: fields.boolean('isRequired'),
        importType: fields.string('importType'),
        version: fields.optionalString('version'),
      };
    case 'closure':
      return { kind: 'closure', bytes: fields.bytes('bytes') };
    case 'call':
      return { kind: 'call' };
    case 'pinned':
      return { kind: 'pinned', target: fields.number('target'), state: fields.bytes('state') };
    case 'form':
      return { kind: 'form', target: fields.number('target'), fixed: fields.lists('fixed') };
    default:
      throw corrupt('a definition of no known kind');
  }
}

const identifierPattern = /^(?:[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*)?$/u;

/** Typed access to an object that another process wrote. */
class Fields {
  readonly #object: object;
  readonly #what: string;

  constructor(value: unknown, what: string) {
    if (typeof value !== 'object' || value === null) throw corrupt(`${what} is not an object`);
    this.#object = value;
    this.#what = what;
  }

  #wrong(name: string): Error {
    return corrupt(`${this.#what} has no good ${name}`);
  }

  string(name: string): string {
    const value: unknown = Reflect.get(this.#object, name);
    if (typeof value !== 'string') throw this.#wrong(name);
    return value;
  }

  optionalString(name: string): string | undefined {
    return Reflect.get(this.#object, name) === undefined ? undefined : this.string(name);
  }

  boolean(name: string): boolean {
    const value: unknown = Reflect.get(this.#object, name);
    if (typeof value !== 'boolean') throw this.#wrong(name);
    return value;
  }

  /** A natural number that can be a line or column. */
  number(name: string): number {
    const value: unknown = Reflect.get(this.#object, name);
    const isGood = typeof value === 'number' && Number.isInteger(value) && value >= 0;
    if (!isGood || value > 0x3fff_ffff) throw this.#wrong(name);
    return value;
  }

  integer(name: string): number {
    const value: unknown = Reflect.get(this.#object, name);
    if (typeof value !== 'number' || !Number.isInteger(value)) throw this.#wrong(name);
    return value;
  }

  /** An identifier, or ''. */
  name(name: string): string {
    const value = this.string(name);
    if (!identifierPattern.test(value)) throw this.#wrong(name);
    return value;
  }

  names(name: string): string[] {
    const value: unknown = Reflect.get(this.#object, name);
    if (!Array.isArray(value)) throw this.#wrong(name);
    return value.map((entry: unknown) => {
      if (typeof entry !== 'string' || entry === '' || !identifierPattern.test(entry)) {
        throw this.#wrong(name);
      }
      return entry;
    });
  }

  lists(name: string): unknown[][] {
    const value: unknown = Reflect.get(this.#object, name);
    if (!Array.isArray(value)) throw this.#wrong(name);
    return value.map((entry: unknown) => {
      if (!Array.isArray(entry)) throw this.#wrong(name);
      return entry;
    });
  }

  bytes(name: string): Uint8Array {
    const value: unknown = Reflect.get(this.#object, name);
    if (!isUint8Array(value)) throw this.#wrong(name);
    return value;
  }
}

/** Kinds of a property that a plain copy cannot express. */
export const propertyFlags = {
  enumerable: 1,
  writable: 2,
  configurable: 4,
  accessor: 8,
  /** Missing, though the text of the function makes it. */
  absent: 16,
  /** Present again, as the text of the class makes it. */
  restored: 32,
  /** No property: the prototype of the target. */
  above: 64,
  /** No property: the keys of the target in their order. */
  order: 128,
} as const;
/** Integrity levels of an object. */
export const integrity = { frozen: 0, sealed: 1, nonExtensible: 2 } as const;

/** An object of the plain copy, or the index of a special. */
export type Target = object | number;

export interface Payload {
  /** `[root]`: a cell, so that a special can be put there. */
  readonly root: unknown[];
  readonly specials: readonly (readonly unknown[])[];
  /** `[container, key, #special]`, flat. */
  readonly puts: readonly unknown[];
  /** `[prototype cell or null, objects]`, flat. */
  readonly prototypes: readonly unknown[];
  /**
   * `[target, key, flags, cell, since]`, flat; `key` is a string, or #n of a symbol. `since` is the version
   * of a class in which the property began: a class that is here already takes newer ones.
   */
  readonly properties: readonly unknown[];
  /** `[map or set, flat entries]`, flat. */
  readonly fills: readonly unknown[];
  /** `[target, integrity]`, flat. */
  readonly integrities: readonly unknown[];
  /** `[AsyncLocalStorage cell or key, store cell]`, flat: the stores in which a function must run. */
  readonly stores: readonly unknown[];
  /** Limit of each list: each element took a byte. A forged sparse array would loop for hours. */
  readonly maxElements: number;
}

/** `sizeBytes` is the number of bytes from which `value` was read. */
export function parsePayload(value: unknown, sizeBytes: number): Payload {
  if (!Array.isArray(value) || value.length !== 8) throw corrupt('a payload is not complete');
  const [root, specials, puts, prototypes, properties, fills, integrities, stores]: unknown[][] =
    value.map((part: unknown) => {
      if (!Array.isArray(part)) throw corrupt('a part of a payload is not a list');
      if (part.length > sizeBytes) throw corrupt('a list is longer than its payload');
      return part;
    });
  const parts = { root, specials, puts, prototypes, properties, fills, integrities, stores };
  return {
    root: list(parts.root),
    specials: list(parts.specials).map((entry: unknown) => {
      if (!Array.isArray(entry)) throw corrupt('a special is not a list');
      return entry;
    }),
    puts: list(parts.puts, 3),
    prototypes: list(parts.prototypes, 2),
    properties: list(parts.properties, 5),
    fills: list(parts.fills, 2),
    integrities: list(parts.integrities, 2),
    stores: list(parts.stores, 2),
    maxElements: sizeBytes,
  };
}

/** A dense list whose length is a multiple of `group`. */
function list(value: unknown[] | undefined, group = 1): unknown[] {
  if (value === undefined || value.length % group !== 0) throw corrupt('a list is incomplete');
  return value;
}

// Accessors for the elements of specials and fix-ups.

export function stringAt(entry: readonly unknown[], index: number): string {
  const value = entry[index];
  if (typeof value !== 'string') throw corrupt(`element ${index} is not a string`);
  return value;
}

export function numberAt(entry: readonly unknown[], index: number): number {
  const value = entry[index];
  if (typeof value !== 'number') throw corrupt(`element ${index} is not a number`);
  return value;
}

export function listAt(
  entry: readonly unknown[],
  index: number,
  maxElements = Number.POSITIVE_INFINITY,
): unknown[] {
  const value = entry[index];
  if (!Array.isArray(value)) throw corrupt(`element ${index} is not a list`);
  if (value.length > maxElements) throw corrupt('a list is longer than its payload');
  return value;
}

export function identityAt(entry: readonly unknown[], index: number): Identity {
  const value = listAt(entry, index);
  return [numberAt(value, 0), numberAt(value, 1)];
}
