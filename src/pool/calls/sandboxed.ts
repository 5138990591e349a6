// Calls in partitions of their own: a function whose code is not trusted, and code that arrives as text.
// Not here: the partition (worker/partition/), pools of partitions (`new Pool({ worker: { kind: 'sandbox' } })`).

import type { AnyFunction } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import { invalid, jsonOf, messageOf, notFunction, ownOf, ownOptions } from '../../lib/index.js';
import {
  fillPartition,
  grantedCores,
  partitionKindOption,
  type SandboxOptions,
  sandboxOptionNames,
  type VmOptions,
  vmOptionNames,
} from '../../worker/index.js';
import { type CallOptions, fillCallOptions } from '../options.js';
import { Pool, type TaskResult } from '../pool.js';

/** Options of a sandbox or, with `kind: 'vm'`, of a virtual machine, and of each call in it. */
export type SandboxedOptions = (
  | (Omit<SandboxOptions, 'kind'> & { readonly kind?: 'sandbox' | undefined })
  | VmOptions
) &
  Pick<CallOptions, 'timeoutMs' | 'signal'>;

/** A function that runs in a partition of its own. */
export interface SandboxedFunction<A extends unknown[], R> extends AsyncDisposable {
  (...args: A): Promise<TaskResult<R>>;
  /** Ends the partition after the calls; it ends with the program, too, and after 10 s without a call. */
  close(): Promise<void>;
}

/** Options of `runSource`. */
export type SourceOptions = SandboxedOptions & SourceValues;

/** Values and functions of the program, for code that arrives as text. */
export interface SourceValues {
  /** Values by the names that the code has for them. Default: none. */
  readonly args?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Functions of the program that the code may call, by name; there each returns a promise. Whatever arrives as their
   * arguments is data that a stranger has chosen.
   */
  readonly functions?: Readonly<Record<string, (...args: never[]) => unknown>> | undefined;
}

const callNames = ['timeoutMs', 'signal'] as const;
const sourceNames = ['args', 'functions'] as const;
const optionNames = { sandbox: sandboxOptionNames, vm: vmOptionNames } as const;
/** Time for code that arrives as text: most of it computes a value, or goes on for ever. */
const sourceTimeoutMs = 5000;

/**
 * Returns `fn` as a function that runs in a sandbox or virtual machine of its own, with everything that it captured;
 * see `SandboxOptions` and `VmOptions`. Throws `OPTION_INVALID`, `TASK_NOT_FUNCTION`, `PARTITION_UNAVAILABLE`.
 */
export function sandboxed<A extends unknown[], R>(
  fn: (...args: A) => R,
  options: SandboxedOptions = {},
): SandboxedFunction<A, R> {
  if (typeof fn !== 'function') throw notFunction('fn', fn);
  const given = optionsOf('sandboxed()', options, callNames);
  const call = callOf(given);
  const pool = new Pool({ worker: workerOf(given), size: { min: 0, max: 1 }, graceMs: 0 });
  const close = (): Promise<void> => pool.close();
  return Object.assign((...args: A) => pool.with(call).run(fn, ...args), {
    close,
    [Symbol.asyncDispose]: close,
  });
}

/**
 * Runs `source`, an expression or the body of an async function, in a sandbox or virtual machine that is used for
 * nothing else, and resolves with its result, which is data. Rejects with what it throws, and as `Pool.run`;
 * `timeoutMs` is 5 s by default. Throws `OPTION_INVALID`, `PARTITION_UNAVAILABLE`.
 */
export async function runSource(source: string, options: SourceOptions = {}): Promise<unknown> {
  if (typeof source !== 'string') throw invalid('source', source, 'a text');
  const given = optionsOf('runSource()', options, [...callNames, ...sourceNames]);
  const { args = {}, functions = {}, timeoutMs = sourceTimeoutMs } = given;
  const call = callOf({ ...given, timeoutMs });
  const [values, offered] = [entriesOf('args', args), entriesOf('functions', functions)];
  for (const [name, fn] of offered) {
    if (typeof fn !== 'function') throw invalid(`functions.${name}`, fn, 'a function');
    if (Object.hasOwn(args, name)) throw invalid('args', name, 'no name that is one of functions');
  }
  const answer = (asked: unknown): Promise<Answer> => answerTo(asked, functions);
  return await poolOfSources(given)
    .with({ ...call, onReport: answer })
    .run(
      runText,
      source,
      values.map(([name]) => name),
      values.map(([, value]) => value),
      offered.map(([name]) => name),
    );
}

