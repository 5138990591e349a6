// Identifies the scope of each captured variable, as far as possible. The inspector shows the values of a scope
// but not its identity, so it is inferred:
// - a scope of a module's root exists once, and so does the one of all classic scripts of a realm;
// - values that a scope makes for itself (a function declared in it, `const list = []`) differ in each, and
// so identify the scope;
// - two functions of one text that each scope makes at most once are of two scopes;
// - two scopes of which any variable differs are two.
// The native reader compares the contexts of both where that does not decide.
// A variable that functions share and one of them assigns travels as a cell, `[value]`, which they share in
// the worker as well (cells.ts). Where nothing decides whether they share it, they are refused.
// Not here: reading scopes (describe.ts).

import type { Graph } from '../encode/encode.js';
import { type Place, type Script, scopeAround } from '../modules/scripts.js';
import type { Code } from '../text/code.js';
import { type Binding, isConstant, type Scope } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import { transferError } from '../values/refuse.js';
import { isSameScope } from './capture.js';
import type { Slot } from './describe.js';
import { nameOf } from './hazards.js';
import { valueIn } from './scopes.js';

/** A function that uses a global of the program. */
export interface Sharer {
  readonly fn: AnyFunction;
  readonly slot: Slot;
  readonly writes: boolean;
  /** True: its text may be changed so that it uses a cell. */
  readonly canShare: boolean;
}

/** A function that uses a variable. */
export interface User extends Sharer {
  readonly place: Place | undefined;
}

const serials = new WeakMap<object, number>();
let lastSerial = 0;

function serialOf(value: object): number {
  const known = serials.get(value);
  if (known !== undefined) return known;
  lastSerial += 1;
  serials.set(value, lastSerial);
  return lastSerial;
}

/** Variables that functions were found to share; from then on they travel as cells. */
export class Sharing {
  readonly #shared = new Set<string | symbol>();
  readonly #ofWorker = new Set<string | symbol>();
  /** Scopes of this export that only the native reader identifies, by the variable that they hold. */
  readonly #instances = new Map<string, object[]>();

  /** Number of variables that were found to be shared; it only grows. */
  get count(): number {
    return this.#shared.size;
  }

  /** Names the cell of a variable; `undefined`: it travels as its value. */
  cellOf(slot: Slot, place: Place | undefined, { isClass }: Code): string | undefined {
    const { binding, inScripts, scopes: [scope] = [] } = slot;
    // A variable that is constant for this script may be assigned by another one.
    if (inScripts !== undefined) {
      if (binding?.kind === 'const') return undefined;
      return isClass || this.#shared.has(inScripts) ? inScripts : undefined;
    }
    if (place === undefined || scope === undefined) return undefined;
    if (binding === undefined || isConstant(binding)) return undefined;
    const key = variableOf(place.script, binding);
    // A class lives on in workers, so it cannot become another later.
    if (!isClass && !this.#shared.has(key)) return undefined;
    const instance = instanceOf(binding.scope, scope) ?? this.#contextOf(key, scope);
    return instance === undefined ? undefined : `${key}@${instance}`;
  }

  /** The number of a scope among those of this export that hold the variable; `undefined`: not known. */
  #contextOf(key: string, scope: object): string | undefined {
    const known = this.#instances.get(key) ?? [];
    let at = 0;
    for (const other of known) {
      const isSame = isSameScope(scope, other);
      if (isSame === undefined) return undefined;
      if (isSame) return `#${at}`;
      at += 1;
    }
    if (isSameScope(scope, scope) === undefined) return undefined;
    this.#instances.set(key, [...known, scope]);
    return `#${at}`;
  }

  /** The same for a global of the program, which `code` uses. */
  cellOfGlobal(name: string | symbol, isWritten: boolean, isClass: boolean): unknown {
    return isWritten || isClass || this.isSharedGlobal(name) ? globalKey(name) : undefined;
  }

  /** True: functions share the global, and one of them assigns it. */
  isSharedGlobal(name: string | symbol): boolean {
    return this.#shared.has(globalKey(name));
  }

  /** True: the call uses the global of the worker instead, because that of the program cannot travel. */
  isOfWorker(name: string | symbol): boolean {
    return this.#ofWorker.has(name);
  }

  /**
   * Leaves globals that cannot travel to the worker where a function of `graph` makes them there. Throws for
   * others.
   */
  settle(graph: Graph): void {
    for (const [name, refusal] of graph.refused) {
      const users = graph.globals.get(globalKey(name)) ?? [];
      if (!users.some(({ slot }) => slot.global?.isMade === true)) throw refusal;
      this.#ofWorker.add(name);
      graph.isStale = true;
    }
  }

  /** Clears the state of one export. */
  forget(): void {
    this.#ofWorker.clear();
    this.#instances.clear();
  }

