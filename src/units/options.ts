// The options of `deploy` and `Loops`, checked and filled.

import { existsSync, statSync } from 'node:fs';
import { basename, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { codeVersion } from '../context/index.js';
import { CodedError } from '../errors.js';
import {
  choiceOption,
  type IntensityOptions,
  integer,
  integerOption,
  intensityDefaults,
  invalid,
  ownOptions,
  type Read,
  type Readers,
  readOptions,
  string,
} from '../lib/index.js';
import { grantedCores } from '../worker/index.js';
import type { UnitSource } from './protocol.js';
import type {
  DeployAllOptions,
  DeployOptions,
  GroupMember,
  RestartStrategy,
  RestartsOption,
} from './types.js';

const maxInstances = 1_000_000;
const maxTimeoutMs = 2 ** 31 - 1;
const maxProcesses = 1024;
/** Default of `health()`. */
export const healthTimeoutMs = 5000;

const timeoutOption = integerOption(30_000, 1, maxTimeoutMs);

/** The readers for a deployment of `source` on `loops` loops. */
const deployReaders = (source: UnitSource, loops: number) =>
  ({
    instances: (_, instances = 1) => checkInstances(instances, 1),
    on: choiceOption(['loop', 'blocking']),
    config: (_, config) => config,
    name: (name, text) => (text === undefined ? nameOf(source) : string(name, text, 'a name')),
    processes: (name, count) =>
      count === undefined ? Infinity : integer(name, count, 1, maxProcesses),
    blockingThreads: (_, threads, { instances = 1 }) =>
      threadsOf(threads, Math.min(instances, loops)),
    startTimeoutMs: timeoutOption,
    stopTimeoutMs: timeoutOption,
    restarts: (_, restarts) => restartsOf(restarts),
  }) satisfies Readers<DeployOptions>;

export interface FilledDeployOptions extends Read<ReturnType<typeof deployReaders>> {}

/** Fills options of a deployment on `loops` loops. Throws `OPTION_INVALID`. */
export function fillDeployOptions(
  source: UnitSource,
  options: DeployOptions = {},
  loops = 1,
): FilledDeployOptions {
  return readOptions('the options of deploy', options, deployReaders(source, loops));
}

/** The readers for a group. */
const deployAllReaders = {
  strategy: choiceOption<RestartStrategy>(['one-for-one', 'one-for-all', 'rest-for-one']),
  restarts: (_, restarts) => restartsOf(restarts),
} satisfies Readers<DeployAllOptions>;

export interface FilledDeployAll extends Read<typeof deployAllReaders> {}

/** Fills the options of a group, and checks those of its units. Throws `OPTION_INVALID`, `UNIT_INVALID`. */
export function fillDeployAll(
  units: readonly GroupMember[],
  options: DeployAllOptions = {},
): FilledDeployAll {
  if (!Array.isArray(units) || units.length === 0) {
    throw invalid('units', units, 'a list of at least one { unit, …options of deploy }');
  }
  for (const [at, member] of units.entries()) {
    if (typeof member !== 'object' || member === null || !('unit' in member)) {
      throw invalid(`units[${at}]`, member, 'an object { unit, …options of deploy }');
    }
    const { unit, ...own } = member;
    if ('restarts' in own) {
      const text = `units[${at}] has restarts, which are those of the group: give them in the second argument`;
      throw new CodedError('OPTION_INVALID', text);
    }
    fillDeployOptions(sourceOf(unit), own);
  }
  return readOptions('the options of deployAll', options, deployAllReaders);
}

/** Throws `OPTION_INVALID`. */
function restartsOf(given: RestartsOption = {}): IntensityOptions {
  const { max = intensityDefaults.max, withinMs = intensityDefaults.withinMs } = ownOptions(
    'restarts',
    given,
    new Set(['max', 'withinMs']),
  );
  return {
    max: max === Infinity ? max : integer('restarts.max', max, 0, Number.MAX_SAFE_INTEGER),
    withinMs: integer('restarts.withinMs', withinMs, 1, maxTimeoutMs),
  };
}

/** Returns the number of threads in each of `loops` loops. */
function threadsOf(given: DeployOptions['blockingThreads'], loops: number): number {
  if (given === 'cores') return Math.ceil(grantedCores().count / loops);
  if (typeof given !== 'string') return integer('blockingThreads', given ?? 20, 1, 1024);
  throw invalid('blockingThreads', given, '"cores", or an integer from 1 to 1024');
}

/** Throws `OPTION_INVALID`. */
export function checkInstances(instances: number, least: 0 | 1): number {
  return integer('instances', instances, least, maxInstances);
}

/** Returns the unit as it is sent to the loops. Throws `UNIT_INVALID`, `OPTION_INVALID`. */
export function sourceOf(unit: unknown): UnitSource {
  if (typeof unit === 'string' || unit instanceof URL) return moduleAt(unit);
  checkUnit(unit, 'unit');
  return { kind: 'value', value: unit };
}

function moduleAt(place: string | URL): UnitSource {
  const isUrl = place instanceof URL || place.startsWith('file:');
  if (place instanceof URL && place.protocol !== 'file:') {
    throw invalid('unit', place.href, 'a unit, or the path of a file');
  }
  const path = isUrl ? fileURLToPath(place) : resolve(string('unit', place, 'the path of a file'));
  if (!existsSync(path) || !statSync(path).isFile()) {
    throw new CodedError('UNIT_INVALID', `there is no unit ${path}: give the path of its file`);
  }
  const { href } = pathToFileURL(path);
  return { kind: 'module', url: href, version: codeVersion(href) ?? '' };
}

/** The methods of a unit beside `start`. */
const otherMethods = ['stop', 'health', 'save', 'restore'];
const methods = ['start', ...otherMethods];

/**
 * Returns the unit of a module: its default export, also of CommonJS; else what CommonJS exports as a whole; else
 * `start`, or the module where it exports other methods, too.
 */
export function unitOf(exported: unknown): unknown {
  const inner: unknown = Reflect.get(Object(exported), 'default');
  if (inner !== undefined) {
    const innermost: unknown = Reflect.get(Object(inner), 'default');
    return typeof inner === 'object' && innermost !== undefined ? innermost : inner;
  }
  if (typeof exported === 'function') return exported;
  const isObject = otherMethods.some((name) => Reflect.get(Object(exported), name) !== undefined);
  return isObject ? exported : Reflect.get(Object(exported), 'start');
}

/** True: a module with these exports is maybe meant as a unit; any function without parameters may be another one. */
export function isLikeUnit(exports: unknown): boolean {
  const unit = unitOf(exports);
  if (typeof unit !== 'function')
    return typeof unit === 'object' && unit !== null && hasMethod(unit);
  return (
    unit.length > 0 ||
    hasMethod(Object(unit.prototype)) ||
    unit === Reflect.get(Object(exports), 'start')
  );
}

function hasMethod(unit: object): boolean {
  return methods.some((name) => typeof Reflect.get(unit, name) === 'function');
}

/** Throws `UNIT_INVALID`. */
export function checkUnit(unit: unknown, what: string): void {
  if (typeof unit === 'function') return;
  if (typeof unit === 'object' && unit !== null && hasMethod(unit)) return;
  throw new CodedError(
    'UNIT_INVALID',
    `${what} is not a deployable unit: it must be a class, a function, or an object with start(context)`,
  );
}

function nameOf(source: UnitSource): string {
  if (source.kind === 'module') {
    const path = fileURLToPath(source.url);
    return basename(path, extname(path));
  }
  const { value } = source;
  if (typeof value === 'function') return value.name === '' ? 'unit' : value.name;
  const itsClass: unknown = Object(value).constructor;
  return typeof itsClass === 'function' && itsClass !== Object ? itsClass.name : 'unit';
}
