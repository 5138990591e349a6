// Globals that the program added, as captures of a function: bare names, and members of the global object
// (global-uses.ts). They are variables of one scope, which all functions of a call share: one that a function
// assigns travels as a cell.
// Not here: which of them become cells in other functions (sharing.ts).

import type { Edit } from '../text/cells.js';
import type { Code } from '../text/code.js';
import type { Key } from '../text/global-keys.js';
import type { GlobalNames } from '../text/global-objects.js';
import { globalUses, type Ref, type Use } from '../text/global-uses.js';
import { isVariableName } from '../text/shown-keys.js';
import { isUserGlobal, userGlobals } from '../values/user-globals.js';
import { scriptVariables } from './capture.js';
import type { Slot } from './describe.js';
import { guarded, guardGlobals, keyEdits, listEdits } from './global-guard.js';
import type { Sharing } from './sharing.js';

/** A function's slots, with those for globals, and the changes of its text for them. */
export interface GlobalReads {
  readonly slots: readonly Slot[];
  readonly edits: readonly Edit[];
  /** True: the program has since made a global that was missing; `undefined`: none was. */
  readonly hasAppeared: (() => boolean) | undefined;
}

/** Keyed by code, then by the meaning of its names. */
const usesByNames = new WeakMap<Code, Map<string, readonly Use[]>>();

/** The globals that `code` uses beside `variables`, which it captured. */
export function globalReads(
  code: Code,
  variables: readonly Slot[],
  global: object,
  sharing: Sharing,
): GlobalReads {
  const captured = new Set(variables.map(({ name }) => name));
  const free = code.freeNames.filter((name) => !captured.has(name));
  const names = namesOf(code, free, variables, global, sharing);
  const uses = usesOf(code, names);
  const isUsual = (name: string): boolean => name in global && !isUserGlobal(name, global);
  if (uses.length === 0 && free.every(isUsual)) {
    return { slots: variables, edits: [], hasAppeared: undefined };
  }
  const reads = new Reads(code, variables, names, uses, global, sharing);
  for (const name of free) if (reads.isThere(name)) reads.add(name, name);
  const edits = reads.edits(uses);
  return { slots: reads.allSlots(), edits, hasAppeared: reads.hasAppeared() };
}

class Reads {
  readonly #code: Code;
  readonly #variables: readonly Slot[];
  readonly #names: GlobalNames;
  readonly #global: object;
  readonly #sharing: Sharing;
  readonly #slots = new Map<string, Slot>();
  /** Keys of variables that cannot change while the function runs. */
  readonly #values: ReadonlyMap<string, unknown>;
  /** Assigned as members, and by name as well. */
  readonly #assigned: ReadonlySet<unknown>;
  readonly #written: ReadonlySet<unknown>;
  /** Assigned globals other than those that are only made where they are missing. */
  readonly #changed: ReadonlySet<unknown>;
  readonly #absent = new Set<string | symbol>();
  /** Keys that are no names of variables, in their order. */
  readonly #odd: (string | symbol)[] = [];
  /** Globals of the program, for texts that compute a key. */
  #guarded: readonly (string | symbol)[] | undefined;

