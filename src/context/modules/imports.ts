// Writes values that a worker imports again into a graph: imports as the source names them, modules, and
// exports of modules that a function got by any way.
// Not here: finding their names (references.ts).

import { isBuiltin, Module } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as types from 'node:util/types';
import type { Definitions, Describer, Slot } from '../closures/describe.js';
import { HiddenState } from '../closures/hidden-state.js';
import { exportsAround, innerClass } from '../closures/inner-names.js';
import { canInspect } from '../closures/inspector.js';
import { liveSourceOf } from '../decode/live-cells.js';
import { openedDefault } from '../decode/modules.js';
import type { Graph } from '../encode/encode.js';
import { namespaceType, special } from '../protocol.js';
import type { Code } from '../text/code.js';
import type { Binding } from '../text/scope.js';
import { foreignRequire, isOpenedDefault, ofForeignModule } from '../toolchains/jest.js';
import { shownVariable } from '../toolchains/shown.js';
import { isViteImport, ofVitest, viteImport } from '../toolchains/vite.js';
import { ofWebpack } from '../toolchains/webpack.js';
import type { AnyFunction } from '../types.js';
import { nodeNamespace } from '../values/intrinsics.js';
import { type Path, transferError } from '../values/refuse.js';
import { exportsIn, type ImportSource, type Named, type Sentinels } from '../values/sentinels.js';
import { copying, isCopying } from './copies.js';
import { urlOfMeta } from './meta.js';
import { isProgram } from './program.js';
import { exportedVariable } from './reach.js';
import {
  cjsExport,
  cjsModule,
  cjsReference,
  exportAt,
  hasCode,
  type ModuleReference,
  namespaceReference,
} from './references.js';
import { baseOfRequire, isRequire } from './requires.js';
import { urlOfModule } from './resolve-module.js';
import { type ImportUser, membersOf } from './roads.js';
import type { Place, Script } from './scripts.js';

export class Imports {
  readonly #definitions: Definitions;
  readonly #describer: Describer;
  /** Results for functions stay valid: the exports of a module are made with it. */
  readonly #found = new WeakMap<AnyFunction, ModuleReference | 'none'>();
  readonly #hidden: HiddenState;
  readonly #sentinels: Sentinels;
  /** A namespace of which the function uses nothing that changes. */
  #standing: unknown;
  /** The script of the function whose parts are being written. */
  user: Script | undefined;

