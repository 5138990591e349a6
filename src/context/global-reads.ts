// Globals that the program added, as captures of a function: bare names, and members of the global object
// (global-uses.ts). They are variables of one scope, which all functions of a call share: one that a function
// assigns travels as a cell. Not here: which of them become cells in other functions (sharing.ts).

import type { Edit } from './cells.js';
import type { Code } from './code.js';
import type { Slot } from './describe.js';
import { globalUses, type Key, type Ref, type Use } from './global-uses.js';
import { isBuiltinGlobal, isPromptModule } from './intrinsics.js';
import type { Sharing } from './sharing.js';

const globalNames = ['globalThis', 'global'];

/** A function's slots, with those for globals, and the changes of its text for them. */
export interface GlobalReads {
  readonly slots: readonly Slot[];
  readonly edits: readonly Edit[];
  /** True: the program has made a global since that was missing; `undefined`: none was. */
  readonly hasAppeared: (() => boolean) | undefined;
}

/** By the names of the global object that it captured. */
const known = new WeakMap<Code, Map<string, readonly Use[]>>();

/** The globals that `code` uses beside `variables`, which it captured. */
export function globalReads(
  code: Code,
  variables: readonly Slot[],
  global: object,
  sharing: Sharing,
): GlobalReads {
  const uses = usesOf(code, variables, global);
  // The usual case: each name is captured, or Node's.
  const isUsual = (name: string): boolean =>
    variables.some((slot) => slot.name === name) || (name in global && !isUserGlobal(name, global));
  if (uses.length === 0 && code.freeNames.every(isUsual)) {
    return { slots: variables, edits: [], hasAppeared: undefined };
  }
  const isSteady = ({ name, cell }: Slot): boolean =>
    cell === undefined && !code.writtenNames.has(name);
  const values = new Map(variables.filter(isSteady).map(({ name, value }) => [name, value]));
  const nameOf = ({ text, isVariable }: Key): string => {
    const name = isVariable ? values.get(text) : text;
    return typeof name === 'string' && isVariableName(name) ? name : '';
  };
  const namesOf = (some: readonly Use[]) => some.flatMap(({ keys }) => keys.map(nameOf));
  const assigned = new Set(namesOf(uses.filter(({ writes }) => writes)));
  const written = new Set([...assigned, ...code.writtenNames]);
  const changed = new Set(namesOf(uses.filter(({ writes, makes }) => writes && !makes)));
  const captured = new Set(variables.map(({ name }) => name));
  const slots = new Map<string, Slot>();
  const add = (slot: string, name: string, isFlag = false): void => {
    const cell = code.usesEval ? undefined : sharing.cellOfGlobal(name, written.has(name), code);
    const value: unknown = isFlag || Reflect.get(global, name);
    const isMade = assigned.has(name) && !changed.has(name) && !code.writtenNames.has(name);
    const of = { name, writes: written.has(name), isMade };
    slots.set(slot, { name: slot, value, binding: undefined, isFixed: false, global: of, cell });
  };
  const absent = new Set<string>();
  const isThere = (name: string): boolean => {
    if (sharing.isOfHost(name)) return false;
    if (isUserGlobal(name, global)) return true;
    if (name !== '' && !(name in global)) absent.add(name);
    return false;
  };
  for (const name of code.freeNames) if (!captured.has(name) && isThere(name)) add(name, name);
  const { prefix } = code.names;
  const refOf = (key: Key, isHas: boolean): Ref | undefined => {
    const name = nameOf(key);
    // A text given to eval may assign, and cannot see a cell.
    if (!isThere(name) || (code.usesEval && assigned.has(name))) return undefined;
    const isCell =
      !code.usesEval && sharing.cellOfGlobal(name, written.has(name), code) !== undefined;
    const isFlag = isHas && !isCell;
    const slot = isFlag ? `${prefix}in_${name}` : `${prefix}_${name}`;
    if (!slots.has(slot)) add(slot, name, isFlag);
    return { slot, isCell };
  };
  const bind = `${prefix}bind`;
  const edits = uses.flatMap((use) => {
    const refs = use.keys.map((key) => refOf(key, use.isHas));
    if (!refs.some((ref) => ref !== undefined)) return [];
    if (use.calls) {
      const value = Function.prototype.bind;
      slots.set(bind, { name: bind, value, binding: undefined, isFixed: true });
    }
    return use.edits(refs, bind);
  });
  const missing = [...absent];
  const hasAppeared = (): boolean => missing.some((name) => isUserGlobal(name, global));
  return {
    slots: [...variables, ...slots.values()],
    edits,
    hasAppeared: missing.length === 0 ? undefined : hasAppeared,
  };
}

/** True: the program, and not Node or the language, has put `name` there. */
export function isUserGlobal(name: string, global: object): boolean {
  if (name === '' || name === 'undefined' || !(name in global)) return false;
  return !isBuiltinGlobal(name) || isPromptModule(name);
}

function isVariableName(name: string): boolean {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}

function usesOf(code: Code, variables: readonly Slot[], global: object): readonly Use[] {
  const isAlias = ({ name, value, cell }: Slot): boolean =>
    value === global && cell === undefined && !code.writtenNames.has(name);
  const aliases = variables.filter(isAlias).map(({ name }) => name);
  const names = [...globalNames.filter((name) => code.freeNames.includes(name)), ...aliases];
  if (names.length === 0) return [];
  let byNames = known.get(code);
  if (byNames === undefined) {
    byNames = new Map();
    known.set(code, byNames);
  }
  const key = names.join();
  let uses = byNames.get(key);
  if (uses === undefined) {
    uses = globalUses(code.text, names);
    byNames.set(key, uses);
  }
  return uses;
}
