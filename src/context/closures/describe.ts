// A function as it is at this moment: its code, its place, the values of its free names. One inspector
// capture, or none for functions without captures and for those that came from a peer. Long (over 400 lines),
// because what is read of a function is one list, and each part has a reason of its own.
// Not here: writing it (functions.ts), refusals (hazards.ts).

import { hasPrivateMembers, sourceText } from '../../lib/index.js';
import { isLiveCell } from '../decode/live-cells.js';
import { compileFailed, originOf } from '../decode/recreate.js';
import { liveImport } from '../modules/live-imports.js';
import type { Around } from '../modules/owners.js';
import { bindingAt, type Place, placeOf, scriptUrlAt } from '../modules/scripts.js';
import type { CodeDefinition, Definition } from '../protocol.js';
import { type Code, readCode } from '../text/code.js';
import { type Binding, isConstant } from '../text/scope.js';
import { isVariableName } from '../text/shown-keys.js';
import type { AnyFunction } from '../types.js';
import { isBuiltinGlobal } from '../values/intrinsics.js';
import { type Path, refuse, transferError } from '../values/refuse.js';
import { isUserGlobal } from '../values/user-globals.js';
import { Captures } from './capture.js';
import { keyOf } from './classes.js';
import { definitionOf, isSloppy, isStrictFunction, madeName, usualName } from './definition.js';
import { globalReads } from './global-reads.js';
import {
  inspectorMissing,
  refuseComputedField,
  refuseFieldKey,
  refuseUnreadable,
} from './hazards.js';
import { type Capture, canInspect, inspectSelf } from './inspector.js';
import { isOwnName, readOwnName } from './own-names.js';
import { selfOf } from './self.js';
import { type Sharing, scriptKey } from './sharing.js';

/** Keeps definitions and assigns their ids. */
export interface Definitions {
  add(definition: Definition): number;
  /** The id of an equal definition, made where there is none. */
  intern(key: string, make: () => Definition): number;
}

/** One captured name. `binding` is its declaration in the module's source. */
export interface Slot {
  readonly name: string;
  readonly value: unknown;
  readonly binding: Binding | undefined;
  /** Read from the class instead of a variable: never changes. */
  readonly isFixed: boolean;
  /** The scope that holds it, as V8 shows it, and the scopes around that. */
  readonly scopes?: readonly object[];
  /** Names a variable at the top of a classic script, which all scripts see. */
  readonly inScripts?: string | undefined;
  /** Identifies the cell that carries it; `undefined`: it travels as its value. */
  readonly cell?: unknown;
  /** The global of the program that it stands for. */
  readonly global?: {
    readonly name: string | symbol;
    /** True: the function assigns it; `isMade`: only where there is none. */
    readonly writes: boolean;
    readonly isMade: boolean;
  };
}

/** The present state of a function. */
export interface Described {
  readonly code: Code;
  readonly place: Place | undefined;
  readonly codeId: number;
  /** `name` as making it from its definition gives it. */
  readonly madeName: string | undefined;
  readonly slots: readonly Slot[];
  /** `[this, arguments]` of an arrow that uses those around it. */
  readonly self: readonly unknown[];
  /** Values of the private statics of a class, in the order of its code. */
  readonly privates: readonly unknown[];
  /** Node's own JavaScript: travels by name or not at all. */
  readonly isOfNode: boolean;
  /** True: a missing global that it uses exists now; `undefined`: none was missing. */
  readonly hasAppeared: (() => boolean) | undefined;
}

interface Interned {
  readonly codeId: number;
  readonly madeName: string | undefined;
}

/** Code without captures: found again by its text, without resolving its place. */
interface Bare extends Interned {
  readonly isStrict: boolean;
  /** Number of times that its place was resolved. */
  checks: number;
}

/** One text may be strict here and sloppy there, so the places of this many functions are resolved. */
const checksBeforeReuse = 16;
/** Definitions of one piece of code that differ only by the name of the function. */
const maxNames = 16;

export class Describer {
  readonly #definitions: Definitions;
  readonly #sharing: Sharing;
  /** Functions described during this export: a failed attempt is not paid twice. */
  readonly #described = new Map<AnyFunction, Described>();
  readonly #captures = new Captures();
  /** By text, then by place, then by name. */
  readonly #codes = new Map<string, Map<string, Map<string, Interned>>>();
  /** By text, then by name and mode. */
  readonly #bare = new Map<string, Map<string, Bare>>();

