// What `stats()` of a map returns.

import type { ChannelKind } from '../channels/index.js';

export interface MapStats {
  /** Where the items are mapped. */
  readonly channel: ChannelKind | 'inline';
  /** Why there. */
  readonly why: string;
  /** Chunks that run at a time. */
  readonly workers: number;
  readonly doneItems: number;
  /** `undefined` for iterables, which do not tell. */
  readonly totalItems: number | undefined;
  /** Chunks that were answered. */
  readonly chunks: number;
  /** How long an item takes where it is mapped, smoothed, in ms; `undefined` before the first answer. */
  readonly itemMs: number | undefined;
  /** How long an item takes to be sent, in this thread, smoothed, in ms. */
  readonly sendMs: number;
  /** Sum over all chunks of how long they ran, in ms. */
  readonly ranMs: number;
  /** From the call to now, or to the end of the map, in ms. */
  readonly elapsedMs: number;
}
