// The receiving half: keeps the definitions of a peer (code, modules, closures) and makes functions and
// values from snapshots. Code is cached, closures are not: the same function sent again may hold other
// values. The exceptions are classes, and closures that the sender proved constant. Long (over 400 lines),
// because all kinds of definitions are kept, and used, together.
// Not here: the order of fix-ups (decode.ts), compiling (recreate.ts).

import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire, isBuiltin } from 'node:module';
import { CodedError } from '../../errors.js';
import { sendingHalf } from '../late.js';
import { moduleAt } from '../modules/main-module.js';
import { stateOf } from '../own-exporter.js';
import {
  type CodeDefinition,
  type FormDefinition,
  type Identity,
  type ModuleDefinition,
  numberAt,
  parseDefinition,
  parsePayload,
  special,
  stringAt,
} from '../protocol.js';
import type { AnyFunction, BufferCarrier, Exporter, Importer } from '../types.js';
import { rememberForeign, rememberOwned } from '../values/identities.js';
import { registeredStorage, runningIn } from '../values/propagate.js';
import { adopt } from '../values/realms.js';
import { exportsIn, memberOf } from '../values/sentinels.js';
import { asCorrupt, corrupt, format, read } from '../wire.js';
import { type Decoded, decode } from './decode.js';
import { isCallable } from './define.js';
import type { Plan } from './factory.js';
import { liveCell } from './live-cells.js';
import { type Exports, loadModule } from './modules.js';
import type { Made, Memory } from './peer-memory.js';
import { makePlain } from './plain-specials.js';
import { rememberPristine } from './pristine.js';
import {
  compile,
  compileFailed,
  type Instance,
  type Instantiate,
  originOf,
  rememberOrigin,
} from './recreate.js';

export interface ImporterOptions {
  readonly exporter: Exporter;
  readonly buffers?: BufferCarrier | undefined;
}

/** Makes the receiving half for one peer; `exporter` is this side's sending half. */
export function createImporter(options: ImporterOptions): Importer {
  return new ContextImporter(options.exporter, options.buffers);
}

interface Code {
  readonly definition: CodeDefinition;
  instantiate: Instantiate | undefined;
}

const maxRemembered = 4096;

class ContextImporter implements Importer, Memory {
  readonly #exporter: Exporter;
  readonly #buffers: BufferCarrier | undefined;
  readonly #codes = new Map<number, Code>();
  readonly #modules = new Map<number, Exports>();
  readonly #sources = new Map<number, ModuleDefinition>();
  /** Classes and symbols that modules do not export. */
  readonly #seen = new Map<string, unknown>();
  /** Modules that are still loading, by their specifier. */
  readonly #loading = new Map<number, string>();
  readonly #failures = new Map<number, CodedError>();
  readonly #closures = new Map<number, Uint8Array>();
  readonly #forms = new Map<number, FormDefinition>();
  readonly #functions = new Map<number, (...args: unknown[]) => unknown>();
  readonly #remembered = new Map<string, unknown>();
  /** The variables of classes and constant functions that were made here. */
  readonly #instances = new WeakMap<AnyFunction, Instance>();
  /** The version of a peer's class that its copy here has. */
  readonly #versions = new WeakMap<AnyFunction, number>();

  constructor(exporter: Exporter, buffers: BufferCarrier | undefined) {
    this.#exporter = exporter;
    this.#buffers = buffers;
  }

  define(id: number, bytes: Uint8Array): void | Promise<void> {
    const { format: as, value } = read(bytes, undefined);
    if (as !== format.definition) throw corrupt('a definition was expected');
    const definition = parseDefinition(value);
    switch (definition.kind) {
      case 'code':
        this.#codes.set(id, { definition, instantiate: undefined });
        return undefined;
      case 'closure':
        this.#closures.set(id, definition.bytes);
        return undefined;
      case 'call':
        return undefined;
      case 'form':
        this.#forms.set(id, definition);
        return undefined;
      case 'pinned':
        this.#pin(id, definition.target, definition.state);
        return undefined;
      case 'module':
        return this.#load(id, definition);
    }
  }

