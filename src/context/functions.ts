// Writes functions and classes into a graph: code once as a definition, captured values as slots.
// One inspector capture per function and call at most; none for what is known to be constant.
// Also here, because only here all captures of a call are seen together: the hazard of two functions
// that share a variable which one of them changes, which copies would silently take apart.
// Not here: values (encode.ts), which snapshots can be kept (exporter.ts).

import type { AsyncLocalStorage } from 'node:async_hooks';
import * as types from 'node:util/types';
import { type Code, readCode } from './code.js';
import { changeable, type FunctionEncoder, type Graph } from './encode.js';
import type { Identities } from './identities.js';
import { type Capture, canInspect, inspectSelf } from './inspector.js';
import { builtinPath, isBuiltinGlobal, nodeModulePath } from './intrinsics.js';
import { perHostFactory } from './per-host.js';
import type { CodeDefinition, Definition } from './protocol.js';
import { special } from './protocol.js';
import { compileFailed, originOf } from './recreate.js';
import { cjsReference, exportAt, type ModuleReference, mainUrl } from './references.js';
import { refuse, transferError } from './refuse.js';
import { type Binding, isConstant } from './scope.js';
import { bindingAt, type Place, placeOf, scopeAround } from './scripts.js';
import { taskTarget } from './task.js';
import type { AnyFunction } from './types.js';

/** A function whose captures never change, as a definition of its own. */
export interface KeptClosure {
  readonly id: number;
  readonly captured: readonly AsyncLocalStorage<unknown>[];
}

/** Keeps definitions, hands out their ids. */
export interface Definitions {
  add(definition: Definition): number;
  /** The id of a definition that says the same. */
  intern(key: string, make: () => Definition): number;
}

/** One captured name. `binding` is what the module's source says of it. */
export interface Slot {
  readonly name: string;
  readonly value: unknown;
  readonly binding: Binding | undefined;
}

/** A function as it is now. */
export interface Described {
  readonly code: Code;
  readonly place: Place | undefined;
  readonly codeId: number;
  readonly slots: readonly Slot[];
  /** `[this, arguments]` of an arrow that uses those around it. */
  readonly self: readonly unknown[];
  /** Node's own JavaScript: travels by name or not at all. */
  readonly isOfNode: boolean;
}

const cjsNames = new Set(['require', 'module', 'exports', '__filename', '__dirname']);

export class Functions implements FunctionEncoder {
  readonly #definitions: Definitions;
  readonly #identities: Identities;
  readonly #keep: (fn: AnyFunction, described: Described) => KeptClosure | undefined;
  /** What was described during this export: an attempt that fails is not paid twice. */
  readonly #described = new Map<AnyFunction, Described>();
  readonly #codes = new Map<string, Map<string, number>>();

  constructor(
    definitions: Definitions,
    identities: Identities,
    keep: (fn: AnyFunction, described: Described) => KeptClosure | undefined,
  ) {
    this.#definitions = definitions;
    this.#identities = identities;
    this.#keep = keep;
  }

  /** Forgets what belongs to one export. */
  forget(): void {
    this.#described.clear();
  }

  identify(value: object | symbol): readonly [number, number] {
    return this.#identities.identify(value);
  }

  encodeFunction(fn: AnyFunction, graph: Graph): number {
    const known = graph.indexOf(fn);
    if (known !== undefined) return known;
    const builtin = builtinPath(fn);
    if (builtin !== undefined) return graph.addBuiltin(fn, builtin);
    const registered = this.#registered(fn, graph);
    if (registered >= 0) return registered;
    if (types.isProxy(fn)) refuse(fn, graph.path);
    const code = originOf(fn) === undefined ? readCode(textOf(fn)) : undefined;
    if (code === undefined && originOf(fn) === undefined) return this.#native(fn, graph);
    const described = this.describe(fn, graph.path);
    if (described.isOfNode) return this.#native(fn, graph);
    const reference = this.#referenceTo(fn, described);
    if (reference !== undefined) return this.addImport(fn, reference, '', graph);
    if (!graph.isConstant) {
      const kept = this.#keep(fn, described);
      if (kept !== undefined) {
        graph.definitions.add(kept.id);
        for (const storage of kept.captured) graph.captured.add(storage);
        return graph.add(fn, [special.closure, kept.id]);
      }
    }
    return this.#code(fn, described, graph);
  }

