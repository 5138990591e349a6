// The sending half. Decides which parts of a function can be kept between calls:
// - a function whose captures can never change is a closure definition: sent once, then an id;
// - else its code is a definition, and the captured values are the state of each call.
// Constant closures are counted by code. Otherwise callbacks made anew at every call (and so never met again)
// would pile up in the workers. Long (over 400 lines): all causes to repeat or keep an export are to be read
// in one place.
// Not here: how things are written (functions.ts, encode.ts).

import type { AsyncLocalStorage } from 'node:async_hooks';
import { CodedError } from '../../errors.js';
import { inheritedElement, ownOf } from '../../lib/index.js';
import { beginCapture, endCapture } from '../closures/captures.js';
import { watch, watchTexts } from '../closures/changes.js';
import { type Described, slotValues } from '../closures/describe.js';
import { titleOf } from '../closures/hazards.js';
import { mayHaveDebugger } from '../closures/inspector.js';
import { type Largest, largestOf } from '../closures/largest.js';
import { checkOwnData } from '../decode/data-only.js';
import { copying } from '../modules/copies.js';
import { meet, type Roads } from '../modules/roads.js';
import { type ExporterOptions, ExporterState, type OwnExporter } from '../own-exporter.js';
import { type Definition, special } from '../protocol.js';
import { atCaller } from '../toolchains/stack.js';
import type { AnyFunction, BufferCarrier, FunctionSnapshot, ValueSnapshot } from '../types.js';
import { isPlain, isSurelyPlain } from '../values/plain.js';
import {
  type ActiveStores,
  activeStores,
  arrivedStores,
  hasRegistered,
} from '../values/propagate.js';
import { type Path, refusalFor, transferError } from '../values/refuse.js';
import { type Format, format, type Written, write } from '../wire.js';
import { type Captured, sharesAny } from './alias.js';
import { dataOnly } from './data-only.js';
import { changeable, type FunctionEncoder, Graph, notNow } from './encode.js';
import { Functions } from './functions.js';
import {
  clearFixed,
  type KnownClosure,
  KnownClosures,
  roadsWith,
  slotsOf,
  thisOf,
} from './known-closures.js';
import { isAsLearnt, isObject, type KnownSelf, usesOnlyThis, withSelf } from './known-self.js';

/** Closures kept for one piece of code when a function object is first met, and when it is met again. */
const maxKeptAtOnce = 8;
const maxKept = 256;
/** Functions of one code that cannot be kept, after which most others are not tried. */
const maxFailures = 4;
/** Calls of known code with another kind of `this`, after which it is learnt anew. */
const maxMisses = 16;
/** Share of the functions of known code that are noted, to be met again: an entry costs more than the rest. */
const notedShare = 1 / 16;
/** Share of the functions that are tried all the same. */
const triedShare = 1 / 16;
/** The generator of Node: one that the program puts in its place has a sequence of its own. */
const { random } = Math;
/** Pinned functions come and go, so they count downwards from here, apart from permanent ids. */
const firstPinnedId = -2;
const lastPinnedId = -(2 ** 31);

/** The carrier for the values of one snapshot. */
type Buffers = BufferCarrier | undefined;

interface Kept {
  readonly id: number;
  readonly snapshot: FunctionSnapshot;
  readonly captured: readonly AsyncLocalStorage<unknown>[];
  readonly roads: Roads;
  /** Tests whether the functions and classes that its code can see have changed. */
  readonly changes: readonly (() => boolean)[];
  /** The same for the function itself, which other code sees where it is a value. */
  readonly hasChanged: () => boolean;
  /** Tests whether a debugger has edited one of its functions. */
  readonly isEdited: () => boolean;
  /** Functions that the texts of its classes make, each with its class. */
  readonly members: ReadonlyMap<AnyFunction, AnyFunction>;
}

