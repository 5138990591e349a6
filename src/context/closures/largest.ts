// The captured variable that takes most bytes in a snapshot, and the place of its function, for a warning.

import { functionName } from '../../lib/index.js';
import { shownFunction } from '../toolchains/shown.js';
import type { AnyFunction } from '../types.js';
import type { Described } from './describe.js';

export interface Largest {
  /** "function name (file.ts:3:1)" */
  readonly name: string;
  /** `undefined`: there is none, or it travels only with its function. */
  readonly variable: string | undefined;
}

/** `read` may throw: the warning then has no place. */
export function largestOf(
  fn: AnyFunction,
  read: () => Described,
  sizeOf: (value: unknown) => number,
): Largest {
  const own = functionName(fn);
  let name = own === '' ? 'anonymous function' : `function ${own}`;
  let [variable, maxBytes]: [string | undefined, number] = [undefined, 0];
  try {
    const described = read();
    name = shownFunction(fn, described);
    for (const slot of described.slots) {
      const bytes = sizeOf(slot.value);
      if (bytes > maxBytes) [variable, maxBytes] = [slot.name, bytes];
    }
  } catch {
    return { name, variable: undefined };
  }
  return { name, variable };
}
