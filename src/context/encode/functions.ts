// Writes functions and classes into a graph: code once as a definition, captured values as slots. Values with
// a name on the other side (built-ins, imports, functions of this package) travel as that name.
// Long (over 400 lines), because it is one list: the form in which each kind of function travels.
// Not here: reading captures (describe.ts), values (encode.ts), which snapshots are kept (exporter.ts).

import type { AsyncLocalStorage } from 'node:async_hooks';
import * as types from 'node:util/types';
import { watch } from '../closures/changes.js';
import { ClassStates } from '../closures/classes.js';
import {
  type Definitions,
  type Described,
  Describer,
  type Slot,
  textOf,
} from '../closures/describe.js';
import { nameOf } from '../closures/hazards.js';
import { canInspect, inspectSelf } from '../closures/inspector.js';
import { Sharing } from '../closures/sharing.js';
import { importerUrl, originOf } from '../decode/recreate.js';
import { isCopying } from '../modules/copies.js';
import { Imports } from '../modules/imports.js';
import type { Around } from '../modules/owners.js';
import { cjsReference } from '../modules/references.js';
import { baseOfRequire, isRequireOfNode } from '../modules/requires.js';
import type { Roads } from '../modules/roads.js';
import type { Place } from '../modules/scripts.js';
import type { ExporterState } from '../own-exporter.js';
import { special } from '../protocol.js';
import { type Code, readCode } from '../text/code.js';
import { type Binding, isConstant } from '../text/scope.js';
import { shownGlobal } from '../text/shown-keys.js';
import type { TextMember } from '../text/text-members.js';
import { isForeignRequire } from '../toolchains/jest.js';
import { shownFunction, shownVariable } from '../toolchains/shown.js';
import {
  isExpect,
  isLoweredPrivate,
  refuseLowered,
  refuseMock,
  refuseRunner,
  withoutState,
} from '../toolchains/toolchains.js';
import type { AnyFunction, BufferCarrier } from '../types.js';
import type { Identities } from '../values/identities.js';
import { internalErrors, onceState } from '../values/internal-errors.js';
import { builtinPath, nodeModulePath } from '../values/intrinsics.js';
import { perWorkerFactory } from '../values/per-worker.js';
import { constructorHere } from '../values/realms.js';
import { type Path, refuse, transferError } from '../values/refuse.js';
import { taskTarget } from '../values/task.js';
import {
  addBoundProperties,
  addClassState,
  addProperties,
  isBare,
  readClassState,
} from './additions.js';
import { changeable, type FunctionEncoder, type Graph, notNow } from './encode.js';

/** A function whose captures never change, as a definition of its own. */
export interface KeptClosure {
  readonly id: number;
  readonly captured: readonly AsyncLocalStorage<unknown>[];
  readonly roads: Roads;
}

/** Returns the closure that `fn` is kept as. `buffers`: the carrier of the graph that needs it. */
type Keep = (
  fn: AnyFunction,
  described: Described,
  buffers: BufferCarrier | undefined,
) => KeptClosure | undefined;

export class Functions implements FunctionEncoder {
  readonly #identities: Identities;
  readonly #keep: Keep;
  readonly #sharing = new Sharing();
  readonly #describer: Describer;
  readonly #imports: Imports;
  readonly #states = new ClassStates();
  /** Functions that were found to change, or to share values that change. */
  readonly neverKept = new WeakSet<AnyFunction>();
  /** Functions of this export that are not kept, though another one may keep them. */
  readonly leftOut = new Set<AnyFunction>();
  /** The functions that the texts of classes make. */
  readonly #members = new WeakMap<AnyFunction, readonly TextMember[]>();
  /** Classes of such functions, where this export met one before its class. */
  readonly #owners = new Map<AnyFunction, AnyFunction>();
  /** Functions of constant graphs: tests whether they have changed since the first. */
  readonly #watched = new WeakMap<AnyFunction, () => boolean>();

  constructor(definitions: Definitions, { identities, sentinels }: ExporterState, keep: Keep) {
    this.#describer = new Describer(definitions, this.#sharing);
    this.#imports = new Imports(definitions, this.#describer, sentinels);
    this.#identities = identities;
    this.#keep = keep;
  }

  /** Clears the state of one export. */
  forget(): void {
    this.retry();
    this.#owners.clear();
    this.leftOut.clear();
    this.#sharing.forget();
  }

  /** Number of variables that functions were found to share; it only grows. */
  get sharedVariables(): number {
    return this.#sharing.count;
  }