export class ContextExporter implements OwnExporter {
  readonly state: ExporterState;
  readonly #buffers: Buffers;
  /** Path to the value that was written last. */
  #path: Path = [];
  readonly #definitions: Definition[] = [];
  readonly #bytes: (Uint8Array | undefined)[] = [];
  readonly #interned = new Map<string, number>();
  readonly #functions: Functions;
  /** The same for values, unless they must be data. */
  readonly #encoder: FunctionEncoder;
  readonly #kept = new WeakMap<AnyFunction, Kept>();
  /** Functions of definitions that are kept. */
  readonly #inKept = new WeakSet<AnyFunction>();
  /** The export in which each function was first met: one export may meet it several times. */
  readonly #firstSeen = new WeakMap<AnyFunction, number>();
  #exports = 0;
  readonly #keptByCode = new Map<number, number>();
  /** Functions of each code, since the last one that was kept, that could not be. */
  readonly #failuresByCode = new Map<number, number>();
  readonly #known = new KnownClosures((key, make) => this.#intern(key, make));
  /** The captures of the last function that was exported with state. */
  #captured: Captured | undefined;
  /** The roads of the last function that was exported. */
  #roads: Roads | undefined;
  /** Members of classes in the last function that was exported without state. */
  #members: ReadonlyMap<AnyFunction, AnyFunction> | undefined;
  /** The last values, which may have such members, too. */
  #values: Graph | undefined;
  #isLetGoSoon = false;
  /** True: the receiver takes data alone. */
  readonly #isDataOnly: boolean;
  readonly #pinned = new Map<number, Uint8Array>();
  #nextPinnedId = firstPinnedId;
  /** Definitions that each definition needs before it. */
  readonly #needs = new Map<number, readonly number[]>();