  constructor(definitions: Definitions, sharing: Sharing) {
    this.#definitions = definitions;
    this.#sharing = sharing;
  }

  /** Clears the state of one export. */
  forget(): void {
    this.#described.clear();
    this.#captures.forget();
  }

  /** The place where `fn` was written; `undefined`: not available, or it came from a peer. */
  placeOf(fn: AnyFunction): Place | undefined {
    const known = this.#described.get(fn);
    // A function without needs from outside was described by its text alone.
    if (known?.place !== undefined) return known.place;
    const text = textOf(fn);
    const code = originOf(fn) === undefined ? readCode(text) : undefined;
    if (code === undefined || !canInspect()) return undefined;
    const { location } = this.#captures.of(fn);
    return location && placeOf(text, code.anchor, location);
  }

  /** The scopes that the code of `fn` sees; `undefined`: they cannot be read. */
  around(fn: AnyFunction): Around | undefined {
    const place = this.placeOf(fn);
    if (place === undefined) return undefined;
    const { scopes, ofScripts } = this.#captures.of(fn);
    return { script: place.script, scopes: scopes.filter((each) => each !== ofScripts) };
  }

  /** The URL of the script of `fn`, which is not read for it; `undefined`: it has none. */
  scriptOf(fn: AnyFunction): string | undefined {
    const { location } = this.#captures.of(fn);
    return location && scriptUrlAt(location);
  }

  /**
   * Reads the captures of `fn`; `holders` are the objects on the way to it. Throws when a needed value cannot
   * be read.
   */
  describe(fn: AnyFunction, path: Path, holders: readonly object[]): Described {
    const known = this.#described.get(fn);
    if (known !== undefined) return known;
    const described = this.#recreated(fn) ?? this.#captured(fn, path, holders);
    // A class has its private statics, which travel.
    if (!described.code.isClass && hasPrivateMembers(fn)) refuse(fn, path);
    this.#described.set(fn, described);
    return described;
  }