  /** Ends the writing of `graph`, when all its functions are found. */
  settle(graph: Graph): void {
    this.#sharing.settle(graph);
    for (const [fn, owner] of graph.strays) {
      if (this.#owners.has(fn)) continue;
      this.#owners.set(fn, owner);
      graph.isStale = true;
    }
  }

  /** Called before the same export begins once more. */
  retry(): void {
    this.#describer.forget();
    this.#imports.forget();
  }

  /** The present captures of `fn`. Throws when a needed value cannot be read. */
  describe(fn: AnyFunction, path: Path, holders: readonly object[] = []): Described {
    return this.#describer.describe(fn, path, holders);
  }

  identify(value: object | symbol): readonly [number, number] {
    return this.#identities.identify(value);
  }

  identifyCode(fn: AnyFunction): readonly [number, number] {
    return this.#identities.identifyCode(fn);
  }

  encodeFunction(given: AnyFunction, graph: Graph): number {
    if (types.isProxy(given)) return this.#proxy(given, graph);
    const fn = withoutState(given);
    const known = graph.indexOf(fn);
    if (known !== undefined) return known;
    const builtin = builtinPath(constructorHere(fn));
    if (builtin !== undefined) return graph.addBuiltin(fn, builtin);
    const registered = this.#registered(fn, graph);
    if (registered >= 0) return registered;
    const made = this.#member(fn, graph);
    if (made !== undefined) return made;
    if (isExpect(fn)) refuseRunner('expect() of Jest', graph.path);
    refuseMock(fn, graph.path);
    const code = originOf(fn) === undefined ? readCode(textOf(fn)) : undefined;
    if (code === undefined && originOf(fn) === undefined) return this.#native(fn, graph);
    const reference = code && this.#imports.exportOf(fn, code);
    if (reference !== undefined) return this.#imports.add(fn, reference, graph);
    const member = this.#imports.memberOf(fn);
    if (member !== undefined) return this.#imports.add(fn, member, graph, member.parent);
    const described = this.describe(fn, graph.path, graph.holders);
    if (described.isOfNode) return this.#native(fn, graph);
    if (!graph.isConstant && !isCopying()) {
      const kept = this.#keep(fn, described, graph.carrier);
      if (kept !== undefined) {
        graph.definitions.add(kept.id);
        graph.roads.addAll(kept.roads);
        for (const storage of kept.captured) graph.captured.add(storage);
        const index = graph.add(fn, [special.closure, kept.id]);
        this.#noteMembers(fn, index, graph);
        return index;
      }
    }
    return this.#code(fn, described, graph);
  }

  /** Called before one of its traps. */
  #proxy(fn: AnyFunction, graph: Graph): number {
    return graph.indexOf(fn) ?? this.#imports.proxy(fn, graph) ?? refuse(fn, graph.path);
  }

  /** True: `fn` travels as code: not built in, not ours, not a Proxy. */
  isCode(fn: AnyFunction, path: Path): boolean {
    if (originOf(fn) !== undefined) return true;
    if (types.isProxy(fn) || builtinPath(fn) !== undefined) return false;
    if (taskTarget(fn) !== undefined || perWorkerFactory(fn) !== undefined) return false;
    return readCode(textOf(fn)) !== undefined && !this.describe(fn, path).isOfNode;
  }

  /** True: `fn` consists of code and slots alone. */
  isSimple(fn: AnyFunction, described: Described): boolean {
    const { code, self } = described;
    if (code.isClass || self.length > 0 || originOf(fn) !== undefined) return false;
    return isBare(fn, described);
  }

