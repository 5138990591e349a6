// Pieces of code whose functions are written without the inspector. Code that was exported twice in a form that
// is easy to repeat is learnt: its captured variables are read natively from then on, and put where those of
// the last export were. A new function object for each call, as a request handler makes it, then costs about what
// a hoisted one with such variables does. The first values are compared with those of the inspector. All that may
// change between two calls is tested at each of them; what does not fit goes the long way.
// Not here: reading variables (closures/closure-reader.ts), `this` (known-self.ts), the long way (exporter.ts).

import { jsonOf, sourceText } from '../../lib/index.js';
import { closureReader, learnAndRead } from '../closures/closure-reader.js';
import type { Described, Slot } from '../closures/describe.js';
import { type Copies, Roads } from '../modules/roads.js';
import { type Definition, special } from '../protocol.js';
import { type Binding, isConstant } from '../text/scope.js';
import type { AnyFunction } from '../types.js';
import { isSurelyPlain } from '../values/plain.js';
import { isUserGlobal } from '../values/user-globals.js';
import { isBare } from './additions.js';
import { objectsIn } from './alias.js';
import type { Graph } from './encode.js';
import { isObject, type KnownSelf, selfIn, usesOnlyThis } from './known-self.js';

/** Exports after which a piece of code is learnt. */
const exportsBeforeLearning = 2;
/** Pieces of code that are remembered. */
const maxKnown = 10_000;

/** A slot that holds the same special in each export. */
interface Fixed {
  readonly at: number;
  readonly entry: readonly unknown[];
  /** The captured function that the special stands for; `undefined`: an import, which its name decides. */
  readonly value: WeakRef<AnyFunction> | undefined;
}

/** A form of an export that later ones repeat. */
interface Form {
  readonly definitions: readonly number[];
  readonly fixed: readonly Fixed[];
  /** Slots with plain values, with their declarations, where `fixed` has others. */
  readonly bindings: ReadonlyMap<number, Binding>;
  /** Slots among them that held objects: `roads` is without these. */
  readonly objects: ReadonlySet<number>;
  /** Modules that the fixed slots lead to. */
  readonly roads: Roads | undefined;
  /** For an arrow that uses `this`. */
  readonly self: KnownSelf | undefined;
}

export interface KnownClosure extends Form {
  /** By which the reader has the code. */
  readonly number: number;
  readonly codeId: number;
  /** The definition with its fixed slots; without any, that of the code. */
  readonly formId: number;
  /** True: a variable may change, so no function of this code is ever kept. */
  readonly isChangeable: boolean;
  /** True: its code assigns no variable around it, and has no other state. */
  readonly isSteady: boolean;
  /** The code without the values of the function that it was learnt from. */
  readonly described: Described;
  /** The text of its functions: a debugger may edit it. */
  readonly text: string;
  /** Slots that are read, in their order: all but imports. */
  readonly variables: readonly number[];
  /** Names of globals that it uses. */
  readonly globals: readonly string[];
  /** Number of shared variables at that time: another one may be among those of this code. */
  readonly sharedVariables: number;
}

/** The id of an equal definition, made where there is none. */
type Intern = (key: string, make: () => Definition) => number;

export class KnownClosures {
  readonly #byNumber = new Map<number, KnownClosure>();
  /** Number of exports by code, up to the one that is learnt. */
  readonly #exports = new Map<number, number>();
  readonly #relearnt = new Set<number>();
  /** True: another exporter has learnt the code that was read last. */
  #isLearntElsewhere = false;
  readonly #intern: Intern;

  constructor(intern: Intern) {
    this.#intern = intern;
  }

