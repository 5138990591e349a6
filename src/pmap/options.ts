// Options of a map: the types, the defaults, and the one function that checks them.

import {
  abortSignal,
  boolean,
  checkFunction,
  integer,
  invalid,
  number,
  oneOf,
  ownOptions,
} from '../lib/index.js';
import { Pool } from '../pool/index.js';

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

export interface FilledMapOptions {
  readonly pool: Pool | undefined;
  readonly channel: MapChannel;
  readonly ordered: boolean;
  /** `undefined`: by run time. */
  readonly chunkItems: number | undefined;
  /** `undefined`: enough to keep the workers busy. */
  readonly leadItems: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly settled: boolean;
  readonly retry: number;
  readonly priority: number;
  readonly onProgress: ((progress: MapProgress) => void) | undefined;
  readonly into: TypedArray | undefined;
}

const optionNames: ReadonlySet<string> = new Set([
  'pool',
  'channel',
  'ordered',
  'chunk',
  'lead',
  'signal',
  'settled',
  'retry',
  'priority',
  'onProgress',
  'into',
]);

const maxItems = 2 ** 31 - 1;

/** Checks the user's options and fills in the defaults. Throws `OPTION_INVALID`. */
export function fillMapOptions(options: FillOptions = {}, isOverArray = false): FilledMapOptions {
  const given = ownOptions('the options of a map', options, optionNames);
  const { pool, chunk = 'auto', lead = 'auto', onProgress, into } = given;
  if (pool !== undefined && !(pool instanceof Pool)) {
    throw invalid('pool', pool, 'a Pool that this copy of manycore made');
  }
  if (into !== undefined && !isOverArray) {
    throw invalid('into', into, 'left out: only pmap over a typed array has it');
  }
  const channels = ['auto', 'shm', 'socket', 'memory', 'inline'] as const;
  const channel = oneOf('channel', given.channel ?? 'auto', channels);
  if (pool !== undefined && channel !== 'auto' && channel !== 'inline') {
    throw invalid('channel', channel, '"auto" or "inline" beside pool, which has its own');
  }
  return {
    pool,
    channel,
    ordered: boolean('ordered', given.ordered ?? true),
    chunkItems: itemCount('chunk', chunk),
    leadItems: itemCount('lead', lead),
    signal: abortSignal(given.signal),
    settled: boolean('settled', given.settled ?? false),
    retry: integer('retry', given.retry ?? 0, 0, Number.MAX_SAFE_INTEGER),
    priority: number('priority', given.priority ?? 0, -Infinity),
    onProgress: onProgress === undefined ? undefined : checkFunction('onProgress', onProgress),
    into,
  };
}

/** `undefined` for `auto`. */
function itemCount(name: string, value: number | 'auto'): number | undefined {
  if (value === 'auto') return undefined;
  if (Number.isInteger(value) && value >= 1 && value <= maxItems) return value;
  throw invalid(name, value, `"auto" or an integer from 1 to ${maxItems}`);
}