  /** A function that came from a peer has a list of its slots, so it needs no inspector. */
  #recreated(fn: AnyFunction): Described | undefined {
    const origin = originOf(fn);
    if (origin === undefined) return undefined;
    const { definition, self } = origin;
    const code = readCode(definition.text);
    if (code === undefined) throw compileFailed(definition, 'its text is not a function');
    const values = origin.read();
    return {
      code,
      place: undefined,
      ...this.#intern(definition, code),
      slots: definition.slots.map((name, i) => {
        const isFixed = code.isClass && isFixedName(code, name);
        const held = values[i];
        // The cell itself is the identity.
        const isCell = definition.cells.includes(name);
        if (isCell && isLiveCell(held)) {
          return { name, value: held, binding: undefined, isFixed, cell: held };
        }
        if (isCell && Array.isArray(held)) {
          return { name, value: held[0], binding: undefined, isFixed, cell: held };
        }
        return { name, value: held, binding: undefined, isFixed };
      }),
      self,
      privates: origin.readPrivates(),
      isOfNode: false,
      hasAppeared: undefined,
    };
  }

  #captured(fn: AnyFunction, path: Path, holders: readonly object[]): Described {
    const text = textOf(fn);
    const code = readCode(text);
    if (code === undefined) throw new TypeError('native code has no captures');
    refuseUnreadable(code, path);
    const needsScopes =
      code.freeNames.length > 0 ||
      code.isClass ||
      code.usesEval ||
      code.usesOuterThis ||
      code.usesOuterArguments;
    // A function that names itself may keep state in its properties, which is that of its module (roads.ts).
    if (!needsScopes && !code.usesItself) {
      const known = this.#cachedBare(fn, text, code);
      if (known !== undefined) return known;
    }
    if (!canInspect()) {
      const isUnread = code.privateStatics.length > 0;
      if (isUnread || code.usesEval || code.freeNames.some((name) => !isBuiltinGlobal(name))) {
        inspectorMissing(code, path);
      }
      return bare(code, this.#intern(definitionOf(fn, code, undefined, []), code));
    }
    const capture = this.#captures.of(fn);
    const { location } = capture;
    const isPlaced = location !== undefined && !isGenerated(text, code, capture);
    const place = isPlaced ? placeOf(text, code.anchor, location) : undefined;
    if (place?.script.url.startsWith('node:')) {
      return { ...bare(code, { codeId: -1, madeName: undefined }), place, isOfNode: true };
    }
    const variables = this.#slotsOf(fn, code, capture, place, path);
    refuseFieldKeys(code, variables, path);
    const reads = globalReads(code, variables, capture.global, this.#sharing);
    const { slots, hasAppeared } = reads;
    const definition = definitionOf(fn, code, place, slots, reads.edits);
    const interned = this.#intern(definition, code);
    if (!needsScopes) this.#cacheBare(fn, text, code, place, interned);
    const self = selfOf(fn, code, capture, place, holders, (each) => this.placeOf(each), path);
    const privates = privatesOf(fn, code);
    return { code, place, ...interned, slots, self, privates, isOfNode: false, hasAppeared };
  }

  #cachedBare(fn: AnyFunction, text: string, code: Code): Described | undefined {
    const known = this.#bare.get(text)?.get(bareKey(fn, code));
    if (known === undefined) return undefined;
    const isSure = code.showsMode || !code.dependsOnMode || known.checks >= checksBeforeReuse;
    return isSure ? bare(code, known) : undefined;
  }

  #cacheBare(
    fn: AnyFunction,
    text: string,
    code: Code,
    place: Place | undefined,
    interned: Interned,
  ): void {
    let byName = this.#bare.get(text);
    if (byName === undefined) {
      byName = new Map();
      this.#bare.set(text, byName);
    }
    const key = bareKey(fn, code);
    const isStrict = isStrictFunction(fn, code, place);
    const known = byName.get(key);
    if (known === undefined) {
      if (byName.size < maxNames) byName.set(key, { ...interned, isStrict, checks: 1 });
    } else if (known.isStrict !== isStrict) known.checks = Number.NEGATIVE_INFINITY;
    else known.checks += 1;
  }

  #slotsOf(
    fn: AnyFunction,
    code: Code,
    { scopes, ofScripts, global }: Capture,
    place: Place | undefined,
    path: Path,
  ): Slot[] {
    const slots: Slot[] = [];
    for (const name of code.freeNames) {
      const binding = place && bindingAt(place, name);
      if (name === code.heritageName) {
        slots.push({ name, value: Object.getPrototypeOf(fn), binding, isFixed: true });
        continue;
      }
      if (binding !== undefined && isOwnName(binding)) {
        slots.push({ name, value: readOwnName(fn, name, path), binding, isFixed: true });
        continue;
      }
      const scope = scopes.find((candidate) => Object.hasOwn(candidate, name));
      if (scope === undefined) {
        const isField = code.isClass && binding !== undefined && !isUserGlobal(name, global);
        if (isField) refuseComputedField(name, path);
      } else {
        const value = readScope(scope, name, path);
        const inScripts = scope === ofScripts ? scriptKey(global, name) : undefined;
        const around = scopes.slice(scopes.indexOf(scope));
        const slot = { name, value, binding, isFixed: false, scopes: around, inScripts };
        const cell = code.usesEval
          ? undefined
          : ((place && liveImport(binding, place.script.url)) ??
            this.#sharing.cellOf(slot, place, code));
        slots.push({ ...slot, cell });
      }
    }
    if (code.usesEval) {
      for (const [name, value] of variablesAround(scopes, code.freeNames)) {
        slots.push({ name, value, binding: place && bindingAt(place, name), isFixed: false });
      }
    }
    const fixed = (name: string, value: unknown): void => {
      slots.push({ name, value, binding: undefined, isFixed: true });
    };
    if (code.heritageSlot !== undefined) fixed(code.heritageSlot, Object.getPrototypeOf(fn));
    for (const member of code.members) {
      if (member.slot !== '') fixed(member.slot, keyOf(fn, code, member, place) ?? member.slot);
    }
    return slots;
  }

  #intern(definition: CodeDefinition, code: Code): Interned {
    const { text, compiled, url, line, column, slots, cells, variables, isStrict } = definition;
    let byPlace = this.#codes.get(text);
    if (byPlace === undefined) {
      byPlace = new Map();
      this.#codes.set(text, byPlace);
    }
    const changed = compiled === text ? '' : compiled;
    const names = `${slots.join()}:${cells.join()}:${variables.join()}`;
    const key = `${line}:${column}:${names}:${isStrict}:${url}:${changed}`;
    let byName = byPlace.get(key);
    if (byName === undefined) {
      byName = new Map();
      byPlace.set(key, byName);
    }
    const name = madeName(definition, code);
    const known = byName.get(String(name)) ?? (byName.size < maxNames ? undefined : first(byName));
    if (known !== undefined) return known;
    const made = { codeId: this.#definitions.add(definition), madeName: name };
    byName.set(String(name), made);
    return made;
  }
}

