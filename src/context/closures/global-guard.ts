// Globals that no text names: computed keys, and lists of all globals. The globals that such code would reach
// at home do not exist in the worker. So the text first calls a function here, which the worker has by name:
// it passes every key except globals of the caller, and refuses those. A function that came back home is not
// checked.
// Not here: which keys are computed (global-keys.ts), globals that travel (global-reads.ts).

import { performance } from 'node:perf_hooks';
import { threadId } from 'node:worker_threads';
import { CodedError } from '../../errors.js';
import { descriptorOf } from '../../lib/index.js';
import type { Edit } from '../text/cells.js';
import { shownMember } from '../text/shown-keys.js';

/** The contents of a list of the global object. */
export type Listing =
  /** Nothing: the global object gets the members of another. */
  | 'source'
  /** Texts that are enumerable, as in `for (… in …)`. */
  | 'texts'
  /** All that is enumerable, as in `{ ...globalThis }`. */
  | 'members'
  /** Everything. */
  | 'all';

/** A piece of the text. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Getters of Node 26, which every process has. */
const everywhere = new Set<unknown>(['localStorage', 'sessionStorage']);

/** Distinguishes functions that came back home from those of other processes. */
const home = [performance.timeOrigin, process.pid, threadId].join();

/** The value in the slot of the guard: `[home, key, isEnumerable, key, …]`. */
export function guarded(keys: readonly (string | symbol)[], global: object): unknown[] {
  const isShown = (key: string | symbol): boolean => descriptorOf(global, key)?.enumerable === true;
  return [home, ...keys.flatMap((key) => [key, isShown(key)])];
}

/** The names of the two slots. */
export interface GuardNames {
  readonly guard: string;
  readonly keys: string;
}

/** Lets a computed key pass, unless it is a global of the caller. */
export function keyEdits(range: Range, { guard, keys }: GuardNames): Edit[] {
  return around(range, `${guard}(${keys},'key',(`, '))');
}

/** The same for a list of the global object without `except`, which are expressions. */
export function listEdits(
  range: Range,
  { guard, keys }: GuardNames,
  what: Listing,
  except: readonly string[],
): Edit[] {
  return around(range, `${guard}(${keys},'${what}',(`, `),[${except.join()}])`);
}

function around({ start, end }: Range, before: string, after: string): Edit[] {
  return [
    { start, end: start, text: before },
    { start: end, end, text: after },
  ];
}

/** Function that changed texts call: returns `value`, or throws the refusal of a global of the caller. */
export function guardGlobals(
  list: readonly unknown[],
  what: 'key' | Listing,
  value: unknown,
  except: readonly unknown[] = [],
): unknown {
  if (list[0] === home) return value;
  const keys = keysOf(list, what);
  if (what === 'key') {
    const key = toKey(value);
    if (keys.includes(key)) throw refused(key);
    return key;
  }
  if (what === 'source') {
    const given = typeof value === 'object' && value !== null ? Reflect.ownKeys(value) : [];
    for (const key of given) if (keys.includes(key)) throw refused(key);
    return value;
  }
  const listed = keys.filter((key) => !except.includes(key) && !everywhere.has(key));
  if (listed.length > 0) throw refusedList(listed);
  return value;
}

function keysOf(list: readonly unknown[], what: string): (string | symbol)[] {
  const keys: (string | symbol)[] = [];
  for (let at = 1; at < list.length; at += 2) {
    const key = list[at];
    if (typeof key !== 'string' && (typeof key !== 'symbol' || what === 'texts')) continue;
    const isHidden = list[at + 1] !== true;
    if (!isHidden || (what !== 'texts' && what !== 'members')) keys.push(key);
  }
  return keys;
}

/** Converts a value to a property key, as the language does, once. */
function toKey(value: unknown): string | symbol {
  if (typeof value === 'symbol') return value;
  if (typeof value !== 'object' && typeof value !== 'function') return String(value);
  const [key = ''] = Reflect.ownKeys(Object.fromEntries([[value, 0]]));
  return key;
}

function refused(key: string | symbol): CodedError {
  const shown = shownMember(key);
  return new CodedError(
    'TRANSFER_UNSUPPORTED',
    `${shown} of the program cannot travel: its key was computed in the worker, and only globals that a ` +
      `function names go along: write ${shown} there, or pass the value as an argument\n  path: ${shown}`,
  );
}

const shownKeys = 5;

function refusedList(keys: readonly (string | symbol)[]): CodedError {
  const more = keys.length > shownKeys ? ', …' : '';
  const shown = keys.slice(0, shownKeys).map(String).join(', ') + more;
  return new CodedError(
    'TRANSFER_UNSUPPORTED',
    `the members of the global object cannot travel: the program has globals of its own (${shown}), and ` +
      'only those that a function names go along: name them there, or pass their values as arguments\n' +
      '  path: globalThis',
  );
}