  constructor(definitions: Definitions, describer: Describer, sentinels: Sentinels) {
    this.#sentinels = sentinels;
    this.#definitions = definitions;
    this.#describer = describer;
    this.#hidden = new HiddenState(describer, {
      exportOf: (fn, code) => this.exportOf(fn, code),
      isSentinel: (symbol) => this.#sentinel(symbol) !== undefined,
    });
  }

  /** Clears the state of one export. */
  forget(): void {
    this.#hidden.forget();
    this.user = undefined;
  }

  /** The export that `fn` is: such a function is imported again, with its module's state. */
  exportOf(fn: AnyFunction, code: Code): ModuleReference | undefined {
    const isClass = code.isClass || isOldStyleClass(fn);
    // Without free names and properties of its own a copy is as good, and cheaper.
    const isAlone = code.freeNames.length === 0 && !code.seesItself;
    if (!isClass && isAlone && !this.#sentinels.isImport(fn)) return undefined;
    const known = isCopying() ? undefined : this.#found.get(fn);
    if (known !== undefined) return known === 'none' ? undefined : known;
    const found = cjsExport(fn, isClass) ?? this.#exportByPlace(fn, isClass);
    if (!isCopying()) this.#found.set(fn, found ?? 'none');
    return found;
  }

  /** The export that is written where `fn` is. The first time its whole module is parsed. */
  #exportByPlace(fn: AnyFunction, isClass: boolean): ModuleReference | undefined {
    const place = canInspect() ? this.#describer.placeOf(fn) : undefined;
    if (place === undefined) return undefined;
    const found = exportAt(place, isClass);
    if (found !== undefined || !isClass) return found;
    return innerClass(fn, place, (each) => this.#describer.placeOf(each));
  }

  /** The export in which `fn` is, of a module that may be imported. */
  memberOf(fn: AnyFunction): (ModuleReference & { readonly parent: string }) | undefined {
    const found = this.#sentinels.member(fn);
    return found === undefined || isProgram(urlOf(found, found.parent)) ? undefined : found;
  }

  /** The special for a symbol of a module; `undefined`: it is none, or has no name. */
  symbol(value: symbol, graph: Graph): number | undefined {
    const inner = this.#hidden.symbols.get(value);
    if (inner !== undefined && !isProgram(urlOf(inner))) return this.add(value, inner, graph);
    const found = this.#sentinel(value);
    return found && this.add(value, found.reference, graph, found.parent, found.importType);
  }

  /** The part of an instance that is kept in the modules of its classes, as text for a refusal. */
  hiddenState(value: object): string | undefined {
    return this.#hidden.of(value);
  }

  /** Notes an import that a function has, for values which it may compare with. */
  #note(value: unknown, source: ImportSource & { readonly name: string }): void {
    const isNamespace = source.name === '*' && types.isModuleNamespaceObject(value);
    const isOwn = typeof value === 'function' && /^\.{0,2}\//.test(source.specifier);
    const read = (): readonly [ImportSource, readonly (readonly [string, unknown])[]] => {
      if (typeof value !== 'function') return [source, exportsIn(value)];
      const place = canInspect() ? this.#describer.placeOf(value) : undefined;
      const { url = '', isCommonJs = true } = place?.script ?? {};
      const isFound = place !== undefined && !isCommonJs && !isProgram(url);
      const from = { specifier: url, parent: '', isRequired: false, importType: '' };
      return [from, isFound ? exportsAround(value, place) : []];
    };
    const mayRead = (isNamespace || isOwn) && !isBuiltin(source.specifier);
    this.#sentinels.note(value, source.name, source, mayRead ? read : undefined);
  }

  /** The import that is compared with `value`. */
  #sentinel(value: symbol | object): Named | undefined {
    const found = this.#sentinels.find(value);
    if (found === undefined || !isCopying()) return found;
    return isProgram(urlOf(found.reference, found.parent)) ? undefined : found;
  }

  /** The import that a frozen object is, with its content; `undefined`: it is a copy. */
  frozen(value: object, graph: Graph): readonly unknown[] | undefined {
    const found = this.#sentinel(value);
    if (found === undefined) return undefined;
    const { reference, parent, importType, contents } = found;
    graph.roads.addImport(value, exportOf(reference), parent, undefined);
    const id = this.#moduleOf(reference, parent, importType, graph);
    return [special.frozen, id, reference.name, reference.variable ?? '', contents];
  }

  /**
   * Refuses a copy of a namespace with variables that functions change: the copy would not show the change.
   */
  #mustStand(value: unknown, source: string, user: ImportUser, graph: Graph): void {
    const { url } = user.place.script;
    const names = membersOf('*', user).flatMap((name) => name ?? Object.keys(Object(value)));
    const changing = names.find((name) => exportedVariable(source, name, url) !== undefined);
    if (changing !== undefined) refuseLive(changing, graph.path);
    this.#standing = value;
  }

  /** The special for an object that is a module; `undefined`: it is none that can be imported. */
  module(value: object, graph: Graph): number | undefined {
    if (types.isModuleNamespaceObject(value)) {
      const name = nodeNamespace(value);
      if (name !== undefined) {
        return this.add(value, { specifier: name, name: '*', isRequired: false }, graph);
      }
      const find = () => namespaceReference(value, this.user, (fn) => this.#describer.placeOf(fn));
      const reference = find();
      if (reference === undefined && isCopying() && value !== this.#standing) {
        const { specifier = '' } = copying(new Set(), find) ?? {};
        const changing = Object.keys(value).find((name) => exportedVariable(specifier, name, ''));
        if (changing !== undefined) refuseLive(changing, graph.path);
      }
      return reference && this.add(value, reference, graph);
    }
    const url = types.isProxy(value) ? undefined : urlOfMeta(value, (fn) => this.#isOfNode(fn));
    if (url !== undefined) return graph.add(value, [special.meta, url]);
    const reference = cjsModule(value);
    return reference && (types.isProxy(value) || hasCode(value))
      ? this.add(value, reference, graph)
      : undefined;
  }

  #isOfNode(fn: AnyFunction): boolean {
    return canInspect() && this.#describer.placeOf(fn)?.script.url.startsWith('node:') === true;
  }

  /** The special for a Proxy that a module has in place of its exports, or as one. */
  proxy(value: object, graph: Graph): number | undefined {
    const reference = cjsReference(value);
    return reference && this.add(value, reference, graph);
  }

  /** `parent`: the URL of the importing module, '' for an absolute specifier. */
  add(
    value: unknown,
    from: ModuleReference,
    graph: Graph,
    parent = '',
    importType = '',
    user?: ImportUser,
  ): number {
    graph.roads.addImport(value, exportOf(from), parent, user);
    if (user !== undefined && typeof value === 'object' && value !== null) {
      graph.roads.addPart(value, from, parent);
    }
    const known = graph.indexOf(value);
    if (known !== undefined && typeof value !== 'string') return known;
    const { name, variable = '' } = from;
    const id = this.#moduleOf(from, parent, importType, graph);
    const isKey = value !== null && /^(?:object|function|symbol)$/.test(typeof value);
    return graph.add(isKey ? value : `${id} ${name}`, [special.imported, id, name, variable]);
  }

  /** The special for a cell that reads the module at each use. */
  #live(
    from: ModuleReference,
    parent: string,
    importType: string,
    user: ImportUser | undefined,
    graph: Graph,
  ): number {
    graph.roads.addImport(undefined, from, parent, user);
    const id = this.#moduleOf(from, parent, importType, graph);
    const key = `live ${id} ${from.name}`;
    return graph.indexOf(key) ?? graph.add(key, [special.importedCell, id, from.name]);
  }

  /** The id of the definition of a module. */
  #moduleOf(
    { specifier, isRequired, name }: ModuleReference,
    parent: string,
    attribute: string,
    graph: Graph,
  ): number {
    const isNamespace = name === '*' && !isRequired && isBuiltin(specifier);
    const importType = isNamespace ? namespaceType : attribute;
    const key = `${isRequired ? 'require' : 'import'} ${specifier} ${parent} ${importType}`;
    const id = this.#definitions.intern(key, () => ({
      kind: 'module',
      specifier,
      parent,
      isRequired,
      importType,
    }));
    graph.definitions.add(id);
    return id;
  }

  /**
   * The name of a captured value, and the special for it: imports, and the variables that CommonJS gives each
   * module. Without a special the value travels as any other.
   */
  slot(
    { name, value, binding, cell, global }: Slot,
    { text }: Code,
    place: Place | undefined,
    graph: Graph,
  ): readonly [value: unknown, special: number | undefined] {
    const live = liveSourceOf(value);
    if (live !== undefined) {
      return [value, this.#live(live, live.parent, live.importType, undefined, graph)];
    }
    if (place === undefined) return [value, undefined];
    if (!isViteImport(name)) {
      const module = foreignRequire(value, text, place.script.url);
      if (module !== undefined) return [module, undefined];
      const user = { place, length: text.length, name };
      const special = this.#slot(user, value, binding, cell !== undefined, graph);
      if (special !== undefined) return [value, special];
      const shown = ofVitest(global?.name ?? name, value, text);
      return [ofForeignModule(name, ofWebpack(name, shown, text), text), undefined];
    }
    const found = viteImport(name, value, text, place.script, [
      ...graph.path,
      shownVariable(name, place.script),
    ]);
    if (!('specifier' in found)) return [found.value, undefined];
    const reference = { specifier: found.specifier, name: '*', isRequired: false };
    return [value, this.add(value, reference, graph, place.script.url)];
  }

  #slot(
    user: ImportUser,
    value: unknown,
    binding: Binding | undefined,
    isCell: boolean,
    graph: Graph,
  ): number | undefined {
    const { name, place } = user;
    const { url, isCommonJs } = place.script;
    if (binding?.kind === 'import') {
      const { source = '', imported = '', importType } = binding;
      if (isProgram(urlOfModule(source, url) ?? source)) {
        if (isCell && isCopying()) refuseLive(name, graph.path);
        if (imported === '*' && isCopying()) this.#mustStand(value, source, user, graph);
        return undefined;
      }
      const isWhole = imported === '*' && !isBuiltin(source);
      const isOpened = isWhole && isOpenedDefault(value);
      const exported = isOpened ? openedDefault : imported;
      const reference = { specifier: source, name: exported, isRequired: false };
      if (isCell) return this.#live(reference, url, importType, user, graph);
      this.#note(value, { ...reference, parent: url, importType });
      return this.add(value, reference, graph, url, importType, user);
    }
    if (isCommonJs && binding === undefined && cjsNames.has(name)) {
      if (name === 'require') return graph.add(value, [special.require, url]);
    }
    const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
    if (!isObject) return undefined;
    if (types.isProxy(value)) return this.proxy(value, graph);
    if (typeof value === 'function' && isRequire(value)) {
      return graph.add(value, [special.require, baseOfRequire(value, baseOf(url))]);
    }
    if (value instanceof Module) {
      const index = graph.indexOf(value) ?? graph.add(value, [special.cjsModule, baseOf(url)]);
      graph.at('module', () => graph.addProperty(index, value, 'exports'));
      return index;
    }
    if (typeof value !== 'object') return undefined;
    const reference = cjsModule(value);
    if (reference === undefined) return undefined;
    this.#note(value, { ...reference, parent: '', importType: '' });
    return this.add(value, reference, graph, '', '', user);
  }
}