  constructor(
    code: Code,
    variables: readonly Slot[],
    names: GlobalNames,
    uses: readonly Use[],
    global: object,
    sharing: Sharing,
  ) {
    this.#code = code;
    this.#variables = variables;
    this.#names = names;
    this.#global = global;
    this.#sharing = sharing;
    const isSteady = ({ name, cell }: Slot): boolean =>
      cell === undefined && !code.writtenNames.has(name);
    this.#values = new Map(variables.filter(isSteady).map(({ name, value }) => [name, value]));
    const keysOf = (some: readonly Use[]) =>
      some.flatMap(({ keys }) => keys.map((key) => this.#keyOf(key)));
    this.#assigned = new Set(keysOf(uses.filter(({ writes }) => writes)));
    this.#written = new Set([...this.#assigned, ...code.writtenNames]);
    this.#changed = new Set(keysOf(uses.filter(({ writes, makes }) => writes && !makes)));
  }

  /** `undefined`: the key is computed when the function runs. */
  #keyOf({ value, variable, isRegistered }: Key): string | symbol | undefined {
    const held = value ?? this.#values.get(variable);
    if (isRegistered && value === undefined) {
      return typeof held === 'string' ? Symbol.for(held) : undefined;
    }
    return typeof held === 'string' || typeof held === 'symbol' ? held : undefined;
  }

  isThere(key: string | symbol): boolean {
    if (this.#sharing.isOfWorker(key)) return false;
    if (isUserGlobal(key, this.#global)) return true;
    if (!(key in this.#global)) this.#absent.add(key);
    return false;
  }

  add(slot: string, key: string | symbol, isFlag = false): void {
    const code = this.#code;
    const isAssigned = this.#assigned.has(key);
    const isWritten = this.#written.has(key);
    const isNamed = typeof key === 'string' && code.writtenNames.has(key);
    this.#slots.set(slot, {
      name: slot,
      value: isFlag || Reflect.get(this.#global, key),
      binding: undefined,
      isFixed: false,
      global: {
        name: key,
        writes: isWritten,
        isMade: isAssigned && !this.#changed.has(key) && !isNamed,
      },
      cell: this.#cellOf(key),
    });
  }

  #cellOf(key: string | symbol): unknown {
    // The text has it as the global object, which no cell is.
    const isObject = typeof key === 'string' && this.#names.objects.includes(key);
    if (this.#code.usesEval || isObject) return undefined;
    return this.#sharing.cellOfGlobal(key, this.#written.has(key), this.#code.isClass);
  }

  #refOf(key: Key, isHas: boolean): Ref | undefined {
    const name = this.#keyOf(key);
    if (name === undefined || !this.isThere(name)) return undefined;
    // A text given to eval may assign, and cannot see a cell.
    if (this.#code.usesEval && this.#assigned.has(name)) return undefined;
    const isCell = this.#cellOf(name) !== undefined;
    const isFlag = isHas && !isCell;
    const slot = `${this.#code.names.prefix}${isFlag ? 'in' : ''}_${this.#titleOf(name)}`;
    if (!this.#slots.has(slot)) this.add(slot, name, isFlag);
    return { slot, isCell };
  }

  /** The part of a variable's name that stands for the key. */
  #titleOf(key: string | symbol): string {
    if (typeof key === 'string' && isVariableName(key)) return key;
    if (!this.#odd.includes(key)) this.#odd.push(key);
    return String(this.#odd.indexOf(key));
  }

  edits(uses: readonly Use[]): Edit[] {
    const edits: Edit[] = [];
    for (const use of uses) {
      // Inside of a range that another edit replaces.
      const isGone = ({ start, end }: Edit): boolean =>
        edits.some((each) => each.start < each.end && start >= each.start && end <= each.end);
      edits.push(...this.#editsOf(use).filter((edit) => !isGone(edit)));
    }
    return edits;
  }

  #editsOf(use: Use): Edit[] {
    const { prefix } = this.#code.names;
    const { keys, lists, mixed, isGuarded } = use;
    const refs = isGuarded ? [] : keys.map((key) => this.#refOf(key, use.isHas));
    const hasRefs = refs.some((ref) => ref !== undefined);
    const edits: Edit[] = [];
    const open = keys.filter((key) => {
      const name = this.#keyOf(key);
      return name === undefined || (isGuarded && this.isThere(name));
    });
    const isMixed = hasRefs && open.length > 0;
    if (hasRefs && !isMixed) {
      const bind = `${prefix}bind`;
      if (use.calls) this.#addFixed(bind, Function.prototype.bind);
      edits.push(...use.edits(refs, bind));
    }
    const listed = isMixed && mixed !== undefined ? [...lists, mixed] : lists;
    if ((open.length === 0 && listed.length === 0) || !this.#guards()) return edits;
    const names = { guard: `${prefix}guard`, keys: `${prefix}keys` };
    for (const key of open) edits.push(...keyEdits(key, names));
    for (const each of listed) edits.push(...listEdits(each, names, each.what, each.except));
    return edits;
  }

  /**
   * Adds the slots of the guards in texts with computed keys. False: the program has no globals of its own.
   */
  #guards(): boolean {
    const { prefix } = this.#code.names;
    const isOfProgram = (key: string | symbol): boolean => !this.#sharing.isOfWorker(key);
    this.#guarded ??= userGlobals(this.#global).filter(isOfProgram);
    // A class lives on in workers, so it cannot get slots later.
    if (this.#guarded.length === 0 && !this.#code.isClass) return false;
    this.#addFixed(`${prefix}guard`, guardGlobals);
    const value = guarded(this.#guarded, this.#global);
    const name = `${prefix}keys`;
    this.#slots.set(name, { name, value, binding: undefined, isFixed: false });
    return true;
  }

  #addFixed(name: string, value: unknown): void {
    this.#slots.set(name, { name, value, binding: undefined, isFixed: true });
  }

  allSlots(): Slot[] {
    return [...this.#variables, ...this.#slots.values()];
  }

  hasAppeared(): (() => boolean) | undefined {
    const global = this.#global;
    const missing = [...this.#absent];
    const isFree = this.#guarded?.length === 0;
    if (missing.length === 0 && !isFree) return undefined;
    return () =>
      missing.some((key) => isUserGlobal(key, global) || isOfScripts(key, global)) ||
      (isFree && userGlobals(global).length > 0);
  }
}

/** True: a classic script has declared it since; that is not known of other realms. */
function isOfScripts(key: string | symbol, global: object): boolean {
  if (typeof key !== 'string') return false;
  return global !== globalThis || scriptVariables().has(key);
}

/** Names that the global object has, and those that programs give to it. */
const aliases = ['globalThis', 'global', 'window', 'self'];
const none: GlobalNames = { objects: [], members: [], absent: [] };

/** The present meaning of the names of `code`; `free`: names that it did not capture. */
function namesOf(
  code: Code,
  free: readonly string[],
  variables: readonly Slot[],
  global: object,
  sharing: Sharing,
): GlobalNames {
  const isAlias = ({ name, value, cell }: Slot): boolean =>
    value === global && cell === undefined && !code.writtenNames.has(name);
  const isGlobal = (name: string): boolean => {
    if (!aliases.includes(name) && !isUserGlobal(name, global)) return false;
    if (code.writtenNames.has(name) || sharing.isSharedGlobal(name)) return false;
    return name in global && Reflect.get(global, name) === global;
  };
  const objects = [...free.filter(isGlobal), ...variables.filter(isAlias).map(({ name }) => name)];
  // The usual case.
  if (objects.length === 0 && !free.includes('Function')) return none;
  return {
    objects,
    members: aliases.filter((name) => name in global && Reflect.get(global, name) === global),
    absent: free.filter((name) => !(name in global)),
  };
}

function usesOf(code: Code, names: GlobalNames): readonly Use[] {
  if (names === none) return [];
  let byNames = usesByNames.get(code);
  if (byNames === undefined) {
    byNames = new Map();
    usesByNames.set(code, byNames);
  }
  const key = [names.objects, names.members, names.absent].join(' ');
  let uses = byNames.get(key);
  if (uses === undefined) {
    uses = globalUses(code.text, names);
    byNames.set(key, uses);
  }
  return uses;
}