  /** Whether `fn` travels as code: not built in, not ours, not a Proxy. */
  isCode(fn: AnyFunction, path: readonly string[]): boolean {
    if (originOf(fn) !== undefined) return true;
    if (builtinPath(fn) !== undefined || types.isProxy(fn)) return false;
    if (taskTarget(fn) !== undefined || perHostFactory(fn) !== undefined) return false;
    return readCode(textOf(fn)) !== undefined && !this.describe(fn, path).isOfNode;
  }

  /** Whether code and slots are all there is to `fn`. */
  isSimple(fn: AnyFunction, { code, self }: Described): boolean {
    if (code.isClass || self.length > 0 || originOf(fn) !== undefined) return false;
    return Reflect.ownKeys(fn).every((key) => typeof key === 'string' && ordinaryKeys.has(key));
  }

  /** Functions made by this package, which travel as what they stand for. */
  #registered(fn: AnyFunction, graph: Graph): number {
    const target = taskTarget(fn);
    if (target !== undefined) return graph.add(fn, [special.task, target.url, target.exportName]);
    const factory = perHostFactory(fn);
    if (factory === undefined) return -1;
    const entry: unknown[] = [special.perHost, this.identify(fn)];
    const index = graph.add(fn, entry);
    entry.push(graph.at('the factory of perHost', () => graph.cell(factory)));
    return index;
  }

  #native(fn: AnyFunction, graph: Graph): number {
    const path = nodeModulePath(fn);
    if (path !== undefined) return graph.addBuiltin(fn, path);
    const required = cjsReference(fn);
    if (required !== undefined) return this.addImport(fn, required, '', graph);
    const bound = canInspect() ? inspectSelf().capture(fn).bound : undefined;
    if (bound !== undefined) {
      if (graph.isConstant) throw changeable;
      const values = [bound.target, bound.boundThis, ...bound.boundArguments];
      const cell = graph.at('the bound function', () => graph.cell(...values));
      return graph.add(fn, [special.bound, cell, this.identify(fn)]);
    }
    throw transferError(
      'TRANSFER_UNSUPPORTED',
      graph.path,
      `${nameOf(fn)} is native code of this process: import its module inside the function`,
    );
  }

  /** Reads what `fn` captured. Throws when something that it needs cannot be read. */
  describe(fn: AnyFunction, path: readonly string[]): Described {
    const known = this.#described.get(fn);
    if (known !== undefined) return known;
    const described = this.#recreated(fn) ?? this.#captured(fn, path);
    this.#described.set(fn, described);
    return described;
  }

  /** A function that came from a peer knows its slots without an inspector. */
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
      codeId: this.#intern(definition),
      slots: definition.slots.map((name, i) => ({ name, value: values[i], binding: undefined })),
      self,
      isOfNode: false,
    };
  }

  #captured(fn: AnyFunction, path: readonly string[]): Described {
    const text = textOf(fn);
    const code = readCode(text);
    if (code === undefined) throw new TypeError('native code has no captures');
    refuseUnreadable(code, path);
    const needsScopes =
      code.freeNames.length > 0 || code.isClass || code.usesOuterThis || code.usesOuterArguments;
    if (!needsScopes) {
      const known = this.#codes.get(text)?.values().next().value;
      if (known !== undefined) return bare(code, known);
    }
    if (!canInspect()) {
      if (code.freeNames.some((name) => !isBuiltinGlobal(name))) inspectorMissing(code, path);
      return bare(code, this.#define(fn, code, undefined, []));
    }
    const capture = inspectSelf().capture(fn);
    const place =
      capture.location === undefined ? undefined : placeOf(text, code.anchor, capture.location);
    if (place?.script.url.startsWith('node:')) return { ...bare(code, -1), place, isOfNode: true };
    const slots = this.#slotsOf(fn, code, capture, place, path);
    const codeId = this.#define(fn, code, place, slots);
    const self = selfOf(code, capture, place, path);
    return { code, place, codeId, slots, self, isOfNode: false };
  }

  #slotsOf(
    fn: AnyFunction,
    code: Code,
    { scopes }: Capture,
    place: Place | undefined,
    path: readonly string[],
  ): Slot[] {
    if (code.usesEval) refuseEval(scopes, path);
    const slots: Slot[] = [];
    for (const name of code.freeNames) {
      const binding = place && bindingAt(place, name);
      if (name === code.heritageName) {
        slots.push({ name, value: Object.getPrototypeOf(fn), binding });
        continue;
      }
      const scope = scopes.find((candidate) => Object.hasOwn(candidate, name));
      if (scope === undefined || scope === globalThis) {
        if (!isUserGlobal(name)) continue;
        slots.push({ name, value: Reflect.get(globalThis, name), binding: undefined });
      } else slots.push({ name, value: readScope(scope, name, path), binding });
    }
    if (code.rewrites.some(({ kind }) => kind === 'heritage')) {
      slots.push({
        name: heritageSlot(code),
        value: Object.getPrototypeOf(fn),
        binding: undefined,
      });
    }
    return slots;
  }

  #define(fn: AnyFunction, code: Code, place: Place | undefined, slots: readonly Slot[]): number {
    return this.#intern(definitionOf(fn, code, place, slots));
  }

  #intern(definition: CodeDefinition): number {
    const { text, url, line, column, slots, functionName = '' } = definition;
    const key = `${line}:${column}:${slots.join()}:${functionName}:${url}`;
    let byPlace = this.#codes.get(text);
    if (byPlace === undefined) {
      byPlace = new Map();
      this.#codes.set(text, byPlace);
    }
    const known = byPlace.get(key);
    if (known !== undefined) return known;
    const id = this.#definitions.add(definition);
    byPlace.set(key, id);
    return id;
  }

  #referenceTo(fn: AnyFunction, { code, place }: Described): ModuleReference | undefined {
    if (!code.isClass && !looksLikeClass(fn)) return undefined;
    if (place === undefined) return undefined;
    return place.script.isCommonJs ? cjsReference(fn) : exportAt(place);
  }

  addImport(value: unknown, from: ModuleReference, parent: string, graph: Graph): number {
    const known = graph.indexOf(value);
    if (known !== undefined && typeof value !== 'string') return known;
    const { specifier, isRequired, name } = from;
    const key = `${isRequired ? 'require' : 'import'} ${specifier} ${parent}`;
    const id = this.#definitions.intern(key, () => ({
      kind: 'module',
      specifier,
      parent,
      isRequired,
    }));
    graph.definitions.add(id);
    const isKey = (typeof value === 'object' && value !== null) || typeof value === 'function';
    return graph.add(isKey ? value : `${key} ${name}`, [special.imported, id, name]);
  }

  #code(fn: AnyFunction, described: Described, graph: Graph): number {
    const { code, codeId, slots, self } = described;
    graph.definitions.add(codeId);
    const origin = originOf(fn);
    const identity = origin?.identity ?? this.identify(fn);
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
    graph.at(describePlace(fn, described), () => {
      for (const [at, slot] of slots.entries()) this.#slot(fn, described, slot, at, values, graph);
      entry.push(self.length === 0 ? [] : graph.at('this', () => graph.cell(...self)));
      this.#additions(fn, code, index, graph);
    });
    return index;
  }

  #slot(
    fn: AnyFunction,
    { code, place }: Described,
    { name, value, binding }: Slot,
    at: number,
    values: unknown[],
    graph: Graph,
  ): void {
    const index = this.#special(name, value, binding, place, graph);
    if (index !== undefined) {
      graph.put(values, at, index);
      return;
    }
    if (graph.isConstant && !isSettled(code, name, value, binding)) throw changeable;
    if (place !== undefined) guardShared(fn, code, place, name, value, binding, graph);
    graph.at(`variable ${name}`, () => graph.set(values, at, value));
  }

  /** Imports and what CommonJS gives each module. */
  #special(
    name: string,
    value: unknown,
    binding: Binding | undefined,
    place: Place | undefined,
    graph: Graph,
  ): number | undefined {
    if (place === undefined) return undefined;
    const { url, isCommonJs } = place.script;
    if (binding?.kind === 'import') {
      const { source = '', imported = '' } = binding;
      if (resolveUrl(source, url) === mainUrl()) return undefined;
      return this.addImport(
        value,
        { specifier: source, name: imported, isRequired: false },
        url,
        graph,
      );
    }
    if (isCommonJs && binding === undefined && cjsNames.has(name)) {
      if (name === 'require') return graph.add(value, [special.require, url]);
      if (name === 'module') return graph.add(value, [special.cjsModule, url]);
    }
    if (typeof value === 'function' && isRequire(value))
      return graph.add(value, [special.require, url]);
    if (typeof value !== 'object' || value === null) return undefined;
    const reference = cjsReference(value);
    return reference && this.addImport(value, reference, '', graph);
  }

  /** Properties and prototypes that evaluating the text does not make. */
  #additions(fn: AnyFunction, code: Code, index: number, graph: Graph): void {
    const made = code.isClass ? code.staticNames : new Set<string>();
    for (const key of Reflect.ownKeys(fn)) {
      if (typeof key === 'string' && ordinaryKeys.has(key)) continue;
      if (typeof key === 'string' && made.has(key) && !isStaticData(fn, key)) continue;
      if (code.isClass && typeof key === 'symbol') continue; // computed members are in the text
      if (graph.isConstant && !code.isClass) throw changeable;
      graph.addProperty(index, fn, key);
    }
    const prototype: unknown = fn.prototype;
    if (typeof prototype !== 'object' || prototype === null) return;
    this.#prototypeAdditions(fn, prototype, code, index, graph);
  }

  #prototypeAdditions(fn: AnyFunction, prototype: object, code: Code, index: number, graph: Graph) {
    const additions = Reflect.ownKeys(prototype).filter(
      (key) =>
        key !== 'constructor' &&
        !(code.isClass && (typeof key === 'symbol' || code.memberNames.has(key))),
    );
    const above: object | null = Object.getPrototypeOf(prototype);
    const isUsual = code.isClass || above === Object.prototype || builtinPath(above) !== undefined;
    if (additions.length === 0 && isUsual) return;
    if (graph.isConstant) throw changeable;
    const own = graph.indexOf(prototype) ?? graph.add(prototype, [special.prototype, index]);
    for (const key of additions) graph.addProperty(own, prototype, key);
    if (!isUsual) graph.addPrototype(own, above);
    void fn;
  }
}

