// Reads options by a table with one reader for each: the names that there may be, the checks, the defaults and
// the types of what is read all come from the table.

import { boolean, checkFunction, integer, number, oneOf, ownOptions } from './check.js';

/**
 * A reader for each option: returns its value, or its default when `value` is `undefined`; throws
 * `OPTION_INVALID`. `given` has all options, for those that exclude each other.
 */
export type Readers<Options> = {
  readonly [Name in keyof Options]-?: (
    name: string,
    value: Options[Name],
    given: Options,
  ) => unknown;
};

/** The options as a table of readers returns them. */
export type Read<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends (...args: never[]) => infer Value
    ? Value
    : never;
};

type AnyReader = (name: string, value: unknown, given: object) => unknown;
type AnyTable = Readonly<Record<string, AnyReader>>;

/** Kept for each table, because many calls are read by the same one. */
interface Kept {
  readonly names: ReadonlySet<string>;
  readonly entries: readonly { readonly name: string; readonly reader: AnyReader }[];
  /** Has a property for each option. */
  readonly blank: Readonly<Record<string, unknown>>;
}

const keptOf = new WeakMap<AnyTable, Kept>();

function keep(table: AnyTable): Kept {
  const entries = Object.entries(table).map(([name, reader]) => ({ name, reader }));
  const kept = { names: new Set(Object.keys(table)), entries, blank: { ...table } };
  keptOf.set(table, kept);
  return kept;
}

/** Reads `options`, called `what` in errors. Throws `OPTION_INVALID`, also for a name without a reader. */
export function readOptions<Options extends object, Table extends Readers<Options>>(
  what: string,
  options: Options,
  table: Table,
): Read<Table>;
export function readOptions(
  what: string,
  options: Readonly<Record<string, unknown>>,
  table: AnyTable,
): object {
  const { names, entries, blank } = keptOf.get(table) ?? keep(table);
  const given = ownOptions(what, options, names);
  // A copy has all properties already: assignments call no setter that is on Object.prototype.
  const read: Record<string, unknown> = { ...blank };
  for (const { name, reader } of entries) read[name] = reader(name, given[name], given);
  return read;
}

/**
 * Reads `options` as `readOptions` does, but calls only the readers of given options and takes the rest from
 * `defaults`. A reader must therefore return its default for `undefined`, whatever else is given.
 */
export function readGiven<
  Options extends object,
  Table extends Readers<Options>,
  Defaults extends Read<Table>,
>(what: string, options: Options, table: Table, defaults: Defaults): Defaults;
export function readGiven(
  what: string,
  options: Readonly<Record<string, unknown>>,
  table: AnyTable,
  defaults: object,
): object {
  const { names } = keptOf.get(table) ?? keep(table);
  const given = ownOptions(what, options, names);
  // Assigns to a copy with all properties, as `readOptions`.
  const read: Record<string, unknown> = { ...defaults };
  for (const name of Object.keys(given)) read[name] = table[name]?.(name, given[name], given);
  return read;
}

export const booleanOption = (fallback: boolean) => (name: string, value?: boolean) =>
  boolean(name, value ?? fallback);

/** `min` and more. */
export const numberOption = (fallback: number, min: number) => (name: string, value?: number) =>
  number(name, value ?? fallback, min);

export const integerOption =
  (fallback: number, min: number, max: number) => (name: string, value?: number) =>
    integer(name, value ?? fallback, min, max);

/** One of `choices`; the first is the default. */
export const choiceOption =
  <const Choice extends string>(choices: readonly [Choice, ...Choice[]]) =>
  (name: string, value?: Choice) =>
    oneOf(name, value ?? choices[0], choices);

/** No default. */
export const functionOption = <Fn>(name: string, value: Fn | undefined): Fn | undefined =>
  value === undefined ? undefined : checkFunction(name, value);
