// Options of a map: the types, the defaults, and the one function that checks them.

import {
  abortSignal,
  booleanOption,
  functionOption,
  hintAt,
  integerOption,
  invalid,
  numberOption,
  oneOf,
  type Read,
  type Readers,
  readOptions,
} from '../lib/index.js';
import { type Pool, poolOption } from '../pool/index.js';

/** An array over a buffer: its items reach workers without being copied when the buffer is `shared()`. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

export interface MapProgress {
  /** Number of mapped items. */
  readonly doneItems: number;
  /** Number of all items, if the input has a length; not for iterables. */
  readonly totalItems: number | undefined;
}

/** Way of the items to their mapper; `inline`: one by one in this process, on this core. */
export type MapChannel = 'auto' | 'shm' | 'socket' | 'memory' | 'inline';

export interface MapOptions {
  /** The workers to use. Default: the pool of `run`, or for a `channel` one with that channel. */
  readonly pool?: Pool | undefined;
  /** Default `auto`: see `stats().why` of the map. */
  readonly channel?: MapChannel | undefined;
  /** Results in the order of the items (default), or first come, first served. */
  readonly ordered?: boolean | undefined;
  /**
   * Items that travel together, fewer where `lead` allows no more. `auto` (default): by their run time. A
   * chunk that a worker has begun is mapped to its end, unless its mapper is async.
   */
  readonly chunk?: number | 'auto' | undefined;
  /**
   * Maximum number of items read ahead of the results that were taken. `auto` (default): enough to keep the
   * workers busy.
   */
  readonly lead?: number | 'auto' | undefined;
  /** Ends the map: it rejects with `ABORTED`, the input is closed, the workers are free. */
  readonly signal?: AbortSignal | undefined;
  /** An outcome for each item, as of `Promise.allSettled`, instead of ending at the first failure. */
  readonly settled?: boolean | undefined;
  /**
   * Number of times that the items of a chunk are mapped again when their worker ends under them. Default
   * 0. A map in place copies all items for it.
   */
  readonly retry?: number | undefined;
  /** Higher first, among all that the pool has to do. Default 0. */
  readonly priority?: number | undefined;
  /** Called repeatedly while the map runs, and once at its end. */
  readonly onProgress?: ((progress: MapProgress) => void) | undefined;
}

/** Options of a map over a typed array. */
export interface FillOptions extends MapOptions {
  /**
   * Destination of the results: as long as the items, and either the items themselves (to map in place) or
   * memory apart from theirs, else `OPTION_INVALID`. A failed map leaves it partly written. Default: a new
   * array of their class, in shared memory.
   */
  readonly into?: TypedArray | undefined;
}

const maxItems = 2 ** 31 - 1;

const mapReaders = {
  pool: poolOption,
  channel: (name, channel: MapChannel = 'auto', { pool }) => {
    oneOf(name, channel, ['auto', 'shm', 'socket', 'memory', 'inline']);
    if (pool === undefined || channel === 'auto' || channel === 'inline') return channel;
    throw invalid(name, channel, '"auto" or "inline" beside pool, which has its own');
  },
  ordered: booleanOption(true),
  /** `undefined`: by run time. */
  chunk: itemCount,
  /** `undefined`: enough to keep the workers busy. */
  lead: itemCount,
  signal: (_, signal) => abortSignal(signal),
  settled: booleanOption(false),
  retry: integerOption(0, 0, Number.MAX_SAFE_INTEGER),
  priority: numberOption(0, -Infinity),
  onProgress: functionOption<(progress: MapProgress) => void>,
  into: (_, into) => into,
} satisfies Readers<FillOptions>;
hintAt('map', Object.keys(mapReaders));

export interface FilledMapOptions extends Read<typeof mapReaders> {}

/** Checks the user's options and fills in the defaults. Throws `OPTION_INVALID`. */
export function fillMapOptions(options: FillOptions = {}, isOverArray = false): FilledMapOptions {
  const filled = readOptions('the options of a map', options, mapReaders);
  if (filled.into !== undefined && !isOverArray) {
    throw invalid('into', filled.into, 'left out: only pmap over a typed array has it');
  }
  return filled;
}

/** `undefined` for `auto`. */
function itemCount(name: string, value: number | 'auto' = 'auto'): number | undefined {
  if (value === 'auto') return undefined;
  if (Number.isInteger(value) && value >= 1 && value <= maxItems) return value;
  throw invalid(name, value, `"auto" or an integer from 1 to ${maxItems}`);
}
