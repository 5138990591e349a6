// Decides how many items go to a worker at a time. Pure.
//
// Each chunk costs a message both ways, so tiny items travel together: as many as take `minTargetMs`. A
// chunk delays its first result until its last item, so near the end of a known input chunks shrink: each
// takes at most its share of the rest, halved, and no worker is last alone (guided self-scheduling,
// Polychronopoulos and Kuck 1987). Item times are measured from chunk to chunk, and a wrong guess costs no
// more than the chunk's budget (worker/inside/chunk.ts).
// Figures: bench/cases/map-skewed.js. Not here: sending (map.ts), what a chunk is made of (source.ts).

/** Measured cost of a map's items so far. */
export interface ItemCost {
  /** Mean run time in the worker, in ms; `undefined` before the first answer. */
  readonly runMs: number | undefined;
  /** Mean run time in a fast chunk: where items differ much, most are far below the mean of all. */
  readonly fastMs: number;
  /** Time in this thread to write one more item into a frame, in ms. */
  readonly sendMs: number;
  /** Fixed time to send a chunk, in ms: the minimum over all chunks. */
  readonly frameMs: number;
  /** Size of the largest chunk. */
  readonly maxItems: number;
  /** Sums behind the two means: each chunk counts less with every new one. */
  readonly ran: CostSum;
  readonly sent: CostSum;
}

interface CostSum {
  readonly ms: number;
  readonly items: number;
}

export interface ChunkLimits {
  readonly workers: number;
  /** Target run time of a chunk, in ms. */
  readonly targetMs: number;
  /** Items that are still to go; `undefined`: unknown. */
  readonly remainingItems: number | undefined;
}

/** Minimum ratio of run time to send time; below it, mapping inline would be cheaper. */
const worthSending = 1.5;
/** Chunks of fewer items give no reliable cost of one item. */
const significantItems = 64;

/** True: this thread spends more on sending an item than on mapping it. */
export function isCheaperHere({ runMs, sendMs, maxItems }: ItemCost): boolean {
  return runMs !== undefined && maxItems >= significantItems && runMs < sendMs * worthSending;
}

const nothing: CostSum = Object.freeze({ ms: 0, items: 0 });

export const unknownCost: ItemCost = Object.freeze({
  runMs: undefined,
  fastMs: 0,
  sendMs: 0,
  frameMs: Infinity,
  maxItems: 0,
  ran: nothing,
  sent: nothing,
});

/**
 * Target run time of a chunk. Each chunk costs this thread the same, however long it is: some 0.3 ms after
 * a sleep, because its caches are cold, on cores that belong to the workers (bench/cases/scaling.js).
 * Another chunk lies ahead of it, so this thread may be late with the next by the same time.
 */
const minTargetMs = 20;
/** Maximum target in a long map that has the workers to itself (bench/cases/map-second.js). */
const maxTargetMs = 50;
/** Number of chunks that each worker should still get from the rest with a target above the minimum. */
const longChunksPerWorker = 8;
/** Minimum target for each worker: with many workers this thread would be late with the next chunk. */
const targetMsPerWorker = 0.2;
/** Minimum run time of a chunk near the end: the message costs as much. */
const minChunkMs = 0.2;
/** Maximum time of this thread to write a chunk: its event loop waits. */
const maxSendMs = 1;
/** A first guess may be far off, so chunks grow by this factor at a time. */
const growth = 4;
/** Number of chunks that each worker should still get from the rest. */
const sharesPerWorker = 2;
/** A chunk whose items take longer than expected returns the rest after this many targets. */
const budgetTargets = 1.5;
/** Maximum share of a chunk's time for sending items that may come back unmapped. */
const spareShare = 0.1;

/**
 * Returns the target run time of a chunk, in ms. `restMs`: run time of all items that are left, where nobody
 * else waits for a worker or a result; then long maps have longer chunks.
 */
export function chunkTargetMs(workers: number, restMs = 0): number {
  const longMs = Math.min(maxTargetMs, restMs / (workers * longChunksPerWorker));
  return Math.max(minTargetMs, workers * targetMsPerWorker, longMs);
}

/** Returns the time after which a chunk returns the items it has not begun, in ms. */
export function chunkBudgetMs(targetMs: number): number {
  return budgetTargets * targetMs;
}

/** Returns the number of items of the next chunk: at least 1, at most the rest. */
export function chunkItems(
  cost: ItemCost,
  { workers, targetMs, remainingItems }: ChunkLimits,
): number {
  const { runMs, sendMs, maxItems } = cost;
  if (runMs === undefined) return 1;
  const wanted = Math.min(
    itemsFor(cost, targetMs),
    maxSendMs / sendMs,
    growth * Math.max(1, maxItems),
  );
  if (remainingItems === undefined) return Math.max(1, Math.floor(wanted));
  const share = Math.ceil(remainingItems / (workers * sharesPerWorker));
  const least = minChunkMs / runMs;
  const items = Math.floor(Math.min(wanted, Math.max(share, least)));
  return Math.max(1, Math.min(remainingItems, items));
}

/**
 * Returns enough items for a worker even if they are all fast; those it does not reach come back. Where
 * sending is expensive, only as many as it needs on average.
 */
function itemsFor({ runMs = 0, fastMs, sendMs }: ItemCost, targetMs: number): number {
  const affordable = (targetMs * spareShare) / sendMs;
  return Math.max(targetMs / runMs, Math.min(targetMs / fastMs, affordable));
}

/** Updates the cost by a chunk of `items`. `sentMs` is `undefined` where nothing was sent. */
export function learnCost(
  cost: ItemCost,
  items: number,
  ranMs: number,
  sentMs: number | undefined,
): ItemCost {
  const ran = add(cost.ran, items, ranMs);
  const frameMs = Math.min(cost.frameMs, sentMs ?? Infinity);
  const sent = sentMs === undefined ? cost.sent : add(cost.sent, items, sentMs - frameMs);
  const meanMs = Math.max(minItemMs, ranMs / items);
  return {
    runMs: Math.max(minItemMs, ran.ms / ran.items),
    fastMs: cost.runMs === undefined ? meanMs : Math.min(meanMs, cost.fastMs * slowing),
    sendMs: sent.items === 0 ? 0 : sent.ms / sent.items,
    frameMs,
    maxItems: Math.max(cost.maxItems, items),
    ran,
    sent,
  };
}

/** Factor by which the time of the fastest chunk decays. */
const slowing = 1.2;
/** Weight of the older chunks when a new one comes. */
const memory = 0.7;
/** Lower bound for an item: the clock cannot measure less. */
const minItemMs = 1e-6;

function add(sum: CostSum, items: number, ms: number): CostSum {
  return { ms: memory * sum.ms + ms, items: memory * sum.items + items };
}