  /** Keeps a failure: every later use of the module rejects with the same error. */
  #load(id: number, definition: ModuleDefinition): void | Promise<void> {
    this.#sources.set(id, definition);
    const fail = (error: unknown): never => {
      this.#loading.delete(id);
      if (error instanceof CodedError) this.#failures.set(id, error);
      throw error;
    };
    try {
      const loaded = loadModule(definition);
      if (!(loaded instanceof Promise)) {
        this.#modules.set(id, loaded);
        return undefined;
      }
      this.#loading.set(id, definition.specifier);
      return loaded.then((exports) => {
        this.#loading.delete(id);
        this.#modules.set(id, exports);
      }, fail);
    } catch (error) {
      return fail(error);
    }
  }

  /** Made at once, so that memory lent with it is taken; the caller gets a failure. */
  #pin(id: number, target: number, state: Uint8Array): void {
    try {
      this.#functions.set(id, this.importFunction(target, state));
    } catch (error) {
      this.#failures.set(id, asCorrupt(error));
    }
  }

  forget(id: number): void {
    this.#functions.delete(id);
    this.#failures.delete(id);
  }

  importFunction(id: number, state: Uint8Array | undefined): (...args: unknown[]) => unknown {
    return this.#checked(() =>
      state === undefined ? this.closure(id) : this.#fromState(id, state),
    );
  }

  importValue(bytes: Uint8Array): unknown {
    return this.#checked(() => {
      const { format: as, value } = read(bytes, this.#buffers);
      if (as === format.plain) return value;
      if (as !== format.graph) throw corrupt('a value was expected');
      return decode(parsePayload(value, bytes.byteLength), this).root;
    });
  }

  #checked<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      throw asCorrupt(error);
    }
  }

  #fromState(id: number, state: Uint8Array): (...args: unknown[]) => unknown {
    const { format: as, value } = read(state, this.#buffers);
    if (as === format.slots) {
      if (!Array.isArray(value)) throw corrupt('the slots are not a list');
      return this.#fromSlots(id, value);
    }
    if (as !== format.graph) throw corrupt('the state of a function was expected');
    const decoded = decode(parsePayload(value, state.byteLength), this);
    const fn = callableRoot(decoded);
    return decoded.stores.reduce<(...args: unknown[]) => unknown>(
      (inner, [key, store]) => within(key, store, inner),
      fn,
    );
  }

  #fromSlots(id: number, values: unknown[]): (...args: unknown[]) => unknown {
    const { target, fixed } = this.#forms.get(id) ?? { target: id, fixed: [] };
    for (const [at, ...entry] of fixed) {
      const slot = numberAt([at], 0);
      // Assigning beyond the end would make the list as long as that number.
      if (!Object.hasOwn(values, slot)) throw corrupt('a form has a slot that its function lacks');
      values[slot] = this.#steady(entry);
    }
    const instance = this.instantiate(target, values);
    const fn = instance.make([]);
    this.finish(target, fn, { instance, self: [], identity: [0, 0] });
    return callable(fn);
  }

  /** The value of a special that has nothing but texts and numbers. */
  #steady(entry: readonly unknown[]): unknown {
    switch (entry[0]) {
      case special.closure:
        return this.closure(numberAt(entry, 1));
      case special.imported:
        return this.imported(numberAt(entry, 1), stringAt(entry, 2), stringAt(entry, 3));
      default:
        return makePlain(entry, 0);
    }
  }

  // Methods that decode.ts calls (peer-memory.ts).

  original([tag, serial]: Identity): unknown {
    const identities = stateOf(this.#exporter)?.identities;
    return identities?.tag === tag ? identities.find(serial) : undefined;
  }

  cached([tag, serial]: Identity): unknown {
    return this.#remembered.get(`${tag}:${serial}`);
  }

  drop([tag, serial]: Identity): void {
    this.#remembered.delete(`${tag}:${serial}`);
  }

  remember([tag, serial]: Identity, value: unknown, instance?: Instance): void {
    if (this.#remembered.size >= maxRemembered) {
      for (const oldest of this.#remembered.keys()) {
        this.#remembered.delete(oldest);
        break;
      }
    }
    this.#remembered.set(`${tag}:${serial}`, value);
    rememberForeign(value, [tag, serial]);
    if (instance !== undefined) this.#instances.set(callable(value), instance);
  }

  instantiate(codeId: number, values: readonly unknown[], plan?: Plan): Instance {
    const code = this.#codes.get(codeId);
    if (code === undefined) throw corrupt(`the code ${codeId} was not defined`);
    try {
      code.instantiate ??= compile(code.definition);
      return code.instantiate(values, plan);
    } catch (cause) {
      throw compileFailed(code.definition, cause);
    }
  }

  finish(codeId: number, fn: AnyFunction, { instance, self, identity }: Made): void {
    const code = this.#codes.get(codeId);
    if (code === undefined) return;
    const { read, readPrivates } = instance;
    rememberOrigin(fn, { definition: code.definition, read, readPrivates, self, identity });
    if (code.definition.isClass) rememberPristine(fn);
    this.own(fn);
  }

  own(fn: AnyFunction): void {
    if (stateOf(this.#exporter)?.identities.ownsCode === true) rememberOwned(fn);
  }

  instanceOf(fn: AnyFunction): Instance | undefined {
    return this.#instances.get(fn);
  }

  heritageOf(codeId: number): number {
    return this.#codes.get(codeId)?.definition.heritage ?? -1;
  }

  hasCode(fn: AnyFunction, codeId: number): boolean {
    const [made, given] = [originOf(fn)?.definition, this.#codes.get(codeId)?.definition];
    if (made === given || made === undefined || given === undefined) return true;
    return made.compiled === given.compiled && made.slots.join() === given.slots.join();
  }

  versionOf(fn: AnyFunction): number {
    return this.#versions.get(fn) ?? 0;
  }

  setVersion(fn: AnyFunction, version: number): void {
    this.#versions.set(fn, Math.max(version, this.versionOf(fn)));
  }

  closure(id: number): (...args: unknown[]) => unknown {
    const known = this.#functions.get(id);
    if (known !== undefined) return known;
    const failure = this.#failures.get(id);
    if (failure !== undefined) throw failure;
    const bytes = this.#closures.get(id);
    const fn = bytes === undefined ? this.#bare(id) : this.#fromBytes(bytes);
    this.#functions.set(id, fn);
    return fn;
  }

  #fromBytes(bytes: Uint8Array): (...args: unknown[]) => unknown {
    const { format: as, value } = read(bytes, this.#buffers);
    if (as !== format.graph) return callable(value);
    return callableRoot(decode(parsePayload(value, bytes.byteLength), this));
  }

  /** Code without captures. */
  #bare(id: number): (...args: unknown[]) => unknown {
    const code = this.#codes.get(id);
    if (code === undefined || code.definition.slots.length > 0) {
      throw corrupt(`the function ${id} was not defined`);
    }
    return callable(this.instantiate(id, []).make([]));
  }

  imported(id: number, name: string, variable: string): unknown {
    const failure = this.#failures.get(id);
    if (failure !== undefined) throw failure;
    const exports = this.#modules.get(id);
    const specifier = this.#loading.get(id);
    if (specifier !== undefined) throw stillLoading(specifier);
    if (exports === undefined) throw corrupt(`the module ${id} was not defined`);
    if (variable === '') {
      const value = exports(name);
      this.#note(value, name, id, exports);
      return value;
    }
    if (variable.startsWith('.')) return memberOf(exports(name), variable);
    const key = `${id} ${name} ${variable}`;
    const seen = this.#seen.get(key) ?? sendingHalf().seenBy(exports(name), variable);
    this.#seen.set(key, seen);
    return seen;
  }

  unusableImport(id: number, path: string, value: unknown): CodedError {
    const { specifier = 'a module', parent = '' } = this.#sources.get(id) ?? {};
    const from = parent === '' ? '' : ` (imported by ${parent})`;
    const has = value === undefined ? `no ${path}` : `a ${typeof value} as ${path}`;
    return new CodedError(
      'TRANSFER_IMPORT_FAILED',
      `${specifier}${from} has ${has} on the receiving side, which imports it again, and another value on the ` +
        'sending side: let the module export the same in every worker, or pass the value as an argument',
    );
  }

  importedCell(id: number, name: string): object {
    const source = this.#sources.get(id);
    if (source === undefined) throw corrupt(`the module ${id} was not defined`);
    return liveCell({ ...source, name }, () => this.imported(id, name, ''));
  }

  /**
   * A result that is an import of the function, or another export of that module, goes back as that import.
   */
  #note(value: unknown, name: string, id: number, exports: Exports): void {
    const source = this.#sources.get(id);
    if (source === undefined) return;
    const isOfNode = isBuiltin(source.specifier);
    const read = () => [source, exportsIn(exports('*'))] as const;
    stateOf(this.#exporter)?.sentinels.note(value, name, source, isOfNode ? undefined : read);
  }

  parcel(id: number): readonly unknown[] {
    const values = this.#buffers?.open?.(id);
    if (values === undefined) throw corrupt('values came without a way beside the frames');
    adopt(values);
    return values;
  }

  requireFor(url: string): unknown {
    return createRequire(url);
  }

  moduleFor(url: string): unknown {
    return moduleAt(url);
  }
}

function stillLoading(specifier: string): CodedError {
  const message = `${specifier} has not ended loading: does it await something that never comes?`;
  return new CodedError('TRANSFER_IMPORT_FAILED', message);
}

function callable(value: unknown): (...args: unknown[]) => unknown {
  if (!isCallable(value)) throw corrupt('a function was expected');
  return value;
}

function callableRoot({ root, rootError }: Decoded): (...args: unknown[]) => unknown {
  if (!isCallable(root)) throw rootError('a function was expected');
  return root;
}

function within(
  key: unknown,
  store: unknown,
  inner: (...args: unknown[]) => unknown,
): (...args: unknown[]) => unknown {
  const storage = typeof key === 'string' ? registeredStorage(key) : key;
  if (!(storage instanceof AsyncLocalStorage)) return inner; // its module is not loaded here
  return runningIn([storage, typeof key === 'string' ? key : undefined, store], inner);
}
