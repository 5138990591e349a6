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

type AnyTable = Readonly<Record<string, (name: string, value: unknown, given: object) => unknown>>;

const namesOf = new WeakMap<object, ReadonlySet<string>>();

/** Reads `options`, called `what` in errors. Throws `OPTION_INVALID`, also for a name without a reader. */
export function readOptions<Options extends object, Table extends Readers<Options>>(
  what: string,
  options: Options,
  table: Table,
): Read<Table>;
export function readOptions(what: string, options: object, table: AnyTable): object {
  let names = namesOf.get(table);
  if (names === undefined) {
    names = new Set(Object.keys(table));
    namesOf.set(table, names);
  }
  const given: Readonly<Record<string, unknown>> = {
    __proto__: null,
    ...ownOptions(what, options, names),
  };
  // As entries: an assignment would call a setter that the program has put on Object.prototype.
  return Object.fromEntries(
    Object.entries(table).map(([name, reader]) => [name, reader(name, given[name], given)]),
  );
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