function bare(code: Code, codeId: number): Described {
  return { code, place: undefined, codeId, slots: [], self: [], isOfNode: false };
}

const ordinaryKeys = new Set(['length', 'name', 'prototype', 'arguments', 'caller']);

function textOf(fn: AnyFunction): string {
  return Function.prototype.toString.call(fn);
}

function nameOf(fn: AnyFunction): string {
  return fn.name === '' ? 'an anonymous function' : `the function ${fn.name}`;
}

/** Old-style constructors have methods on their prototype. */
function looksLikeClass(fn: AnyFunction): boolean {
  const prototype: unknown = fn.prototype;
  return (
    typeof prototype === 'object' && prototype !== null && Reflect.ownKeys(prototype).length > 1
  );
}

function isRequire(fn: AnyFunction): boolean {
  return 'resolve' in fn && 'cache' in fn && 'extensions' in fn;
}

function isUserGlobal(name: string): boolean {
  return name !== 'undefined' && name in globalThis && !isBuiltinGlobal(name);
}

function readScope(scope: object, name: string, path: readonly string[]): unknown {
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

function resolveUrl(specifier: string, parent: string): string {
  return /^\.{0,2}\//.test(specifier) && URL.canParse(specifier, parent)
    ? new URL(specifier, parent).href
    : specifier;
}

/** Whether a slot can never hold anything else. `undefined` may be a variable before its time. */
function isSettled(
  code: Code,
  name: string,
  value: unknown,
  binding: Binding | undefined,
): boolean {
  if (value === undefined || code.usesEval) return false;
  if (name === code.heritageName) return true;
  if (code.rewrites.some(({ kind }) => kind === 'heritage') && name === heritageSlot(code))
    return true;
  return binding !== undefined && isConstant(binding);
}

function describePlace(fn: AnyFunction, { code, place }: Described): string {
  const name =
    fn.name === '' ? 'anonymous function' : `${code.isClass ? 'class' : 'function'} ${fn.name}`;
  if (place === undefined) return name;
  const file = place.script.name.slice(place.script.name.lastIndexOf('/') + 1);
  return `${name} (${file}:${place.line + 1}:${place.column + 1})`;
}

function refuseUnreadable(code: Code, path: readonly string[]): void {
  const say = (why: string): Error => transferError('TRANSFER_UNREADABLE', path, why);
  if (code.outerPrivateName !== undefined) {
    throw say(
      `it uses #${code.outerPrivateName} of a class around it: pass what it needs as an argument, ` +
        'or call a public method',
    );
  }
  if (code.usesOuterSuper) throw say('it uses super of what is around it: call the method by name');
  if (code.usesOuterNewTarget)
    throw say('it uses new.target of the function around it: copy it into a const');
}

function inspectorMissing(code: Code, path: readonly string[]): never {
  const names = code.freeNames.filter((name) => !isBuiltinGlobal(name)).join(', ');
  try {
    inspectSelf();
  } catch (cause) {
    throw transferError(
      'TRANSFER_UNREADABLE',
      path,
      `it captures ${names}, and this process may not inspect itself: under --permission add ` +
        '--allow-inspector (Node 24 and later), pass the values as arguments, or use ' +
        'task(moduleUrl, exportName)',
      { cause },
    );
  }
  throw new TypeError('the inspector is there after all');
}

/** Direct eval sees every variable around it, whatever its text will be. */
function refuseEval(scopes: readonly object[], path: readonly string[]): void {
  const names = scopes
    .filter((scope) => scope !== globalThis)
    .flatMap((scope) => Object.keys(scope));
  if (names.length === 0) return;
  const some = `${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}`;
  throw transferError(
    'TRANSFER_UNREADABLE',
    path,
    `it calls eval(), which may use any variable around it (${some}): pass the values as arguments ` +
      'and call (0, eval)(text), or keep the function in a module and use task(moduleUrl, exportName)',
  );
}

/** A static that may have changed since its initialiser ran. */
function isStaticData(fn: AnyFunction, key: string): boolean {
  const descriptor = Object.getOwnPropertyDescriptor(fn, key);
  return (
    descriptor !== undefined && 'value' in descriptor && typeof descriptor.value !== 'function'
  );
}

/** What `this` and `arguments` mean in an arrow: those of the functions around it. */
function selfOf(
  code: Code,
  { scopes, location }: Capture,
  place: Place | undefined,
  path: readonly string[],
): unknown[] {
  if (!code.usesOuterThis && !code.usesOuterArguments) return [];
  const self: unknown[] = [undefined, undefined];
  if (code.usesOuterArguments) {
    const scope = scopes.find((candidate) => Object.hasOwn(candidate, 'arguments'));
    const list: unknown = scope && Reflect.get(scope, 'arguments');
    if (!types.isArgumentsObject(list)) {
      throw transferError('TRANSFER_UNREADABLE', path, 'it uses `arguments`: name the parameters');
    }
    self[1] = Array.from<unknown>(list);
  }
  if (!code.usesOuterThis) return self;
  const found = location && place ? thisAround(place, location.scriptId) : undefined;
  if (found === undefined) {
    throw transferError(
      'TRANSFER_UNREADABLE',
      path,
      'it uses `this` of what is around it, which cannot be read here: write `const self = this` ' +
        'before it and use self',
    );
  }
  self[0] = found.value;
  return self;
}

/** `this` where an arrow was written: read from the frame that made it, while that still runs. */
function thisAround(place: Place, scriptId: string): { readonly value: unknown } | undefined {
  const { lineStarts, isCommonJs } = place.script;
  const heads: (readonly [start: number, end: number])[] = [];
  let scope = scopeAround(place);
  for (; scope !== undefined; scope = scope.parent) {
    const { node } = scope;
    if ('params' in node && 'body' in node) {
      const { body } = node;
      if (!Array.isArray(body)) heads.push([node.start, body.start]);
    }
    if (scope.ownsThis) break;
  }
  if (scope === undefined) return undefined;
  if (scope.parent === undefined) return isCommonJs ? undefined : { value: undefined };
  return inspectSelf().thisOfFrame((at) => {
    const offset = (lineStarts[at.line] ?? Number.NaN) + at.column;
    return (
      at.scriptId === scriptId && heads.some(([start, end]) => offset >= start && offset <= end)
    );
  });
}

/** Two functions, one variable, and one of them assigns it: copies would drift apart. */
function guardShared(
  fn: AnyFunction,
  code: Code,
  place: Place,
  name: string,
  value: unknown,
  binding: Binding | undefined,
  graph: Graph,
): void {
  const key = `${place.script.url}:${binding?.start ?? name}`;
  const users = graph.variables.get(key) ?? [];
  graph.variables.set(key, users);
  const writes = code.writtenNames.has(name);
  for (const other of users) {
    if (other.fn === fn || !(writes || other.writes) || !Object.is(other.value, value)) continue;
    const [writer, reader] = writes ? [fn, other.fn] : [other.fn, fn];
    throw transferError(
      'TRANSFER_SHARED_VARIABLE',
      graph.path,
      `\`${name}\` is changed by ${nameOf(writer)} and used by ${nameOf(reader)}; copies of the two ` +
        'would no longer share it: put both in one object or class that holds it',
    );
  }
  users.push({ fn, value, writes });
}

function heritageSlot(code: Code): string {
  return freshName(code.identifiers, 'base');
}

/** A name that the text does not use. */
function freshName(used: ReadonlySet<string>, wanted: string): string {
  let name = wanted;
  for (let count = 0; used.has(name); count += 1)
    name = `${wanted.slice(0, Math.max(1, wanted.length - String(count).length))}${count}`;
  return name;
}

function definitionOf(
  fn: AnyFunction,
  code: Code,
  place: Place | undefined,
  slots: readonly Slot[],
): CodeDefinition {
  const { identifiers } = code;
  const metaName = freshName(identifiers, '__meta__url');
  const importName = freshName(identifiers, 'impor_');
  const replacements = {
    'import.meta': metaName,
    'import()': importName,
    heritage: heritageSlot(code),
    key: '0',
  };
  let compiled = code.text;
  for (const { start, end, kind } of [...code.rewrites].reverse()) {
    const wanted = replacements[kind].padEnd(end - start);
    compiled = compiled.slice(0, start) + wanted + compiled.slice(end);
  }
  return {
    kind: 'code',
    text: code.text,
    compiled,
    form: code.form,
    isClass: code.isClass,
    isStrict: isStrictIn(place),
    fileName: place?.script.name ?? '',
    url: place?.script.url ?? '',
    line: place?.line ?? 0,
    column: place?.column ?? 0,
    slots: slots.map(({ name }) => name),
    metaName: code.usesImportMeta ? metaName : '',
    importName: code.usesDynamicImport ? importName : '',
    functionName: code.rewrites.some(({ kind }) => kind === 'key') ? fn.name : undefined,
    prefix: freshName(identifiers, '_manycore'),
  };
}

/** Modules are strict; CommonJS where it says so. */
function isStrictIn(place: Place | undefined): boolean {
  if (place === undefined) return false;
  const { isCommonJs, source } = place.script;
  return (
    !isCommonJs || /^(?:#!.*\n|\s|\/\/.*\n|\/\*[^]*?\*\/)*["']use strict["']/.test(source ?? '')
  );
}