function isFixedName(code: Code, name: string): boolean {
  if (name === code.heritageName || name === code.heritageSlot) return true;
  return code.members.some(({ slot }) => slot === name);
}

function refuseFieldKeys({ fieldKeys, text }: Code, slots: readonly Slot[], path: Path): void {
  for (const { start, end, isStable, names } of fieldKeys) {
    const mayDiffer = slots.some(
      ({ name, binding, inScripts }) =>
        names.includes(name) &&
        binding !== undefined &&
        (inScripts === undefined ? !isConstant(binding) : binding.kind !== 'const'),
    );
    if (!isStable || mayDiffer) refuseFieldKey(text.slice(start, end), path);
  }
}

function privatesOf(fn: AnyFunction, { privateStatics }: Code): unknown[] {
  if (privateStatics.length === 0) return [];
  const values = inspectSelf().privateStatics(fn);
  return privateStatics.map((name) => values.get(name));
}

function first<T>(map: ReadonlyMap<unknown, T>): T | undefined {
  return map.values().next().value;
}

/** Code of `new Function` is a script of its own: its place has no use, and costs 15 ms to find. */
function isGenerated(text: string, code: Code, { scopes, location }: Capture): boolean {
  const start = '(function anonymous';
  if (!text.startsWith(start.slice(1)) || location?.column !== start.length) return false;
  if (location.line !== 0 || code.usesImportMeta || code.usesDynamicImport) return false;
  return !code.freeNames.some((name) => scopes.some((scope) => Object.hasOwn(scope, name)));
}

function bareKey(fn: AnyFunction, code: Code): string {
  return `${code.showsMode && isSloppy(fn)} ${usualName(fn)}`;
}

function bare(code: Code, { codeId, madeName }: Interned): Described {
  return {
    code,
    place: undefined,
    codeId,
    madeName,
    slots: [],
    self: [],
    privates: [],
    isOfNode: false,
    hasAppeared: undefined,
  };
}

/** The values of `slots` in a worker; `undefined`: values alone do not describe them. */
export function slotValues(slots: readonly Slot[]): unknown[] | undefined {
  const values: unknown[] = [];
  const cells = new Map<unknown, unknown[]>(); // a global may be here by two names
  for (const { value, binding, cell } of slots) {
    if (binding?.kind === 'import') return undefined;
    const held = cell === undefined ? undefined : (cells.get(cell) ?? [value]);
    if (held !== undefined) cells.set(cell, held);
    values.push(held ?? value);
  }
  return values;
}

export function textOf(fn: AnyFunction): string {
  return sourceText(fn);
}

/** Every variable that a direct eval may name, besides those that the text names itself. */
function variablesAround(
  scopes: readonly object[],
  named: readonly string[],
): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const scope of scopes) {
    for (const name of Object.keys(scope)) {
      if (found.has(name) || named.includes(name) || !isVariable(name)) continue;
      try {
        found.set(name, Reflect.get(scope, name));
      } catch {
        // It has no value yet: eval would throw at home, too.
      }
    }
  }
  return found;
}

/** V8 lists `this` and names of its own among the variables of a scope. */
function isVariable(name: string): boolean {
  return isVariableName(name) && !['this', 'arguments'].includes(name);
}

function readScope(scope: object, name: string, path: Path): unknown {
  try {
    return Reflect.get(scope, name);
  } catch (cause) {
    throw transferError(
      'TRANSFER_UNREADABLE',
      path,
      `its variable \`${name}\` has no value yet: call after its declaration has run`,
      { cause },
    );
  }
}
