// Re-creates a function from its definition: the text, at its original file, line and column, inside a
// factory whose variables take the captured values. `vm.compileFunction` instead of eval: it works under
// --disallow-code-generation-from-strings, and V8 keeps the compiled code for every closure that the factory
// makes. Never `with`: it is 40 times slower. One definition has a factory for each way in which its values
// arrived so far.
// Not here: the text of factories (factory.ts), the values of the slots (decode.ts).

import { existsSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { CodedError } from '../../errors.js';
import {
  defineOwn,
  descriptorsOf,
  isMainRealm,
  jsonOf,
  messageOf,
  withoutWarnings,
} from '../../lib/index.js';
import { sendingHalf } from '../late.js';
import { checkImport } from '../modules/guard.js';
import { copyPrefix, noteMark } from '../modules/marks.js';
import { metaFor } from '../modules/meta.js';
import type { CodeDefinition, Identity } from '../protocol.js';
import { fileOfVite } from '../toolchains/vite-files.js';
import type { AnyFunction } from '../types.js';
import { compileHere } from '../values/realms.js';
import { factoryText, type Plan, stagesOf, usualPlan, variable } from './factory.js';

/** One set of variables around the function. */
export interface Instance {
  /**
   * Sets the slots that are variables, and initialises the constants that were awaited up to `stage`; the
   * values are in the order of the definition.
   */
  readonly fill: (values: readonly unknown[], stage: number) => void;
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

/** Makes the variables of a function. `plan`: how each value arrives, where not all are there. */
export type Instantiate = (values: readonly unknown[], plan?: Plan) => Instance;

/** Plans of one definition that get a factory of their own; the rest share one that has only variables. */
const maxFactories = 16;

/** Compiles a definition. Call the result once for each closure. */
export function compile(definition: CodeDefinition): Instantiate {
  const usual = usualPlan(definition);
  const onlyVariables = variable.repeat(usual.length);
  const mayEval = definition.text.includes('eval');
  const factories = new Map<Plan, Factory>();
  const factoryFor = (plan: Plan): Factory => {
    const known = factories.get(plan);
    if (known !== undefined) return known;
    if (factories.size >= maxFactories && plan !== onlyVariables) return factoryFor(onlyVariables);
    const made = { run: compileFactory(definition, plan), last: stagesOf(plan) };
    factories.set(plan, made);
    return made;
  };
  let first: Factory | undefined;
  return (values, plan) => {
    if (plan === undefined) {
      first ??= factoryFor(usual);
      return toInstance(first, values, definition, mayEval);
    }
    return toInstance(factoryFor(joined(usual, plan)), values, definition, mayEval);
  };
}

/** A compiled factory; `last` is the last stage that it awaits. */
interface Factory {
  readonly run: AnyFunction;
  readonly last: number;
}

/** `plan` for the slots that are no variables. */
function joined(usual: Plan, plan: Plan): Plan {
  if (!usual.includes(variable)) return plan;
  let both = '';
  for (let at = 0; at < usual.length; at += 1) both += usual[at] === variable ? variable : plan[at];
  return both;
}

function compileFactory(definition: CodeDefinition, plan: Plan): AnyFunction {
  const { compiled, line, column, fileName } = definition;
  const [start, end] = factoryText(definition, plan);
  const before = start + opening(definition);
  // V8 keeps the source: spaces before a function far to the right in a bundle would fill the heap.
  const isFar = column > maxSpaces && column > before.length;
  const gap = isFar ? '' : `\n${' '.repeat(column)}`;
  const source = `${before}${gap}${compiled}\n${closing(definition)}${end}`;
  const { metaName, importName, url } = definition;
  noteMark(fileName);
  const helpers: [string, unknown][] = [];
  if (metaName !== '') helpers.push([metaName, metaFor(url)]);
  if (importName !== '') helpers.push([importName, importerFor(url)]);
  const wrapper = compileHere(
    source,
    helpers.map(([name]) => name),
    {
      filename: isCovered && !fileName.startsWith(copyPrefix) ? copyPrefix + fileName : fileName,
      lineOffset: isFar ? line : line - 1,
      columnOffset: isFar ? column - before.length : 0,
    },
  );
  if (typeof wrapper !== 'function') throw new TypeError('the factory is not a function');
  const values = helpers.map(([, value]) => value);
  const factory: unknown = Reflect.apply(wrapper, undefined, values);
  if (typeof factory !== 'function') throw new TypeError('the factory is not a function');
  return factory;
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

/** `next` of generators, which the program may replace. */
const goOn: AnyFunction = Object.getPrototypeOf(function* () {}).prototype.next;

function toInstance(
  { run, last }: Factory,
  values: readonly unknown[],
  { form, functionName }: CodeDefinition,
  mayEval: boolean,
): Instance {
  const running: unknown = Reflect.apply(run, undefined, [values]);
  const value: unknown = last === 0 ? running : Reflect.apply(goOn, running, []).value;
  if (!isVariables(value)) throw new TypeError('the factory made no instance');
  let reached = 0;
  // A text given to eval() there may use `super`: that of `make` in an arrow, of the holder in a member.
  const { make } = value;
  if (mayEval) Object.setPrototypeOf(value, superGuard);
  return {
    fill: (given, stage) => {
      value.fill(given);
      for (; reached < last && reached < stage; reached += 1) Reflect.apply(goOn, running, [given]);
    },
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
      // Not later: Node 22 ends a process that requires a module while an import() of the same files runs, and any
      // module may import this package.
      if (!isBuiltin(target)) sendingHalf();
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
