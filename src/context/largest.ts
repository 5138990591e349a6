// The captured variable that a function sends most of, for a warning.

import type { Slot } from './describe.js';

/** `undefined`: there is none, or it travels only with its function. */
export function largestOf(
  read: () => readonly Slot[],
  sizeOf: (value: unknown) => number,
): string | undefined {
  let [largest, mostBytes]: [string | undefined, number] = [undefined, 0];
  try {
    for (const { name, value } of read()) {
      const bytes = sizeOf(value);
      if (bytes > mostBytes) [largest, mostBytes] = [name, bytes];
    }
  } catch {
    return undefined;
  }
  return largest;
}
