// How many items go to a host at a time. Pure.
//
// Each chunk costs a message both ways, so tiny items travel in crowds: as many as take `targetMs`.
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
  /** The size of the last chunk. */
  readonly lastItems: number;
}

export interface ChunkLimits {
  readonly hosts: number;
  /** Items that are still to go; `undefined`: nobody knows. */
  readonly remainingItems: number | undefined;
}

export const unknownCost: ItemCost = Object.freeze({ runMs: undefined, sendMs: 0, lastItems: 0 });

/** A chunk takes about so long in its host. */
const targetMs = 2;
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
export function chunkTargetMs(hosts: number): number {
  return Math.max(targetMs, hosts * targetMsPerHost);
}

/** When a chunk gives back what it has not begun, in ms. */
export function chunkBudgetMs(hosts: number): number {
  return budgetTargets * chunkTargetMs(hosts);
}

/** How many items the next chunk should have: at least 1, at most what remains. */
export function chunkItems(cost: ItemCost, { hosts, remainingItems }: ChunkLimits): number {
  const { runMs, sendMs, lastItems } = cost;
  if (runMs === undefined) return 1;
  const byTime = chunkTargetMs(hosts) / runMs;
  const bySending = mostSendMs / sendMs;
  const wanted = Math.min(byTime, bySending, growth * Math.max(1, lastItems));
  if (remainingItems === undefined) return Math.max(1, Math.floor(wanted));
  const share = Math.ceil(remainingItems / (hosts * sharesPerHost));
  const least = leastMs / runMs;
  return Math.max(
    1,
    Math.min(remainingItems, Math.floor(Math.min(wanted, Math.max(share, least)))),
  );
}

/** Learns from a chunk of `items`, which took so long. Longer ones count for more, to be noticed early. */
export function learnCost(cost: ItemCost, items: number, ranMs: number, sentMs: number): ItemCost {
  const runMs = Math.max(ranMs / items, shortestMs);
  const known = cost.runMs;
  const weight = known === undefined ? 1 : runMs > known ? 0.5 : 0.25;
  const sendMs = sentMs / items;
  return {
    runMs: known === undefined ? runMs : known + (runMs - known) * weight,
    sendMs: cost.sendMs === 0 ? sendMs : cost.sendMs + (sendMs - cost.sendMs) * 0.25,
    lastItems: Math.max(items, 1),
  };
}

/** No item takes less: the clock does not see it. */
const shortestMs = 1e-6;
