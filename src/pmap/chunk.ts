// How many items go to a worker at a time. Pure.
//
// Each chunk costs a message both ways, so tiny items travel in crowds: as many as take `minTargetMs`.
// A chunk is as long as its longest wait, so near the end of a known input chunks shrink: each takes no
// more than its share of what is left, halved, and no worker is last alone (guided self-scheduling,
// Polychronopoulos and Kuck 1987). How long items take is measured from chunk to chunk, and a guess
// that was wrong costs no more than the chunk's budget (worker/chunk.ts).
// Figures: bench/cases/map-skewed.js. Not here: sending (map.ts), what a chunk is made of (source.ts).

/** What was learnt of a map's items so far. */
export interface ItemCost {
  /** In the worker, the mean in ms; `undefined` before the first answer. */
  readonly runMs: number | undefined;
  /** The mean of a fast chunk: where items differ much, most are far below the mean of all. */
  readonly fastMs: number;
  /** In this thread, to write one more into a frame, in ms. */
  readonly sendMs: number;
  /** What sending a chunk takes whatever is in it, in ms: the least that any took. */
  readonly frameMs: number;
  /** The size of the largest chunk. */
  readonly maxItems: number;
  /** What the two means are made of: sums over the chunks, where each counts less with every new one. */
  readonly ran: CostSum;
  readonly sent: CostSum;
}

interface CostSum {
  readonly ms: number;
  readonly items: number;
}

export interface ChunkLimits {
  readonly workers: number;
  /** How long a chunk should take, in ms. */
  readonly targetMs: number;
  /** Items that are still to go; `undefined`: nobody knows. */
  readonly remainingItems: number | undefined;
}

/** Less than so many times what an item costs to be sent, and mapping it inline would be cheaper. */
const worthSending = 1.5;
/** Chunks of fewer items say little about what one of them costs. */
const significantItems = 64;

/** Whether this thread spends more on sending an item than on mapping it. */
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
 * A chunk takes about so long in its worker. Each costs this thread the same, however long it is: some
 * 0.3 ms where it has slept meanwhile, because nothing of it is in a cache any more, and the cores on
 * which that runs are the workers' (bench/cases/scaling.js). Another chunk lies ahead of it, so this
 * thread may be so late with the next.
 */
const minTargetMs = 20;
/** With many workers this thread would be late with the next chunk: it gets so long for each of them. */
const targetMsPerWorker = 0.2;
/** No shorter than this near the end: the message costs as much. */
const minChunkMs = 0.2;
/** This thread writes no longer at a time: its event loop waits. */
const maxSendMs = 1;
/** A first guess may be far off, so chunks grow by this at a time. */
const growth = 4;
/** How many chunks each worker should still get of what is left. */
const sharesPerWorker = 2;
/** A chunk whose items take longer than expected gives back the rest after so many targets. */
const budgetTargets = 1.5;
/** Items that may come back unmapped are sent for no more than this part of a chunk's time. */
const spareShare = 0.1;

/** How long a chunk should take, in ms. */
export function chunkTargetMs(workers: number): number {
  return Math.max(minTargetMs, workers * targetMsPerWorker);
}

/** When a chunk that should take so long gives back what it has not begun, in ms. */
export function chunkBudgetMs(targetMs: number): number {
  return budgetTargets * targetMs;
}

/** How many items the next chunk should have: at least 1, at most what remains. */
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
 * So many that a worker has enough to do even if they are all fast; what it does not get to comes back.
 * But where sending costs, only as many as it needs on average.
 */
function itemsFor({ runMs = 0, fastMs, sendMs }: ItemCost, targetMs: number): number {
  const affordable = (targetMs * spareShare) / sendMs;
  return Math.max(targetMs / runMs, Math.min(targetMs / fastMs, affordable));
}

/** Learns from a chunk of `items`. `sentMs` is `undefined` where nothing was sent. */
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

/** How fast the fastest chunk is forgotten. */
const slowing = 1.2;
/** What an older chunk still counts when a new one comes. */
const memory = 0.7;
/** No item takes less: the clock does not see it. */
const minItemMs = 1e-6;

function add(sum: CostSum, items: number, ms: number): CostSum {
  return { ms: memory * sum.ms + ms, items: memory * sum.items + items };
}
