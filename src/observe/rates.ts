// What the rows of a view are reckoned with, between two looks.

/** Counts per second since the look before; `undefined` where that one had nothing of it. */
export type Rate = (now: number, before: number | undefined) => number | undefined;

/** `elapsedMs`: from one look to the other; 0 where there was none. */
export function perSecond(
  now: number,
  before: number | undefined,
  elapsedMs: number,
): number | undefined {
  // Less than before: what counts has been started anew.
  if (before === undefined || elapsedMs <= 0 || now < before) return undefined;
  return ((now - before) * 1000) / elapsedMs;
}

/** What is known of a process by its number. */
export interface Processes {
  readonly cpuShareOf: (pid: number | undefined) => number | undefined;
  readonly rssBytesOf: (pid: number | undefined) => number | undefined;
}

/** The sum; `undefined` where nothing is known. */
export function total(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}

/** `undefined` where nothing is known. */
export function maxOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