const cjsNames = new Set(['require', 'module', 'exports', '__filename', '__dirname']);

/** Old-style constructors have methods on their prototype. */
function isOldStyleClass(fn: AnyFunction): boolean {
  const prototype: unknown = fn.prototype;
  return (
    typeof prototype === 'object' && prototype !== null && Reflect.ownKeys(prototype).length > 1
  );
}

/** The base from which `require` resolves: code of -e and of the REPL is in the working directory. */
function baseOf(url: string): string {
  return url.startsWith('file:') ? url : pathToFileURL(join(process.cwd(), '[eval]')).href;
}

/** The export itself, where the reference names a property of it. */
function exportOf(reference: ModuleReference): ModuleReference {
  const isMember = reference.variable?.startsWith('.') === true;
  return isMember ? { ...reference, variable: undefined } : reference;
}

/** The module of the user that a reference names; else the specifier. */
function urlOf({ specifier }: ModuleReference, parent = ''): string {
  return urlOfModule(specifier, parent) ?? specifier;
}

function refuseLive(name: string, path: Path): never {
  throw transferError(
    'TRANSFER_SHARED_VARIABLE',
    path,
    `it imports \`${name}\`, which functions of that module change, and the module is copied with them: let the ` +
      'module export a function that returns it',
  );
}