  /** Notes that functions share a global that one of them assigns. */
  checkGlobal(user: Sharer, name: string | symbol, graph: Graph): void {
    const key = globalKey(name);
    const users = graph.globals.get(key) ?? [];
    graph.globals.set(key, users);
    for (const other of users) {
      if (other.fn === user.fn || !(user.writes || other.writes)) continue;
      if (user.slot.cell !== undefined && other.slot.cell !== undefined) continue;
      if (!user.canShare || !other.canShare) refuse(user, other, graph);
      this.#shared.add(key);
      graph.isStale = true;
    }
    users.push(user);
  }

  /** Refuses a function that may share a variable with one before it; notes a shared one. */
  check(user: User, graph: Graph): void {
    const { place, slot } = user;
    const { binding, name, inScripts } = slot;
    if (binding?.kind === 'const') return;
    const isKnown = binding !== undefined && place !== undefined;
    const key = inScripts ?? (isKnown ? variableOf(place.script, binding) : `${name}?`);
    const users = graph.variables.get(key) ?? [];
    graph.variables.set(key, users);
    for (const other of users) {
      if (other.fn === user.fn || !(user.writes || other.writes)) continue;
      if (slot.cell !== undefined && other.slot.cell !== undefined) continue;
      const verdict = compare(user, other);
      if (verdict === 'two') continue;
      if (verdict === 'unknown' || !user.canShare || !other.canShare) refuse(user, other, graph);
      this.#shared.add(key);
      graph.isStale = true;
    }
    users.push(user);
  }
}

function globalKey(name: string | symbol): string | symbol {
  return typeof name === 'symbol' ? name : `global ${name}`;
}

/** Names a variable at the top of a classic script in the realm of `global`. */
export function scriptKey(global: object, name: string): string {
  return `script ${serialOf(global)} ${name}`;
}

function variableOf(script: Script, { start }: Binding): string {
  return `${serialOf(script)}:${start}`;
}

/** Identifies `scope` among all scopes made for `declared`; `undefined`: nothing identifies it. */
function instanceOf(declared: Scope, scope: object): string | undefined {
  if (declared.parent === undefined) return 'root';
  for (const binding of declared.bindings.values()) {
    if (!binding.isFresh || !isConstant(binding)) continue;
    const value = valueIn(scope, binding.name);
    if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
      return `${binding.start}=${serialOf(value)}`;
    }
  }
  return undefined;
}

function compare(a: User, b: User): 'one' | 'two' | 'unknown' {
  if (!Object.is(a.slot.value, b.slot.value)) return 'two';
  if (a.slot.inScripts !== undefined) return 'one';
  const { binding, scopes: [scope] = [] } = a.slot;
  const [otherScope] = b.slot.scopes ?? [];
  if (binding === undefined || scope === undefined || otherScope === undefined) return 'unknown';
  const instance = instanceOf(binding.scope, scope);
  const other = instanceOf(binding.scope, otherScope);
  if (instance !== undefined && other !== undefined) return instance === other ? 'one' : 'two';
  const isSame = isSameScope(scope, otherScope);
  if (isSame !== undefined) return isSame ? 'one' : 'two';
  if (a.place === undefined || b.place === undefined) return 'unknown';
  if (a.place.start === b.place.start && isMadeOnce(a.place, binding.scope)) return 'two';
  return haveSameValues(a.slot.scopes ?? [], b.slot.scopes ?? []) ? 'unknown' : 'two';
}

/** True: one run of the code of `declared` makes at most one function at `place`. */
function isMadeOnce(place: Place, declared: Scope): boolean {
  let at = scopeAround(place);
  for (; at !== undefined && at !== declared; at = at.parent) {
    if (at.inLoop || at.holdsVars || at.ownsThis) return false;
  }
  return at !== undefined;
}

function haveSameValues(some: readonly object[], others: readonly object[]): boolean {
  if (some.length !== others.length) return true;
  return some.every((scope, at) => {
    const other = others[at] ?? scope;
    return Object.keys(scope).every((name) =>
      Object.is(valueIn(scope, name), valueIn(other, name)),
    );
  });
}

function refuse(user: Sharer, other: Sharer, graph: Graph): never {
  const [writer, reader] = user.writes ? [user, other] : [other, user];
  const byEval = [writer, reader].find(({ canShare }) => !canShare);
  if (byEval !== undefined) {
    throw transferError(
      'TRANSFER_SHARED_VARIABLE',
      graph.path,
      `the eval() of ${nameOf(byEval.fn)} sees \`${user.slot.name}\`, which ` +
        `${nameOf(byEval === writer ? reader.fn : writer.fn)} shares with it, and may assign it: write ` +
        '`(0, eval)(text)`, which sees globals alone, let one function of the call have the eval, or put ' +
        'the function with the eval into a module of its own',
    );
  }
  throw transferError(
    'TRANSFER_SHARED_VARIABLE',
    graph.path,
    `\`${user.slot.name}\` is changed by ${nameOf(writer.fn)} and used by ${nameOf(reader.fn)}, and ` +
      'it cannot be found out whether they share it: make it a property of an object that both use; where ' +
      'they are of a library, make them inside the function, or once per worker with perWorker(() => …)',
  );
}
