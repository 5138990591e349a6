// Re-creates a function from its definition: the text, at its original file, line and column, inside a
// factory whose variables take the captured values. `vm.compileFunction` instead of eval: it works under
// --disallow-code-generation-from-strings, and V8 keeps the compiled code for every closure that the factory
// makes. Never `with`: it is 40 times slower. Slots are `let`s that are filled late, so functions may capture
// each other; a class is evaluated when its slots are filled.
// Not here: the values of the slots (decode.ts).

import { existsSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { CodedError } from '../../errors.js';
import { defineOwn, descriptorsOf, isMainRealm, jsonOf, messageOf } from '../../lib/index.js';
import { checkImport } from '../modules/guard.js';
import { metaFor } from '../modules/meta.js';
import { copyPrefix, noteMark, withoutWarnings } from '../modules/scripts.js';
import type { CodeDefinition, Identity } from '../protocol.js';
import { fileOfVite } from '../toolchains/vite-files.js';
import type { AnyFunction } from '../types.js';
import { compileHere } from '../values/realms.js';

/** One set of variables around the function. */
export interface Instance {
  /** Fills the slots, in the order of the definition. */
  readonly fill: (values: readonly unknown[]) => void;
  /** The present values of the slots. */
  readonly read: () => unknown[];
  /** Evaluates the text inside `[this, arguments]`, both optional; for a class, after `fill`. */
  readonly make: (self: readonly unknown[]) => AnyFunction;
  /** The present values of the private statics of a class, and a function that sets each. */
  readonly readPrivates: () => unknown[];
  readonly fillPrivates: (values: readonly unknown[]) => void;
}

/** Data by which a re-created function travels on without an inspector. */
export interface Origin {
  readonly definition: CodeDefinition;
  readonly read: () => unknown[];
  readonly readPrivates: () => unknown[];
  readonly self: readonly unknown[];
  readonly identity: Identity;
}

const origins = new WeakMap<AnyFunction, Origin>();

export function rememberOrigin(fn: AnyFunction, origin: Origin): void {
  origins.set(fn, origin);
}

export function originOf(fn: AnyFunction): Origin | undefined {
  return origins.get(fn);
}

// V8 would report the re-created script under the user's URL with other offsets, and spoil their coverage. A
// name that is no file keeps it out; stack.ts removes the prefix again.
const isCovered = process.env['NODE_V8_COVERAGE'] !== undefined;

/** Columns up to which spaces move a text to its place; beyond that an offset does. */
const maxSpaces = 500;

/** Compiles a definition. Call the result once for each closure. */
export function compile(definition: CodeDefinition): () => Instance {
  const { slots, prefix, isStrict, compiled, line, column, fileName } = definition;
  const fill = slots.map((name, index) => `${name}=${prefix}[${index}]`).join(';');
  const before =
    (isStrict ? '"use strict";' : '') +
    // `let` may be the name of a variable in sloppy code, but not of a `let`.
    (slots.length > 0 ? `${slots.includes('let') ? 'var' : 'let'} ${slots.join(',')};` : '') +
    (definition.privates.length > 0 ? `const ${prefix}={p:undefined};` : '') +
    `return {${definition.privates.length > 0 ? `privates(){return ${prefix}.p},` : ''}fill(${prefix}){${fill}},read(){return[${slots.join(',')}]},` +
    `make(){return (${opening(definition)}`;
  // V8 keeps the source: spaces before a function far to the right in a bundle would fill the heap.
  const isFar = column > maxSpaces && column > before.length;
  const gap = isFar ? '' : `\n${' '.repeat(column)}`;
  const source = `${before}${gap}${compiled}\n${closing(definition)})}}`;
  const { metaName, importName, url } = definition;
  noteMark(fileName);
  const helpers: [string, unknown][] = [];
  if (metaName !== '') helpers.push([metaName, metaFor(url)]);
  if (importName !== '') helpers.push([importName, importerFor(url)]);
  const factory = compileHere(
    source,
    helpers.map(([name]) => name),
    {
      filename: isCovered && !fileName.startsWith(copyPrefix) ? copyPrefix + fileName : fileName,
      lineOffset: isFar ? line : line - 1,
      columnOffset: isFar ? column - before.length : 0,
    },
  );
  if (typeof factory !== 'function') throw new TypeError('the factory is not a function');
  const values = helpers.map(([, value]) => value);
  const mayEval = definition.text.includes('eval');
  return () => toInstance(Reflect.apply(factory, undefined, values), definition, mayEval);
}

function opening(definition: CodeDefinition): string {
  const { form } = definition;
  if (form === 'class-method') return 'class{';
  if (form !== 'expression') return '{';
  // A function without a name takes that of the key, as from the variable at home.
  return definition.functionName === undefined ? '' : `{${keyFor(definition.functionName)}:(`;
}

function closing({ form, functionName }: CodeDefinition): string {
  if (form !== 'expression') return '}';
  return functionName === undefined ? '' : `)}[${quoted(functionName)}]`;
}

/** V8 gives a function the name of a plain key for good, in its messages too. */
function keyFor(name: string): string {
  return name === '__proto__' ? `[${quoted(name)}]` : quoted(name);
}

function quoted(text: string): string {
  return jsonOf(text);
}

function toInstance(
  value: unknown,
  { form, functionName }: CodeDefinition,
  mayEval: boolean,
): Instance {
  if (!isVariables(value)) throw new TypeError('the factory made no instance');
  // A text given to eval() there may use `super`: that of `make` in an arrow, of the holder in a member.
  const { make } = value;
  if (mayEval) Object.setPrototypeOf(value, superGuard);
  return {
    fill: value.fill,
    read: value.read,
    make: ([self, args]) => {
      // The text sees the `this` and the `arguments` of `make`.
      const result: unknown = Reflect.apply(make, self, Array.isArray(args) ? args : []);
      const made = form === 'expression' ? result : pickMember(result, form, mayEval);
      if (typeof made !== 'function') throw new TypeError('the text is not a function');
      if (functionName !== undefined && made.name !== functionName) {
        defineOwn(made, 'name', { value: functionName, configurable: true });
      }
      return made;
    },
    readPrivates: () => {
      const [read] = privatesOf(value);
      const values: unknown = read === undefined ? [] : Reflect.apply(read, undefined, []);
      return Array.isArray(values) ? values : [];
    },
    fillPrivates: (values) => {
      const [, write] = privatesOf(value);
      if (write !== undefined) Reflect.apply(write, undefined, [values]);
    },
  };
}

/** The functions that read and set private statics, after the class was evaluated. */
function privatesOf(variables: Variables): AnyFunction[] {
  const privates = Object.hasOwn(variables, 'privates') ? variables.privates : undefined;
  const pair: unknown = privates === undefined ? [] : Reflect.apply(privates, undefined, []);
  return Array.isArray(pair) ? pair : [];
}

/** The result of the compiled factory. */
interface Variables {
  readonly fill: (values: readonly unknown[]) => void;
  readonly read: () => unknown[];
  readonly make: AnyFunction;
  readonly privates?: AnyFunction;
}

function isVariables(value: unknown): value is Variables {
  return typeof value === 'object' && value !== null && 'make' in value;
}

/** The prototype of home objects that stand in for those of the program. */
const superGuard = new Proxy(Object.freeze(Object.create(null)), {
  get: refuseSuper,
  set: refuseSuper,
});

function refuseSuper(): never {
  throw new CodedError(
    'TRANSFER_UNREADABLE',
    'the text given to eval() uses super of the code around it, which did not travel: call the method by name',
  );
}

function pickMember(holder: unknown, form: string, mayEval: boolean): AnyFunction {
  const owner: unknown =
    form === 'class-method' && typeof holder === 'function' ? holder.prototype : holder;
  if (mayEval && typeof owner === 'object') Object.setPrototypeOf(owner, superGuard);
  const found = descriptorsOf(owner ?? {}).find(
    ([name]) => !(form === 'class-method' && name === 'constructor'),
  )?.[1];
  const made: unknown =
    form === 'getter' ? found?.get : form === 'setter' ? found?.set : found?.value;
  if (typeof made !== 'function') throw new TypeError('the definition holds no function');
  return made;
}

/**
 * The module at `url`; under coverage a file in the same folder, so that our helper is not reported as the
 * module.
 */
function nameFor(url: string): string {
  return isCovered && url.startsWith('file:') ? new URL('[manycore]', url).href : url;
}

type Import = (specifier: string, options?: unknown) => Promise<unknown>;

const importers = new Map<string, Import>();
const urlsOfImporters = new WeakMap<AnyFunction, string>();

/** The URL of the module whose `import()` is `fn`, where `importerFor` has made that. */
export function importerUrl(fn: AnyFunction): string | undefined {
  return urlsOfImporters.get(fn);
}

/** `import()` as the module at `url` would do it. */
export function importerFor(url: string): Import {
  const known = importers.get(url);
  if (known !== undefined) return known;
  const made: unknown = withoutWarnings(() =>
    vm.compileFunction('return import(specifier,options)', ['specifier', 'options'], {
      filename: nameFor(url),
      importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    }),
  );
  if (typeof made !== 'function') throw new TypeError('import() cannot be compiled');
  // The first import warns, not the compilation.
  const importer = (specifier: string, options?: unknown): Promise<unknown> =>
    withoutWarnings(async (): Promise<unknown> => {
      const file = isOfVite(specifier) ? fileOfVite(specifier, url) : undefined;
      const target = file === undefined ? specifier : pathToFileURL(file).href;
      checkImport(target, url);
      const ofRunner = options === undefined ? urlForRunner(target, url) : undefined; // JSON is a copy anyway
      try {
        if (ofRunner !== undefined) return await import(ofRunner);
        return await Reflect.apply(made, undefined, [target, options]);
      } catch (cause) {
        throw file === undefined ? cause : onlyInVite(file, cause);
      }
    });
  importers.set(url, importer);
  urlsOfImporters.set(importer, url);
  return importer;
}

/**
 * The URL for an `import()` of ours, where a test runner loaded us into a context: it leads to the runner's
 * loader, which has the modules of the program. `undefined`: Node's loader is to import it. That has no
 * second copy of its own modules, and alone resolves the name of a package as another module would.
 */
function urlForRunner(specifier: string, url: string): string | undefined {
  if (isMainRealm || !('SyntheticModule' in vm) || isBuiltin(specifier)) return undefined;
  return URL.canParse(specifier) || /^\.{0,2}\//.test(specifier)
    ? new URL(specifier, url).href
    : undefined;
}

/** True: a path below the root of a project that Vite serves, which names no file. */
function isOfVite(specifier: string): boolean {
  return /^\/(?!\/)/.test(specifier) && !existsSync(specifier);
}

function onlyInVite(file: string, cause: unknown): CodedError {
  return new CodedError(
    'TRANSFER_IMPORT_FAILED',
    `${file} cannot be imported in the worker: ${messageOf(cause)}; ` +
      'Vite compiles modules in its own process only: import it by a statement at the top of the ' +
      'module, so that it travels with the function',
    { cause },
  );
}

/** The error that the peer gets when a definition does not compile. */
export function compileFailed(definition: CodeDefinition, cause: unknown): CodedError {
  return new CodedError(
    'TRANSFER_UNREADABLE',
    `the function at ${definition.fileName.replace(copyPrefix, '')}:${definition.line + 1} cannot be made again in a worker: ` +
      `${messageOf(cause)}; move it into a module and use ` +
      'task(moduleUrl, exportName)',
    { cause },
  );
}
