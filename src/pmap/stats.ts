// Result of `stats()` of a map.

import type { ChannelKind } from '../channels/index.js';

export interface MapStats {
  /** Channel to the place where the items are mapped. */
  readonly channel: ChannelKind | 'inline';
  /** Reason for that channel. */
  readonly why: string;
  /** Chunks that run at a time. */
  readonly workers: number;
  readonly doneItems: number;
  /** `undefined` for iterables, which have no length. */
  readonly totalItems: number | undefined;
  /** Number of answered chunks. */
  readonly chunks: number;
  /** Run time of an item, smoothed, in ms; `undefined` before the first answer. */
  readonly itemMs: number | undefined;
  /** Time of this thread to send an item, smoothed, in ms. */
  readonly sendMs: number;
  /** Sum of the run times of all chunks, in ms. */
  readonly ranMs: number;
  /** Time from the call to now, or to the end of the map, in ms. */
  readonly elapsedMs: number;
}