  /** Functions made by this package, which travel as the value that they stand for. */
  #registered(fn: AnyFunction, graph: Graph): number {
    const target = taskTarget(fn);
    if (target !== undefined) return graph.add(fn, [special.task, target.url, target.exportName]);
    const url = importerUrl(fn);
    if (url !== undefined) return graph.add(fn, [special.importer, url]);
    if (isRequireOfNode(fn)) {
      return graph.add(fn, [special.require, baseOfRequire(fn, import.meta.url)]);
    }
    const factory = perWorkerFactory(fn);
    if (factory === undefined) return -1;
    const entry: unknown[] = [special.perWorker, this.identify(fn)];
    const index = graph.add(fn, entry);
    entry.push(graph.at('the factory of perWorker', () => graph.cell(factory)));
    return index;
  }

  #native(fn: AnyFunction, graph: Graph): number {
    const path = nodeModulePath(fn);
    if (path !== undefined) return graph.addBuiltin(fn, path);
    const required = cjsReference(fn);
    if (required !== undefined) return this.#imports.add(fn, required, graph);
    const bound = canInspect() ? inspectSelf().capture(fn).bound : undefined;
    if (bound !== undefined) {
      if (graph.isConstant) throw changeable;
      const { target, boundThis, boundArguments } = bound;
      const entry: unknown[] = [special.bound];
      const index = graph.add(fn, entry);
      graph.at('the bound function', () => {
        const cell = graph.cell(target, boundThis, ...boundArguments);
        entry.push(cell, this.#identities.identifyCode(fn));
        if (typeof target === 'function') {
          addBoundProperties(fn, target, boundArguments.length, index, graph);
        }
      });
      return index;
    }
    const once = onceState(fn);
    if (once !== undefined) {
      if (graph.isConstant) throw changeable;
      const entry: unknown[] = [special.bound];
      const index = graph.add(fn, entry);
      const cell = graph.at('the listener', () => graph.cell(internalErrors.onceWrapper(), once));
      entry.push(cell, this.#identities.identifyCode(fn));
      graph.addProperty(index, fn, 'listener');
      return index;
    }
    const why =
      readCode(textOf(fn)) === undefined
        ? 'is native code of this process: import its module inside the function'
        : 'is code of Node.js that none of its modules exports: make its holder inside the function, ' +
          'or once per worker with perWorker(() => …); the same holds for results of util.promisify()';
    throw transferError('TRANSFER_UNSUPPORTED', graph.path, `${nameOf(fn)} ${why}`);
  }

  hiddenState(value: object): string | undefined {
    return this.#imports.hiddenState(value);
  }

  around(fn: AnyFunction): Around | undefined {
    return this.#describer.around(fn);
  }

  frozenImport(value: object, graph: Graph): readonly unknown[] | undefined {
    return this.#imports.frozen(value, graph);
  }

  encodeSymbol(value: symbol, graph: Graph): number | undefined {
    const index = this.#imports.symbol(value, graph);
    const entry = index === undefined ? undefined : graph.specials[index];
    // The module there may have put another symbol into its object: then the one of the call is used.
    if (isMember(entry)) entry?.push(this.identify(value), value.description);
    return index;
  }

  encodeModule(value: object, graph: Graph): number | undefined {
    return this.#imports.module(value, graph);
  }

  #code(fn: AnyFunction, described: Described, graph: Graph): number {
    const { code, place, codeId, slots, self } = described;
    if (!code.isClass) graph.mustBeWhole(fn);
    graph.definitions.add(codeId);
    const origin = originOf(fn);
    const identity = this.#identities.identifyCode(fn, origin?.identity);
    const values: unknown[] = slots.map(() => 0);
    const entry: unknown[] = [
      code.isClass ? special.class : special.function,
      codeId,
      identity,
      values,
      graph.isConstant ? 1 : 0,
    ];
    const index = graph.add(fn, entry);
    if (code.isClass) this.#identities.keep(fn);
    const state = code.isClass ? readClassState(fn, described, this.#states) : undefined;
    if (state !== undefined) {
      this.#members.set(fn, state.members);
      this.#noteMembers(fn, index, graph);
    }
    const outer = this.#imports.user;
    this.#imports.user = described.place?.script;
    if (graph.isConstant) {
      if (described.hasAppeared !== undefined) graph.appearances.push(described.hasAppeared);
      this.#mustBeAsBefore(fn, code);
      graph.functions.push(fn);
      if (code.isClass || code.usesItself) graph.seen.add(fn);
    }
    graph.at(
      () => shownFunction(fn, described),
      () => {
        if (place !== undefined) graph.roads.addFunction(fn, place);
        const { scopes } = slots.find((slot) => slot.scopes !== undefined) ?? {};
        if (place !== undefined && scopes !== undefined && !graph.isConstant) {
          graph.roads.addScopes(place.script, scopes);
        }
        const required = slots.find(({ name }) => name === 'require');
        const requires = required !== undefined && !isForeignRequire(required.value);
        if ((requires || code.usesDynamicImport) && place !== undefined)
          graph.roads.addLoads(place, code.text, requires, graph.path);
        for (const [at, slot] of slots.entries())
          this.#slot(fn, described, slot, at, values, graph);
        entry.push(self.length === 0 ? [] : graph.at('this', () => graph.cell(...self)));
        const before = graph.additions;
        if (state !== undefined) addClassState(fn, described, state, index, entry, graph);
        else addProperties(fn, described, index, graph);
        const isOnlyText = graph.additions === before && holdsNothing(described);
        if (origin !== undefined && isOnlyText) entry[2] = [...identity, ...origin.identity];
      },
    );
    this.#imports.user = outer;
    return index;
  }

  /** A function that the text of a class makes, where that class is in the graph. */
  #member(fn: AnyFunction, graph: Graph): number | undefined {
    const owner = this.#owners.get(fn);
    if (owner !== undefined) graph.at('its class', () => this.encodeFunction(owner, graph));
    return graph.memberIndex(fn);
  }

  /** Notes for this export that the text of `owner` makes `fn`, so that both are written together. */
  setOwner(fn: AnyFunction, owner: AnyFunction): void {
    this.#owners.set(fn, owner);
  }

  #noteMembers(owner: AnyFunction, index: number, graph: Graph): void {
    for (const member of this.#members.get(owner) ?? []) graph.noteMember(member, owner, index);
  }

  /** True: a constant graph has a member of a class that may be in another graph of the same call. */
  hasMember(graph: Graph, root: AnyFunction): boolean {
    if (graph.strays.size > 0) return true;
    return graph.functions.some(
      (each) =>
        each !== root && graph.seen.has(each) && readCode(textOf(each))?.form !== 'expression',
    );
  }

  /** A peer keeps a constant function by its identity, so one that changed is no longer constant. */
  #mustBeAsBefore(fn: AnyFunction, code: Code): void {
    if (code.isClass) return;
    const hasChanged = this.#watched.get(fn);
    if (this.leftOut.has(fn)) throw notNow;
    if (this.neverKept.has(fn) || hasChanged?.() === true) throw changeable;
    if (hasChanged === undefined) this.#watched.set(fn, watch(fn));
  }

  /**
   * Returns a function that tests whether `fn`, of a constant graph that was just written, has changed since.
   */
  watch(fn: AnyFunction): () => boolean {
    return this.#watched.get(fn) ?? watch(fn);
  }

  #slot(
    fn: AnyFunction,
    { code, place }: Described,
    slot: Slot,
    at: number,
    values: unknown[],
    graph: Graph,
  ): void {
    const { name, binding, isFixed, cell } = slot;
    const [value, index] = this.#imports.slot(slot, code, place, graph);
    if (index !== undefined) {
      graph.put(values, at, index);
      return;
    }
    if (isLoweredPrivate(value, code.text)) {
      const path = [...graph.path, shownVariable(name, place?.script)];
      refuseLowered(fn.name, code.text, place?.script.source ?? '', path);
    }
    if (graph.isConstant && !isFixed && !isSettled(code, value, binding, place)) throw changeable;
    const canShare = !code.usesEval;
    if (slot.global !== undefined) {
      const writes = code.usesEval || slot.global.writes;
      this.#sharing.checkGlobal({ fn, slot, writes, canShare }, slot.global.name, graph);
    } else if ((place !== undefined || slot.inScripts !== undefined) && !isFixed) {
      const writes = code.usesEval || code.writtenNames.has(name); // eval may assign any of them
      this.#sharing.check({ fn, place, slot, writes, canShare }, graph);
    }
    const why = code.usesEval && !code.freeNames.includes(name) ? ', which its eval() may use' : '';
    const title = (): string =>
      slot.global === undefined
        ? shownVariable(name, place?.script) + why
        : shownGlobal(slot.global.name);
    const body = (): void => {
      const isCalled = typeof value === 'function' && code.calledNames.has(name) && !code.usesEval;
      if (cell === undefined && isCalled) graph.setCalled(values, at, value);
      else if (cell === undefined) graph.set(values, at, value);
      else values[at] = graph.sharedCell(cell, value);
    };
    if (slot.global === undefined) {
      graph.at(title, body);
      if (binding !== undefined && place !== undefined && !graph.isByName(value)) {
        graph.roads.addCopy(place.script, binding, value);
      }
    } else graph.attempt(slot.global.name, () => graph.at(title, body));
  }
}

/** True: a function or class re-created here consists of code and the class that it extends. */
function holdsNothing({ code, slots, self, privates }: Described): boolean {
  const isAbove = (name: string) => name === code.heritageName || name === code.heritageSlot;
  return self.length === 0 && privates.length === 0 && slots.every(({ name }) => isAbove(name));
}

/** True: the special for an import that is a property of an export, and no more. */
function isMember(entry: readonly unknown[] | undefined): boolean {
  return entry?.length === 4 && typeof entry[3] === 'string' && entry[3].startsWith('.');
}

/** True: a slot can never hold anything else. `undefined` may be a variable before its initialisation. */
function isSettled(
  code: Code,
  value: unknown,
  binding: Binding | undefined,
  place: Place | undefined,
): boolean {
  if (value === undefined || code.usesEval || binding === undefined) return false;
  const { isModule = true, isCommonJs = false } = place?.script ?? {};
  // Variables at the top of a plain script (-e, REPL, vm) are those of all such scripts.
  const isOfScript = !isModule && !isCommonJs && binding.scope.parent === undefined;
  return isConstant(binding) && (!isOfScript || binding.kind === 'const');
}