  constructor(
    options: ExporterOptions,
    state: ExporterState = new ExporterState(ownOf(options).ownsCode ?? false),
  ) {
    const { buffers, isDataOnly = false } = ownOf(options);
    this.state = state;
    this.#buffers = buffers;
    this.#functions = new Functions(
      {
        add: (definition) => this.#add(definition),
        intern: (key, make) => this.#intern(key, make),
      },
      this.state,
      (fn, described, carrier) => this.#keep(fn, described, carrier),
    );
    this.#isDataOnly = isDataOnly;
    this.#encoder = isDataOnly ? dataOnly : this.#functions;
  }

  exportFunction(fn: AnyFunction, buffers = this.#buffers): FunctionSnapshot {
    const element = inheritedElement();
    if (element !== undefined) {
      throw atCaller(transferError('TRANSFER_UNREADABLE', [titleOf(fn)], element));
    }
    const kept = this.#current(fn);
    this.#noteKept(kept);
    this.#values = undefined;
    if (hasRegistered()) return this.#exportSlowly(fn, kept, buffers);
    if (kept !== undefined && kept.captured.length === 0) return kept.snapshot;
    const known = kept === undefined ? this.#exportKnown(fn, buffers) : undefined;
    return known ?? this.#exportSlowly(fn, kept, buffers);
  }

  exportJoint(
    fn: AnyFunction,
    args: readonly unknown[],
    haveCode: boolean,
    buffers = this.#buffers,
  ): FunctionSnapshot | undefined {
    const captured = this.#captured;
    this.#captured = undefined;
    const shares = captured !== undefined && (haveCode || sharesAny(args, captured));
    const given = haveCode ? this.#givenMembers() : [];
    if (!shares && given.length === 0 && !meet(this.#roads, this.#values?.roads)) return undefined;
    const what = titleOf(fn);
    return this.#guard(what, () => {
      const { inner, stores } = arrivedStores(fn) ?? { inner: fn };
      for (const [member, owner] of given) this.#functions.setOwner(member, owner);
      return this.#exportState(inner, stores, what, buffers, args);
    });
  }

  #noteKept(kept: Kept | undefined): void {
    this.#roads = kept?.roads;
    this.#members = kept?.members;
    if (kept !== undefined) this.#letGoSoon();
  }

  /** Holds a call until this turn is over. A `WeakRef` would hold all calls of the turn. */
  #letGoSoon(): void {
    if (this.#isLetGoSoon) return;
    this.#isLetGoSoon = true;
    void Promise.resolve().then(this.#letGo);
  }

  readonly #letGo = (): void => {
    this.#isLetGoSoon = false;
    this.#captured = undefined;
    this.#roads = undefined;
    this.#members = undefined;
    this.#values = undefined;
  };

  /** Functions among the last values that the texts of classes of the last function make. */
  #givenMembers(): (readonly [member: AnyFunction, owner: AnyFunction])[] {
    const values = this.#members?.size ? this.#values : undefined;
    if (values === undefined) return [];
    return [...(this.#members ?? [])].filter(([member]) => values.holds(member));
  }

  exportValue(value: unknown, what: string, buffers = this.#buffers): ValueSnapshot {
    const plain = this.#plain(value, buffers);
    if (plain !== undefined) {
      if (this.#isDataOnly) checkOwnData(plain.bytes, undefined);
      return { ...plain, definitions: [] };
    }
    return this.#guard(what, () => {
      const graph = this.#graph(what, buffers, (made) => made.set(made.root, 0, value));
      this.#values = graph;
      this.#letGoSoon();
      const written = this.#write(graph);
      if (this.#isDataOnly) checkOwnData(written.bytes, graph);
      return {
        ...written,
        definitions: this.#ordered(graph),
        parcel: graph.parcel,
      };
    });
  }

  #plain(value: unknown, buffers: Buffers): Written | undefined {
    try {
      const isFit = buffers?.isMoving !== true && isPlain(value);
      return isFit ? write(format.plain, value, buffers) : undefined;
    } catch {
      return undefined; // the graph reports the failure with its path
    }
  }

  hiddenState(value: object): string | undefined {
    try {
      return this.#functions.hiddenState(value);
    } catch {
      return undefined; // a part of an error that is sent anyway
    } finally {
      this.#functions.forget();
    }
  }

  largestCapture(fn: AnyFunction, buffers = this.#buffers): Largest {
    return largestOf(
      fn,
      () => this.#guard('', () => this.#functions.describe(fn, [])),
      (value) => this.exportValue([value], '', buffers).bytes.length,
    );
  }

  pin(snapshot: FunctionSnapshot): FunctionSnapshot {
    const { id: target, definitions, state, buffers, parcel } = snapshot;
    if (state === undefined) return snapshot;
    const definition: Definition = { kind: 'pinned', target, state };
    const { bytes } = write(format.definition, definition, undefined);
    let id = this.#nextPinnedId;
    while (this.#pinned.has(id)) id = pinnedAfter(id);
    this.#nextPinnedId = pinnedAfter(id);
    this.#pinned.set(id, bytes);
    return { id, definitions: [...definitions, id], state: undefined, buffers, parcel };
  }

  unpin(id: number): void {
    this.#pinned.delete(id);
  }

  definition(id: number): Uint8Array {
    const pinned = this.#pinned.get(id);
    if (pinned !== undefined) return pinned;
    const definition = this.#definitions[id];
    if (definition === undefined) throw new RangeError(`there is no definition ${id}`);
    const bytes = this.#bytes[id] ?? write(format.definition, definition, undefined).bytes;
    this.#bytes[id] = bytes;
    return bytes;
  }

  /** The kept snapshot of `fn`, while it is still true. `isValue`: `fn` is used beyond being called. */
  #current(fn: AnyFunction, isValue = false): Kept | undefined {
    const kept = this.#kept.get(fn);
    if (kept === undefined) return undefined;
    if ((isValue && kept.hasChanged()) || (mayHaveDebugger() && kept.isEdited())) {
      this.#kept.delete(fn);
      return undefined;
    }
    for (const hasChanged of kept.changes) {
      if (hasChanged()) {
        this.#kept.delete(fn);
        return undefined;
      }
    }
    return kept;
  }

  #add(definition: Definition): number {
    return this.#definitions.push(definition) - 1;
  }

  #intern(key: string, make: () => Definition): number {
    const known = this.#interned.get(key);
    if (known !== undefined) return known;
    const id = this.#add(make());
    this.#interned.set(key, id);
    return id;
  }

  /** Runs one export; any error leaves as a CodedError. */
  #guard<T>(what: string, body: () => T): T {
    this.#exports += 1;
    this.#path = [what];
    try {
      return body();
    } catch (error) {
      throw atCaller(error instanceof CodedError ? error : refusalFor(error, this.#path));
    } finally {
      this.#functions.forget();
    }
  }

  /** A function of known code, without what may be special; `undefined`: it goes the long way. */
  #exportKnown(fn: AnyFunction, carrier: Buffers): FunctionSnapshot | undefined {
    if (carrier?.isMoving === true) return undefined; // each object must be shown to it
    const values: unknown[] = [];
    const known = this.#known.read(fn, values, this.#functions.sharedVariables);
    if (known === undefined || !this.#staysUnkept(fn, known, values)) return undefined;
    const startMs = beginCapture();
    try {
      if (known.self !== undefined) return this.#writeSelf(fn, known, known.self, values, carrier);
      if (known.fixed.length > 0) return this.#writeFixed(known, values, carrier);
      const plain = this.#writeSlots(known.codeId, known.definitions, values, carrier);
      return plain && { ...plain, isSteady: known.isSteady && !values.some(isObject) };
    } catch {
      return undefined; // the long way reports the failure
    } finally {
      this.#functions.forget();
      endCapture(startMs);
    }
  }

  /** Known code with imports, or functions that it calls. */
  #writeFixed(
    known: KnownClosure,
    read: readonly unknown[],
    carrier: Buffers,
  ): FunctionSnapshot | undefined {
    const values = slotsOf(known, read);
    const roads = roadsWith(known, values, (fn) => this.#functions.around(fn));
    if (roads === undefined) return undefined;
    if (!clearFixed(known, values, this.#isSame)) {
      this.#known.forget(known);
      return undefined;
    }
    const written = tryWrite(format.slots, values, carrier);
    if (written === undefined) return undefined;
    this.#noteRead(read, roads);
    const { bytes, buffers } = written;
    const isSteady = known.isSteady && !read.some(isObject);
    return { id: known.formId, definitions: known.definitions, state: bytes, buffers, isSteady };
  }

  /** Known code that uses `this` of the function around it. */
  #writeSelf(
    fn: AnyFunction,
    known: KnownClosure,
    self: KnownSelf,
    read: readonly unknown[],
    carrier: Buffers,
  ): FunctionSnapshot | undefined {
    const instance = thisOf(known, read);
    if (!isAsLearnt(self, instance)) {
      self.misses += 1;
      if (self.misses % maxMisses === 0) this.#known.relearn(known);
      return undefined;
    }
    self.misses = 0;
    if (this.#functions.hiddenState(instance) !== undefined) return undefined;
    const values = slotsOf(known, read);
    const roads = roadsWith(known, values, (each) => this.#functions.around(each), instance);
    if (roads === undefined) return undefined;
    const isSameClass = this.#isSame(self.owner, self.ownerEntry);
    if (!isSameClass || !clearFixed(known, values, this.#isSame)) {
      this.#known.forget(known);
      return undefined;
    }
    const identity = this.#functions.identifyCode(fn);
    const written = withSelf(self, instance, values, identity, (payload) =>
      tryWrite(format.graph, payload, carrier),
    );
    if (written === undefined) return undefined;
    this.#noteRead(read, roads);
    const { bytes, buffers } = written;
    const { codeId: id, definitions } = known;
    return { id, definitions, state: bytes, buffers, isSteady: false };
  }

  /** True: the special of `fn` is this one still. */
  readonly #isSame = (fn: AnyFunction, [kind, id]: readonly unknown[]): boolean =>
    kind !== special.closure || this.#current(fn, true)?.id === id;

  #noteRead(read: readonly unknown[], roads: Roads): void {
    this.#captured = read.filter((value) => typeof value !== 'function');
    this.#roads = roads;
    this.#letGoSoon();
  }

  /** False: the long way may find that nothing in `fn` can change, and keep it. */
  #staysUnkept(
    fn: AnyFunction,
    { codeId, isChangeable }: KnownClosure,
    values: readonly unknown[],
  ): boolean {
    if (this.#inKept.has(fn)) return false;
    if (isChangeable || this.#functions.neverKept.has(fn)) return true;
    // An object may change where no variable does.
    if (values.some(isObject)) return true;
    const count = this.#keptByCode.get(codeId) ?? 0;
    if (count >= maxKept) return true;
    if (count < maxKeptAtOnce || this.#firstSeen.has(fn)) return false;
    if (random() < notedShare) this.#firstSeen.set(fn, this.#exports);
    return true;
  }

  #exportSlowly(fn: AnyFunction, known: Kept | undefined, buffers: Buffers): FunctionSnapshot {
    if (typeof fn !== 'function') {
      throw new CodedError('TASK_NOT_FUNCTION', `the task must be a function, not ${typeof fn}`);
    }
    const what = titleOf(fn);
    return this.#guard(what, () => {
      const { inner, stores } = arrivedStores(fn) ?? { inner: fn };
      const active = known && (stores ?? activeStores(known.captured));
      if (known !== undefined && active?.length === 0) return known.snapshot; // costs nothing
      const startMs = beginCapture();
      try {
        return this.#capture(inner, known, active ?? stores, what, buffers);
      } finally {
        endCapture(startMs);
      }
    });
  }

  #capture(
    fn: AnyFunction,
    known: Kept | undefined,
    stores: ActiveStores | undefined,
    what: string,
    buffers: Buffers,
  ): FunctionSnapshot {
    const kept = known ?? this.#keepRoot(fn, what, buffers);
    if (kept === undefined) return this.#exportState(fn, stores, what, buffers);
    this.#noteKept(kept);
    const active = stores ?? activeStores(kept.captured);
    return active.length === 0 ? kept.snapshot : this.#withStores(kept, active, what, buffers);
  }

  /** Tries to keep the root function, of any kind. */
  #keepRoot(fn: AnyFunction, what: string, buffers: Buffers): Kept | undefined {
    if (!this.#functions.isCode(fn, [what])) return this.#attempt(fn, what, buffers);
    return this.#keep(fn, this.#functions.describe(fn, [what]), buffers);
  }

  /** The closure definition of `fn`, when nothing that it captured can change. */
  #keep(fn: AnyFunction, described: Described, buffers: Buffers): Kept | undefined {
    const kept = this.#current(fn, true);
    if (kept !== undefined || this.#functions.neverKept.has(fn)) return kept;
    const { codeId } = described;
    const isLimited = !this.#inKept.has(fn); // else arguments and captures would have two copies of it
    const failures = this.#failuresByCode.get(codeId) ?? 0;
    if (isLimited && failures >= maxFailures && random() >= triedShare) return this.#leaveOut(fn);
    const count = this.#keptByCode.get(codeId) ?? 0;
    const firstSeen = this.#firstSeen.get(fn) ?? this.#exports;
    const isNew = firstSeen === this.#exports;
    if (isNew) this.#firstSeen.set(fn, firstSeen);
    if (isLimited && count >= (isNew ? maxKeptAtOnce : maxKept)) return this.#leaveOut(fn);
    const made = this.#attempt(fn, titleOf(fn), buffers);
    if (made !== undefined) this.#keptByCode.set(codeId, count + 1);
    if (made !== undefined) this.#failuresByCode.delete(codeId);
    else if (!this.#functions.leftOut.has(fn)) this.#failuresByCode.set(codeId, failures + 1);
    return made;
  }

  /** Keeps nothing that has a copy of `fn` in this export: that would be a second one. */
  #leaveOut(fn: AnyFunction): undefined {
    this.#functions.leftOut.add(fn);
  }

  #attempt(fn: AnyFunction, what: string, buffers: Buffers): Kept | undefined {
    const graph = new Graph(this.#functions, what, true, buffers);
    const outer = this.#path;
    this.#path = graph.path;
    try {
      graph.setCalled(graph.root, 0, fn);
    } catch (error) {
      this.#path = outer;
      if (error === notNow) return this.#leaveOut(fn);
      // A variable that one of two functions changes is not judged by this attempt.
      if (error !== changeable) throw error;
      this.#functions.neverKept.add(fn);
      return undefined;
    }
    this.#path = outer;
    if (graph.meeting().size > 0 || this.#functions.hasMember(graph, fn)) {
      this.#functions.neverKept.add(fn);
      return undefined;
    }
    // Memory is never part of a constant closure, so nothing has to be kept for it.
    const { bytes } = this.#write(graph);
    const needs = this.#ordered(graph);
    const id = this.#add({ kind: 'closure', bytes });
    this.#needs.set(id, needs);
    const watched = (each: AnyFunction) => this.#functions.watch(each);
    const kept: Kept = {
      id,
      snapshot: Object.freeze({
        id,
        definitions: Object.freeze([...needs, id]),
        state: undefined,
        buffers: Object.freeze([]),
      }),
      captured: [...graph.captured],
      roads: graph.roads,
      changes: [
        ...graph.functions.filter((each) => graph.seen.has(each)).map(watched),
        ...[...graph.watched.keys()].map(watch),
        ...graph.appearances,
      ],
      isEdited: watchTexts([fn, ...graph.functions]),
      members: graph.watched,
      hasChanged: graph.functions.includes(fn) ? watched(fn) : () => false,
    };
    this.#kept.set(fn, kept);
    for (const each of graph.functions) this.#inKept.add(each);
    return kept;
  }

  /** A kept function in the stores of this moment. */
  #withStores(kept: Kept, active: ActiveStores, what: string, buffers: Buffers): FunctionSnapshot {
    const graph = this.#graph(what, buffers, (made) => {
      made.definitions.add(kept.id);
      made.put(made.root, 0, made.add(kept, [special.closure, kept.id]));
      this.#addStores(made, active);
    });
    return this.#withState(kept.id, graph);
  }

  /** `args`: the arguments of a call that share something with the captures. */
  #exportState(
    fn: AnyFunction,
    stores: ActiveStores | undefined,
    what: string,
    buffers: Buffers,
    args?: readonly unknown[],
  ): FunctionSnapshot {
    const isCode = this.#functions.isCode(fn, [what]);
    if (isCode && stores === undefined && args === undefined) {
      const plain = this.#exportPlainState(fn, this.#functions.describe(fn, [what]), buffers);
      if (plain !== undefined) return plain;
    }
    const isAlone = isCode && stores === undefined && args === undefined;
    const graph = this.#graph(what, buffers, (made) => {
      if (args === undefined) made.set(made.root, 0, fn);
      else made.setCall(fn, args);
      this.#addStores(made, stores ?? activeStores([...made.captured]));
    });
    const id = isCode
      ? this.#functions.describe(fn, [what]).codeId
      : this.#intern('call', () => ({ kind: 'call' }));
    const snapshot = this.#withState(id, graph);
    if (isAlone) this.#noteGraph(fn, graph, snapshot, what);
    return snapshot;
  }

  #noteGraph(fn: AnyFunction, graph: Graph, { definitions }: FunctionSnapshot, what: string): void {
    const described = this.#functions.describe(fn, [what]);
    const isSimple = this.#functions.isSimple(fn, described) || usesOnlyThis(described);
    if (!isSimple || hasRegistered()) return;
    this.#known.noteGraph(fn, described, this.#functions.sharedVariables, graph, definitions);
  }

  /**
   * Writes again when the first graph shows that its functions share a variable, or that a module must be
   * copied.
   */
  #graph(what: string, buffers: Buffers, write: (graph: Graph) => void): Graph {
    const copied = new Set<string>();
    for (;;) {
      const graph = new Graph(this.#encoder, what, false, buffers);
      this.#path = graph.path;
      copying(copied, () => write(graph));
      this.#functions.settle(graph);
      const more = copying(copied, () => graph.meeting());
      if (!graph.isStale && more.size === 0) return graph;
      for (const url of more) copied.add(url);
      this.#functions.retry();
    }
  }

  #withState(id: number, graph: Graph): FunctionSnapshot {
    const { bytes, buffers } = this.#write(graph);
    this.#captured = graph;
    this.#roads = graph.roads;
    this.#letGoSoon();
    const { parcel } = graph;
    return { id, definitions: this.#endingWith(graph, id), state: bytes, buffers, parcel };
  }

  /** The common case: code, and values that V8 serializes directly. */
  #exportPlainState(
    fn: AnyFunction,
    described: Described,
    carrier: Buffers,
  ): FunctionSnapshot | undefined {
    const { codeId, slots } = described;
    if (!this.#functions.isSimple(fn, described) || hasRegistered()) return undefined;
    const values = slotValues(slots);
    if (values === undefined) return undefined;
    const snapshot = this.#writeSlots(codeId, [codeId], values, carrier);
    if (snapshot !== undefined) {
      this.#known.notePlain(fn, described, this.#functions.sharedVariables);
    }
    return snapshot;
  }

  /** `undefined`: V8 does not write these values directly. */
  #writeSlots(
    id: number,
    definitions: readonly number[],
    values: readonly unknown[],
    carrier: Buffers,
  ): FunctionSnapshot | undefined {
    const written = isSurelyPlain(values) ? tryWrite(format.slots, values, carrier) : undefined;
    if (written === undefined) return undefined;
    this.#captured = values;
    this.#letGoSoon();
    const { bytes, buffers } = written;
    return { id, definitions, state: bytes, buffers };
  }

  #addStores(graph: Graph, active: ActiveStores): void {
    for (const [storage, key, store] of active) {
      const keyCell = key === undefined ? graph.cell(storage) : [key];
      graph.stores.push(
        keyCell,
        graph.at('.getStore()', () => graph.cell(store)),
      );
    }
  }

  #write(graph: Graph): Written {
    return write(format.graph, graph.payload(), graph.carrier);
  }

  /** The definitions of `graph`, each after those that it needs. */
  #ordered(graph: Graph): number[] {
    const ordered = new Set<number>();
    for (const id of graph.definitions) {
      for (const needed of this.#needs.get(id) ?? []) ordered.add(needed);
      ordered.add(id);
    }
    return [...ordered];
  }

  #endingWith(graph: Graph, id: number): number[] {
    const needs = this.#needs.get(id) ?? [];
    const others = [...needs, ...this.#ordered(graph)].filter((other) => other !== id);
    return [...new Set(others), id];
  }
}

function pinnedAfter(id: number): number {
  return id === lastPinnedId ? firstPinnedId : id - 1;
}

/** `undefined`: V8 refuses the values; the graph reports the failure with its path. */
function tryWrite(as: Format, value: unknown, carrier: Buffers): Written | undefined {
  try {
    return write(as, value, carrier);
  } catch {
    return undefined;
  }
}
