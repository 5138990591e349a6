// How many items go to a host at a time. Pure.
//
// Each chunk costs a message both ways, so tiny items travel in crowds: as many as take `shortTargetMs`.
// A chunk is as long as its longest wait, so near the end of a known input chunks shrink: each takes no
// more than its share of what is left, halved, and no host is last alone (guided self-scheduling,
// Polychronopoulos and Kuck 1987). How long items take is measured from chunk to chunk, and a guess
// that was wrong costs no more than the chunk's budget (host/chunk.ts).
// Figures: bench/cases/map.js. Not here: sending (map.ts), what a chunk is made of (source.ts).

/** What was learnt of a map's items so far. */
export interface ItemCost {
  /** In the host, in ms; `undefined` before the first answer. */
  readonly runMs: number | undefined;
  /** In this thread, to write them into a frame, in ms. */
  readonly sendMs: number;
  /** The size of the largest chunk. */
  readonly mostItems: number;
  /** What the two means are made of: sums over the chunks, where each counts less with every new one. */
  readonly ran: CostSum;
  readonly sent: CostSum;
}

interface CostSum {
  readonly ms: number;
  readonly items: number;
}

export interface ChunkLimits {
  readonly hosts: number;
  /** How long a chunk should take, in ms. */
  readonly targetMs: number;
  /** Items that are still to go; `undefined`: nobody knows. */
  readonly remainingItems: number | undefined;
}

/** Less than so many times what an item costs to be sent, and mapping it here is cheaper. */
const worthSending = 1.5;
/** Chunks of fewer items say little about what one of them costs. */
const tellingItems = 64;

/** Whether this thread spends more on sending an item than on mapping it. */
export function isCheaperHere({ runMs, sendMs, mostItems }: ItemCost): boolean {
  return runMs !== undefined && mostItems >= tellingItems && runMs < sendMs * worthSending;
}

const nothing: CostSum = Object.freeze({ ms: 0, items: 0 });

export const unknownCost: ItemCost = Object.freeze({
  runMs: undefined,
  sendMs: 0,
  mostItems: 0,
  ran: nothing,
  sent: nothing,
});

/** A chunk takes about so long in its host. */
const shortTargetMs = 2;
/** A chunk of a reduction: what comes back may be large, and has to be combined again. */
const foldTargetMs = 20;
/** With many hosts this thread would be late with the next chunk: it gets so long for each of them. */
const targetMsPerHost = 0.2;
/** No shorter than this near the end: the message costs as much. */
const leastMs = 0.2;
/** This thread writes no longer at a time: its event loop waits. */
const mostSendMs = 1;
/** A first guess may be far off, so chunks grow by this at a time. */
const growth = 4;
/** How many chunks each host should still get of what is left. */
const sharesPerHost = 2;
/** A chunk whose items take longer than expected gives back the rest after so many targets. */
const budgetTargets = 2;

/** How long a chunk should take, in ms. */
export function chunkTargetMs(hosts: number, isFold: boolean): number {
  return Math.max(isFold ? foldTargetMs : shortTargetMs, hosts * targetMsPerHost);
}

/** When a chunk that should take so long gives back what it has not begun, in ms. */
export function chunkBudgetMs(targetMs: number): number {
  return budgetTargets * targetMs;
}

/** How many items the next chunk should have: at least 1, at most what remains. */
export function chunkItems(
  cost: ItemCost,
  { hosts, targetMs, remainingItems }: ChunkLimits,
): number {
  const { runMs, sendMs, mostItems } = cost;
  if (runMs === undefined) return 1;
  const byTime = targetMs / runMs;
  const bySending = mostSendMs / sendMs;
  const wanted = Math.min(byTime, bySending, growth * Math.max(1, mostItems));
  if (remainingItems === undefined) return Math.max(1, Math.floor(wanted));
  const share = Math.ceil(remainingItems / (hosts * sharesPerHost));
  const least = leastMs / runMs;
  return Math.max(
    1,
    Math.min(remainingItems, Math.floor(Math.min(wanted, Math.max(share, least)))),
  );
}

/** Learns from a chunk of `items`. `sentMs` is `undefined` where nothing was sent. */
export function learnCost(
  cost: ItemCost,
  items: number,
  ranMs: number,
  sentMs: number | undefined,
): ItemCost {
  const ran = add(cost.ran, items, ranMs);
  // The message itself would make the items of a small chunk look dear to send.
  const isTelling = sentMs !== undefined && items >= cost.mostItems / 2;
  const sent = isTelling ? add(cost.sent, items, sentMs) : cost.sent;
  return {
    runMs: Math.max(shortestMs, ran.ms / ran.items),
    sendMs: sent.items === 0 ? 0 : sent.ms / sent.items,
    mostItems: Math.max(cost.mostItems, items),
    ran,
    sent,
  };
}

/** What an older chunk still counts when a new one comes. */
const memory = 0.7;
/** No item takes less: the clock does not see it. */
const shortestMs = 1e-6;

function add(sum: CostSum, items: number, ms: number): CostSum {
  return { ms: memory * sum.ms + ms, items: memory * sum.items + items };
}