  /**
   * Reads the captured variables of `fn` into `values`, in the order of `variables`. `undefined`: its code is
   * not known, or something has changed.
   */
  read(fn: AnyFunction, values: unknown[], sharedVariables: number): KnownClosure | undefined {
    if (this.#byNumber.size === 0 || typeof fn !== 'function') return undefined;
    const number = closureReader()?.read(fn, values) ?? 0;
    const known = this.#byNumber.get(Math.abs(number));
    this.#isLearntElsewhere = number > 0 && known === undefined;
    if (known === undefined) return undefined;
    if (number < 0 || known.sharedVariables !== sharedVariables || sourceText(fn) !== known.text) {
      this.forget(known);
      return undefined;
    }
    const { described, globals } = known;
    if (!ordinary.has(Object.getPrototypeOf(fn)) || !isBare(fn, described)) return undefined;
    return globals.every(isOfNode) ? known : undefined;
  }

  /** Lets the next export of the code be learnt in the place of this one, if it can be. */
  relearn({ codeId }: KnownClosure): void {
    this.#relearnt.add(codeId);
  }

  /** Lets the code be learnt anew, after a change that stays. */
  forget({ codeId, number }: KnownClosure): void {
    this.#byNumber.delete(number);
    this.#exports.delete(codeId);
  }

  /** Notes an export of `fn` with plain values alone; the second one of its code is learnt. */
  notePlain(fn: AnyFunction, described: Described, sharedVariables: number): void {
    this.#note(fn, described, sharedVariables, () => ({
      definitions: [described.codeId],
      fixed: [],
      bindings: new Map(),
      objects: new Set(),
      roads: undefined,
      self: undefined,
    }));
  }

  /** The same for an export of `fn` with imports or functions among its values, or with `this`. */
  noteGraph(
    fn: AnyFunction,
    described: Described,
    sharedVariables: number,
    graph: Graph,
    definitions: readonly number[],
  ): void {
    this.#note(fn, described, sharedVariables, () => formOf(fn, described, graph, definitions));
  }

  #note(
    fn: AnyFunction,
    described: Described,
    sharedVariables: number,
    formOfExport: () => Form | undefined,
  ): void {
    const { codeId, slots } = described;
    const exports = (this.#exports.get(codeId) ?? 0) + 1;
    const isNew = exports <= exportsBeforeLearning;
    const mayLearn = this.#relearnt.delete(codeId) || isNew || this.#isLearntElsewhere;
    this.#isLearntElsewhere = false;
    if (!mayLearn) return;
    this.#exports.set(codeId, exports);
    if (exports < exportsBeforeLearning || !isLearnable(fn, described)) return;
    const form = formOfExport();
    if (form === undefined) return;
    const imports = new Set(
      form.fixed.filter(({ value }) => value === undefined).map(({ at }) => at),
    );
    const variables = [...slots.keys()].filter((at) => !imports.has(at));
    const read = slots.filter((_, at) => !imports.has(at));
    const isThis = form.self !== undefined;
    const number = learn(fn, isThis ? [...read, { name: 'this', value: described.self[0] }] : read);
    if (number === 0) return;
    const isCode = isThis || form.fixed.length === 0;
    const formId = isCode ? codeId : this.#formId(codeId, form);
    this.#byNumber.set(number, {
      ...form,
      definitions: Object.freeze([...new Set([...form.definitions, formId])]),
      number,
      codeId,
      formId,
      isChangeable: slots.some(({ binding }) => binding === undefined || !isConstant(binding)),
      isSteady: isSteady(described),
      described: { ...described, slots: [], self: [] },
      text: sourceText(fn),
      variables,
      globals: globalsOf(described),
      sharedVariables,
    });
    if (this.#byNumber.size <= maxKnown) return;
    const [oldest] = this.#byNumber.values();
    if (oldest !== undefined) this.forget(oldest);
  }

  #formId(target: number, form: Form): number {
    const fixed = form.fixed.map(({ at, entry }) => [at, ...entry]);
    return this.#intern(`form ${target} ${jsonOf(fixed)}`, () => ({ kind: 'form', target, fixed }));
  }
}

const ordinary = new Set<unknown>(
  [() => {}, async () => {}, function* () {}, async function* () {}].map((each) =>
    Object.getPrototypeOf(each),
  ),
);

function isOfNode(name: string): boolean {
  return name in globalThis && !isUserGlobal(name, globalThis);
}

/** Names of the global object: a text that uses them may reach any global. */
const reachesAll = new Set(['globalThis', 'global', 'window', 'self', 'Function']);

function globalsOf({ code, slots }: Described): string[] {
  const captured = new Set(slots.map(({ name }) => name));
  return code.freeNames.filter((name) => !captured.has(name));
}

/** True: the present values of its variables are all that describes a function of this code. */
function isLearnable(fn: AnyFunction, described: Described): boolean {
  const { code, place, slots, self, hasAppeared } = described;
  // A function that captured nothing has no place: its text is all of it.
  const isAlone = slots.length === 0 && self.length === 0;
  const isFound = isAlone || (place !== undefined && place.start >= 0);
  if (!isFound || hasAppeared !== undefined) return false;
  if (code.usesEval || code.isClass || code.usesItself) return false;
  if (self.length > 0 && !usesOnlyThis(described)) return false;
  if (!ordinary.has(Object.getPrototypeOf(fn)) || !slots.every(isVariable)) return false;
  return globalsOf(described).every((name) => !reachesAll.has(name) && isOfNode(name));
}

/** True: nothing of a function of learnt code changes with its calls, apart from objects that it captured. */
function isSteady({ code, slots }: Described): boolean {
  const isWritten = slots.some(({ name }) => code.writtenNames.has(name));
  return !isWritten && !/\bcaller\b/.test(code.text); // which leads to the function itself
}

function isVariable({ binding, isFixed, cell, global, inScripts, scopes }: Slot): boolean {
  const isNamed = binding !== undefined && scopes !== undefined && inScripts === undefined;
  return isNamed && !isFixed && cell === undefined && global === undefined;
}

/** Specials that have nothing but texts and numbers. */
const steady = new Set<unknown>([special.closure, special.imported, special.builtin]);

/**
 * The form of an export whose slots are plain values, functions with a name or definition of their own, and
 * imports; `undefined`: another one.
 */
