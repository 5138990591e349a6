// Cells that read the present value of an export of a module (live-imports.ts).

import type { ImportSource } from '../values/sentinels.js';

/** An export of a module. */
export interface LiveSource extends ImportSource {
  readonly name: string;
}

const sources = new WeakMap<object, LiveSource>();

/** `cell[0]` reads the present value of the export. */
export function liveCell(source: LiveSource, read: () => unknown): object {
  const cell = {
    get 0(): unknown {
      return read();
    },
  };
  sources.set(cell, source);
  return cell;
}

export function isLiveCell(value: unknown): value is object {
  return typeof value === 'object' && value !== null && sources.has(value);
}

export function liveSourceOf(value: unknown): LiveSource | undefined {
  return typeof value === 'object' && value !== null ? sources.get(value) : undefined;
}
