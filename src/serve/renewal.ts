// New options for a server that runs, at its reload: its new processes get most of them. What was settled at the
// start (sockets, the size of the scoreboard, addresses of the supervisor itself) stays, and is reported.

import { isDeepStrictEqual } from 'node:util';
import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';
import type { Inherited } from '../worker/index.js';
import {
  type FilledServeOptions,
  fillServeOptions,
  type Range,
  rangeText,
  type ServeOptions,
  serveOptionNames,
} from './options.js';

/** Program, options and environment of a server that runs. */
export interface Running {
  /** Path of the program. */
  readonly path: string;
  readonly options: ServeOptions;
  readonly filled: FilledServeOptions;
  readonly inherited: Inherited;
}

/** Each entry is an option with its values, as `processes 2 → 4`. */
export interface Difference {
  /** For the new processes. */
  readonly changed: readonly string[];
  /** Not possible without an upgrade or a restart. */
  readonly kept: readonly string[];
}

/** Listeners of the starter: they stay. */
const listeners: ReadonlySet<string> = new Set(['onOutput', 'accessLog']);
const comparedNames = serveOptionNames.filter((name) => !listeners.has(name));
/** Options that the supervisor has used for good, beside those. */
const fixedNames: ReadonlySet<string> = new Set([
  ...['name', 'plan', 'maxProcesses', 'placement', 'sticky', 'serverNames', 'listenFds'],
  ...['user', 'group', 'rescue', 'control', 'status', 'health'],
]);
/** Options without a default of their own, compared as given. */
const givenNames: ReadonlySet<string> = new Set(['name', 'maxProcesses', 'user', 'group']);

/**
 * Returns what runs after a reload with `next`, and the difference. The server has `maxLoops` rows for loops of a
 * process. Throws `OPTION_INVALID`.
 */
export function renewed(
  running: Running,
  next: Omit<Running, 'filled'>,
  maxLoops: number,
): { running: Running; difference: Difference } {
  const wanted = { ...next, filled: fillServeOptions(next.options) };
  const kept = differences(running, wanted, (name) => fixedNames.has(name));
  const { maxProcesses } = running.filled;
  const { processes, loops } = wanted.filled;
  const options: ServeOptions = {
    ...next.options,
    ...fixedOf(running.options),
    maxProcesses,
    ...(processes.max > maxProcesses && { processes: running.filled.processes }),
    ...(loops.max > maxLoops && { loops: running.filled.loops }),
  };
  const filled = fillBeside(kept, options);
  const after: Running = {
    ...next,
    options: { ...options, maxProcesses: running.options.maxProcesses },
    filled,
  };
  if (processes.max > maxProcesses || loops.max > maxLoops) {
    kept.push(...differences(after, wanted, (name) => name === 'processes' || name === 'loops'));
  }
  const changed = differences(running, after, (name) => !fixedNames.has(name));
  if (running.path !== next.path) changed.unshift(change('app', running.path, next.path));
  changed.push(...inheritedDifferences(running.inherited, next.inherited));
  return { running: after, difference: { changed, kept } };
}

/** Options of the start that stay, also where nothing was given. */
function fixedOf(options: ServeOptions): ServeOptions {
  const names = [...fixedNames, ...listeners];
  return Object.fromEntries(names.map((name) => [name, Reflect.get(options, name)]));
}

/** Fills options of which some are kept: new ones may not go with them. Throws `OPTION_INVALID`. */
function fillBeside(kept: readonly string[], options: ServeOptions): FilledServeOptions {
  try {
    return fillServeOptions(options);
  } catch (cause) {
    const message = `${messageOf(cause)}; upgrade or restart the server for ${kept.join(', ')}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}

function differences(
  before: Omit<Running, 'inherited'>,
  after: Omit<Running, 'inherited'>,
  isMeant: (name: string) => boolean,
): string[] {
  return comparedNames.filter(isMeant).flatMap((name) => {
    const [old, now] = [valueOf(before, name), valueOf(after, name)];
    return isDeepStrictEqual(old, now) ? [] : [change(name, old, now)];
  });
}

function valueOf({ options, filled }: Omit<Running, 'inherited'>, name: string): unknown {
  const from: Readonly<Record<string, unknown>> = givenNames.has(name)
    ? { ...options }
    : { ...filled };
  return from[name];
}

/** Names of variables only: values may be secrets. */
function inheritedDifferences(before: Inherited, after: Inherited): string[] {
  const all = new Set([...Object.keys(before.env), ...Object.keys(after.env)]);
  const names = [...all].filter((name) => before.env[name] !== after.env[name]).sort();
  const variables = names.length === 0 ? [] : [`env ${names.join(' ')}`];
  if (isDeepStrictEqual(before.execArgv, after.execArgv)) return variables;
  return [...variables, change('nodeFlags', before.execArgv, after.execArgv)];
}

/** Formats a change of an option. */
export function change(name: string, before: unknown, after: unknown): string {
  return `${name} ${valueText(before)} → ${valueText(after)}`;
}

function valueText(value: unknown): string {
  if (value === undefined) return 'none';
  if (value === Infinity) return 'never';
  if (typeof value === 'string') return value;
  return isRange(value) ? String(rangeText(value)) : JSON.stringify(value);
}

function isRange(value: unknown): value is Range {
  return typeof value === 'object' && value !== null && 'min' in value && 'max' in value;
}
