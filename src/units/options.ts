// The options of `deploy` and `Loops`, checked and filled.

import { existsSync, statSync } from 'node:fs';
import { basename, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { CodedError } from '../errors.js';
import { integer, invalid, oneOf, ownOptions, string } from '../lib/index.js';
import { grantedCores } from '../worker/index.js';
import type { UnitSource } from './protocol.js';
import type { DeployOptions, UnitPlacement } from './types.js';

const maxInstances = 1_000_000;
const maxTimeoutMs = 2 ** 31 - 1;
const defaultTimeoutMs = 30_000;
/** Default of `health()`. */
export const healthTimeoutMs = 5000;

export interface FilledDeployOptions {
  readonly instances: number;
  readonly on: UnitPlacement;
  readonly config: unknown;
  readonly name: string;
  readonly processes: number;
  readonly blockingThreads: number;
  readonly startTimeoutMs: number;
  readonly stopTimeoutMs: number;
}

const names = new Set([
  'instances',
  'on',
  'config',
  'name',
  'processes',
  'blockingThreads',
  'startTimeoutMs',
  'stopTimeoutMs',
]);

/** Fills options of a deployment on `loops` loops. Throws `OPTION_INVALID`. */
export function fillDeployOptions(
  source: UnitSource,
  options: DeployOptions = {},
  loops = 1,
): FilledDeployOptions {
  const given = ownOptions('the options of deploy', options, names);
  const instances = checkInstances(given.instances ?? 1, 1);
  const { startTimeoutMs = defaultTimeoutMs, stopTimeoutMs = defaultTimeoutMs } = given;
  return {
    instances,
    on: oneOf('on', given.on ?? 'loop', ['loop', 'blocking']),
    config: given.config,
    name: given.name === undefined ? nameOf(source) : string('name', given.name, 'a name'),
    processes:
      given.processes === undefined ? Infinity : integer('processes', given.processes, 1, 1024),
    blockingThreads: threadsOf(given.blockingThreads, Math.min(instances, loops)),
    startTimeoutMs: integer('startTimeoutMs', startTimeoutMs, 1, maxTimeoutMs),
    stopTimeoutMs: integer('stopTimeoutMs', stopTimeoutMs, 1, maxTimeoutMs),
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
  return { kind: 'module', url: pathToFileURL(path).href };
}

const methods = ['start', 'stop', 'health'];

/** Throws `UNIT_INVALID`. */
export function checkUnit(unit: unknown, what: string): void {
  if (typeof unit === 'function') return;
  const isObject = typeof unit === 'object' && unit !== null;
  if (isObject && methods.some((name) => typeof Reflect.get(unit, name) === 'function')) return;
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
