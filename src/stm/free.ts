// The end of variables and collections, whose memory comes back then.

import { atomically } from './atomically.js';
import type { TCounter } from './collections/counter.js';
import type { TList } from './collections/list.js';
import type { TQueue } from './collections/queue.js';
import type { TMap } from './collections/sorted-map.js';
import { freeIn, insideOf, type TVar } from './tvar.js';

/** Everything that transactions share. */
export type Shared =
  | TVar<unknown>
  | TMap<number | string, unknown>
  | TList<number | string>
  | TQueue<unknown>
  | TCounter;

/**
 * Ends a variable or a collection and frees its memory, in a transaction or outside: later uses of it throw
 * `STM_GONE`. Throws `STM_GONE`, `OPTION_INVALID`.
 */
export function free(shared: Shared): void {
  atomically(() => freeIn(insideOf('free()'), shared));
}
