// Several units for one `manycore run`: `--unit FILE:INSTANCES` again and again, or a JSON file with a list.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CodedError } from '../../../errors.js';
import {
  choiceOption,
  integer,
  invalid,
  messageOf,
  oneOf,
  readOptions,
  string,
} from '../../../lib/index.js';
import type { RestartStrategy, UnitPlacement } from '../../../units/index.js';

export interface UnitEntry {
  readonly file: string;
  readonly instances?: number | undefined;
  readonly name?: string | undefined;
  readonly on?: UnitPlacement | undefined;
  readonly config?: unknown;
}

export interface UnitList {
  /** The file that stands for all in `manycore status`. */
  readonly shown: string;
  readonly units: readonly UnitEntry[];
  /** Undefined: each restarts by itself. */
  readonly strategy?: RestartStrategy | undefined;
  /** The loops; flags win over it. */
  readonly size: { readonly processes?: number | undefined; readonly loops?: number | undefined };
}

const most = 1_000_000;

/** Returns the units of `--unit FILE:INSTANCES` flags. */
export function unitsOfFlags(flags: readonly string[]): UnitList {
  const units = flags.map((flag): UnitEntry => {
    const [, file = flag, count] = /^([^]+):(\d+)$/.exec(flag) ?? [];
    return { file, instances: count === undefined ? undefined : Number(count) };
  });
  return { shown: units[0]?.file ?? '', units, size: {} };
}

const optional =
  <Value>(read: (name: string, value: Value) => Value) =>
  (name: string, value: Value | undefined) =>
    value === undefined ? undefined : read(name, value);

const listReaders = {
  units: (name: string, value: unknown): readonly unknown[] => {
    if (Array.isArray(value) && value.length > 0) return value;
    throw invalid(name, value, 'a list of at least one unit');
  },
  strategy: optional((name: string, strategy: RestartStrategy) =>
    oneOf(name, strategy, ['one-for-one', 'one-for-all', 'rest-for-one']),
  ),
  processes: optional((name: string, count: number) => integer(name, count, 1, most)),
  loops: optional((name: string, count: number) => integer(name, count, 1, most)),
};

const entryReaders = {
  file: (name: string, file: unknown) => string(name, file, 'the path of the module of a unit'),
  instances: optional((name: string, count: number) => integer(name, count, 1, most)),
  name: optional((name: string, text: string) => string(name, text, 'a name')),
  on: optional(choiceOption<UnitPlacement>(['loop', 'blocking'])),
  config: (_: string, config: unknown) => config,
};

/** Reads a JSON file of units; their files are relative to its folder. Throws `OPTION_INVALID`, `CLI_FILE_NOT_FOUND`. */
export function unitsOfFile(path: string): UnitList {
  const list = readOptions(path, contentOf(path), listReaders);
  const units = list.units.map((entry, at) => {
    const what = `units[${at}] in ${path}`;
    const isObject = typeof entry === 'object' && entry !== null && !Array.isArray(entry);
    if (!isObject) throw invalid(what, entry, 'an object with file, as { "file": "unit.js" }');
    const unit = readOptions(what, entry, entryReaders);
    return { ...unit, file: resolve(dirname(path), unit.file) };
  });
  const { strategy, processes, loops } = list;
  return { shown: path, units, strategy, size: { processes, loops } };
}

function contentOf(path: string): object {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    const message = `${path} cannot be read: ${messageOf(cause)}`;
    throw new CodedError('CLI_FILE_NOT_FOUND', message, { cause });
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (cause) {
    throw new CodedError('OPTION_INVALID', `${path} is no JSON: ${messageOf(cause)}`, { cause });
  }
  if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content;
  throw invalid(path, content, 'an object with units, as { "units": [{ "file": "unit.js" }] }');
}
