// Loops that end with their test.

import type { TestContext } from 'node:test';
import { nativeBinding } from '../../src/native.js';
import { Loops, type LoopsOptions } from '../../src/public.js';

export const skip = nativeBinding() === undefined && 'needs the native core';

/** Two processes with one loop each, unless asked for others. */
export function startLoops(t: TestContext, options: LoopsOptions = {}): Loops {
  const loops = new Loops({ processes: 2, loops: 1, ...options });
  t.after(() => loops.close());
  return loops;
}

export function appUrl(name: string): URL {
  return new URL(`./apps/${name}.js`, import.meta.url);
}