function formOf(
  fn: AnyFunction,
  described: Described,
  graph: Graph,
  definitions: readonly number[],
): Form | undefined {
  if (graph.indexOf(fn) !== 0 || !graph.hasNoFixUps) return undefined;
  const { slots } = described;
  const parts = described.self.length === 0 ? undefined : selfIn(described, graph);
  const isMore = graph.prototypes.length + graph.fills.length > 0;
  if (parts === undefined && (described.self.length > 0 || isMore)) return undefined;
  const values = graph.specials[0]?.[3];
  const fixed: Fixed[] = [];
  const met = new Set<unknown>(parts?.specials);
  for (let put = 0; put < graph.puts.length; put += 3) {
    const [container, at, index] = graph.puts.slice(put, put + 3);
    if (container === graph.root || container === parts?.prototypeCell) continue;
    met.add(index);
    const entry = graph.specials[Number(index)];
    const slot = slots[Number(at)];
    if (container !== values || entry === undefined || slot === undefined) return undefined;
    if (!steady.has(entry[0]) || entry.some((part) => typeof part === 'object')) return undefined;
    const isImport = slot.binding?.kind === 'import';
    // An import of the program itself is a copy, which may change with its module.
    if (isImport && entry[0] === special.closure) return undefined;
    if (!isImport && typeof slot.value !== 'function') return undefined;
    const value =
      typeof slot.value === 'function' && !isImport ? new WeakRef(slot.value) : undefined;
    fixed.push({ at: Number(at), entry: Object.freeze([...entry]), value });
  }
  if (parts !== undefined && met.size !== graph.specials.length) return undefined;
  const places = new Set(fixed.map(({ at }) => at));
  if (!slots.every(({ value }, at) => places.has(at) || isSurelyPlain(value))) return undefined;
  const bindings = new Map<number, Binding>();
  const objects = new Set<number>();
  for (const [at, { value, binding }] of slots.entries()) {
    if (binding === undefined || places.has(at)) continue;
    bindings.set(at, binding);
    if (isObject(value)) objects.add(at);
  }
  const roads = graph.roads.without(fn, slots.map(({ value }) => value).filter(isObject));
  return { definitions, fixed, bindings, objects, roads, self: parts?.self };
}

/** The number of the code of `fn`; 0: the reader cannot read it, or reads something else. */
function learn(fn: AnyFunction, slots: readonly Pick<Slot, 'name' | 'value'>[]): number {
  const reader = closureReader();
  if (reader === undefined) return 0;
  const names = slots.map(({ name }) => name);
  const { number, values } = learnAndRead(reader, fn, names);
  if (number === 0) return 0;
  if (slots.every(({ value }, at) => Object.is(value, values?.[at]))) return number;
  reader.forget(fn);
  return 0;
}

/** The `this` of the function around an arrow, which is read behind the variables. */
export function thisOf({ variables }: KnownClosure, read: readonly unknown[]): unknown {
  return read[variables.length];
}

/** The values of the slots, in their order; those of imports are not read. */
export function slotsOf({ variables }: KnownClosure, read: readonly unknown[]): unknown[] {
  const values: unknown[] = [];
  for (const [order, at] of variables.entries()) values[at] = read[order];
  return values;
}

/**
 * The modules that a call with these values, and this `instance` as `this`, leads to; `undefined`: a value is not plain,
 * or the call has a copy of what one of the modules holds.
 */
export function roadsWith(
  { bindings, objects, described, roads }: KnownClosure,
  values: readonly unknown[],
  around: Copies['around'],
  instance?: object,
): Roads | undefined {
  const { place } = described;
  if (roads === undefined || place === undefined) return undefined;
  let isPrimitive = objects.size === 0 && instance === undefined;
  for (const at of bindings.keys()) {
    const value = values[at];
    if (isObject(value)) isPrimitive = false;
    if (!isSurelyPlain(value)) return undefined;
  }
  if (isPrimitive) return roads;
  const more = new Roads();
  more.addAll(roads);
  for (const [at, binding] of bindings) more.addCopy(place.script, binding, values[at]);
  const held = [...bindings.keys()].map((at) => values[at]);
  const copies = { objects: objectsLater([...held, instance]), around };
  return more.meeting(copies).size === 0 ? more : undefined;
}

/** All objects among `values`, which are walked only when one is asked for. */
function* objectsLater(values: readonly unknown[]): Iterable<object> {
  yield* objectsIn(values);
}

/** Clears the values of imports and functions, which its form has; false: one of the functions has changed. */
export function clearFixed(
  { fixed }: KnownClosure,
  values: unknown[],
  isCurrent: (fn: AnyFunction, entry: readonly unknown[]) => boolean,
): boolean {
  for (const { at, entry, value } of fixed) {
    if (value !== undefined) {
      const fn = value.deref();
      if (fn === undefined || values[at] !== fn || !isCurrent(fn, entry)) return false;
    }
    values[at] = 0;
  }
  return true;
}
