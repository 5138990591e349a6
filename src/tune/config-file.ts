// The configuration file: the parameters that were found, beside the keys that the file has already, and a
// reason for each. JSON has no comments, so the reasons are an object with the same keys, `reasons`, which
// `manycore serve` ignores. A file is replaced whole or stays as it was.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { CodedError } from '../errors.js';
import { messageOf, replaceFile } from '../lib/index.js';
import {
  type Configuration,
  flagName,
  flagNamesOf,
  flagsOf,
  type Parameter,
  variablesOf,
} from './configuration.js';
import type { NamedApp } from './use.js';

type Fields = Readonly<Record<string, unknown>>;

/** Returns the content; `{}` for a missing file. Throws `OPTION_INVALID` for an unreadable one. */
export function readConfigFile(path: string): Fields {
  const file = resolve(path);
  if (!isFile(file)) return {};
  try {
    const content: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (isFields(content)) return content;
    throw new TypeError('it has to be an object');
  } catch (cause) {
    const message = `${file} cannot be read as a configuration: ${messageOf(cause)}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}

/** Returns false for devices too: they are not read. */
function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns `before` with the advice; other keys stay. `app`: added when the file serves nothing yet. */
export function mergedConfig(
  before: Fields,
  advice: Configuration,
  reasons: Readonly<Partial<Record<Parameter, string>>>,
  app?: NamedApp,
): Fields {
  const { loops, affinity } = advice;
  const env = variablesOf(advice);
  const flags = flagsOf(advice);
  const kept = flagList(before).filter((flag) => !flagNamesOf(advice).includes(flagName(flag)));
  const changes: Record<string, unknown> = {
    ...(loops !== undefined && { processes: loops.processes, loops: loops.loops }),
    ...(Object.keys(env).length > 0 && { env: { ...fieldsIn(before, 'env'), ...env } }),
    ...(flags.length > 0 && { nodeFlags: [...kept, ...flags] }),
    ...(affinity !== undefined && { affinity }),
  };
  const own = Object.entries(reasons).flatMap(([parameter, reason]) =>
    keysOf(parameter, advice).map((key) => [key, reason]),
  );
  const oldReasons = Object.entries(fieldsIn(before, 'reasons')).filter(
    ([key]) => !decides(advice, key),
  );
  const serves = ['app', 'static', 'cgi', 'apps'].some((key) => Object.hasOwn(before, key));
  return {
    ...(!serves && app),
    ...before,
    ...changes,
    reasons: Object.fromEntries([...oldReasons, ...own]),
  };
}

function flagList(config: Fields): readonly string[] {
  const flags = config['nodeFlags'];
  return Array.isArray(flags) ? flags.filter((flag) => typeof flag === 'string') : [];
}

function fieldsIn(config: Fields, name: string): Fields {
  const fields = config[name];
  return isFields(fields) ? fields : {};
}

/** Returns the keys in the file that the reason of a parameter belongs to. */
function keysOf(parameter: string, { loops, affinity, ...rest }: Configuration): string[] {
  if (parameter === 'loops' && loops !== undefined) return ['processes', 'loops'];
  if (parameter === 'affinity' && affinity !== undefined) return ['affinity'];
  const { poolWorkers, blockingThreads, heapLimit, semiSpace, gcThreads } = rest;
  const one: Readonly<Record<string, Configuration>> = {
    ...(poolWorkers !== undefined && { poolWorkers: { poolWorkers } }),
    ...(blockingThreads !== undefined && { blockingThreads: { blockingThreads } }),
    ...(heapLimit !== undefined && { heapLimit: { heapLimit } }),
    ...(semiSpace !== undefined && { semiSpace: { semiSpace } }),
    ...(gcThreads !== undefined && { gcThreads: { gcThreads } }),
  };
  const configuration = one[parameter] ?? {};
  return [
    ...Object.keys(variablesOf(configuration)).map((name) => `env.${name}`),
    ...flagsOf(configuration).map((flag) => `nodeFlags.${flagName(flag)}`),
  ];
}

/** Returns true when an older reason is for a key that the advice sets anew. */
function decides(advice: Configuration, key: string): boolean {
  const flag = key.replace(/^nodeFlags\./, '');
  if (flag !== key) return flagNamesOf(advice).includes(flag);
  return Object.keys(advice).some((parameter) => keysOf(parameter, advice).includes(key));
}

/** Throws `TUNE_WRITE_FAILED`, and leaves the existing file unchanged. */
export function writeJson(path: string, value: unknown): void {
  const text = `${JSON.stringify(value, undefined, 2)}\n`;
  try {
    replaceFile(path, text);
  } catch (cause) {
    const message = `${resolve(path)} cannot be written: ${messageOf(cause)}; make room, or name another file`;
    throw new CodedError('TUNE_WRITE_FAILED', message, { cause });
  }
}