/** Pools by their options, the one that was used last at the end. */
const poolsOfSources = new Map<string, Pool>();
/** More pools than these are closed: each keeps a sandbox that waits. */
const maxPoolsOfSources = 8;

/** One partition is used once, and another one waits for the next call. */
function poolOfSources(options: SandboxedOptions): Pool {
  const worker = workerOf(options);
  const key = jsonOf(fillPartition(worker));
  const known = poolsOfSources.get(key);
  if (known !== undefined) {
    poolsOfSources.delete(key);
    poolsOfSources.set(key, known);
    return known;
  }
  const made = new Pool({
    worker,
    size: { min: 0, max: grantedCores().count + 1 },
    maxTasksPerWorker: 1,
    minSpareWorkers: 1,
    graceMs: 0,
    setup: rehearse,
  });
  poolsOfSources.set(key, made);
  const [[oldest, pool] = [key, made]] = poolsOfSources;
  if (poolsOfSources.size > maxPoolsOfSources) {
    poolsOfSources.delete(oldest);
    void pool.close(); // after the calls that it has
  }
  return made;
}

/** Checks the names of the options: those of one kind are none of the other. */
function optionsOf<Options extends SandboxedOptions>(
  caller: string,
  options: Options,
  others: readonly string[],
): Options {
  const what = `the options of ${caller}`;
  const kind = partitionKindOption('kind', Object(ownOf(options)).kind);
  return ownOptions(what, options, new Set([...optionNames[kind], ...others]));
}

function workerOf(given: SourceOptions): SandboxOptions | VmOptions {
  const { timeoutMs: _, signal: __, args: ___, functions: ____, ...worker } = given;
  return worker.kind === 'vm' ? worker : { ...worker, kind: 'sandbox' };
}

function callOf({ timeoutMs, signal }: SandboxedOptions): CallOptions {
  const call = { timeoutMs, signal };
  fillCallOptions(call);
  return call;
}

const identifier = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

function entriesOf(option: string, given: unknown): [name: string, value: unknown][] {
  if (typeof given !== 'object' || given === null) throw invalid(option, given, 'an object');
  const entries: [string, unknown][] = Object.entries(given);
  for (const [name] of entries) {
    if (!identifier.test(name))
      throw invalid(option, name, 'an object whose keys can be variables');
  }
  return entries;
}

interface Answer {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly code: unknown };
}

/** Calls the function that code in a sandbox asks for. Never rejects: what it throws is for that code. */
async function answerTo(
  asked: unknown,
  functions: Readonly<Record<string, AnyFunction>>,
): Promise<Answer> {
  try {
    const [name, args]: unknown[] = Array.isArray(asked) ? asked : [];
    if (typeof name !== 'string' || !Object.hasOwn(functions, name) || !Array.isArray(args)) {
      throw new CodedError('OPTION_INVALID', 'the sandbox has no such function');
    }
    const fn = functions[name];
    return {
      value: typeof fn === 'function' ? await Reflect.apply(fn, undefined, args) : undefined,
    };
  } catch (error) {
    const isError = error instanceof Error;
    return {
      error: {
        name: isError ? error.name : 'Error',
        message: messageOf(error),
        code: isError && 'code' in error ? error.code : undefined,
      },
    };
  }
}

/** Runs the sandbox's code once before it is needed: the first call would wait for it to be read and compiled. */
async function rehearse(): Promise<void> {
  await runText('given', ['given'], [0], []);
}

/** Runs in the sandbox, and uses nothing of this module. */
async function runText(
  text: string,
  names: readonly string[],
  values: readonly unknown[],
  functions: readonly string[],
): Promise<unknown> {
  const worker: unknown = Reflect.get(globalThis, Symbol.for('manycore.worker'));
  const ask: unknown = Reflect.get(Object(worker), 'ask');
  const ofProgram = functions.map((name) => async (...args: unknown[]) => {
    const answer: unknown = typeof ask === 'function' ? await ask([name, args]) : undefined;
    const error: unknown = Reflect.get(Object(answer), 'error');
    if (error !== undefined) throw Object.assign(new Error(), error);
    const value: unknown = Reflect.get(Object(answer), 'value');
    return value;
  });
  const { compileFunction, constants } = process.getBuiltinModule('node:vm');
  const compile = (body: string): unknown =>
    compileFunction(`return (async () => {${body}\n})()`, [...names, ...functions], {
      filename: 'source',
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
  let compiled: unknown;
  try {
    compiled = compile(`return (${text}\n)`);
  } catch {
    compiled = compile(text);
  }
  if (typeof compiled !== 'function') return undefined;
  const result: unknown = await compiled(...values, ...ofProgram);
  return result;
}
