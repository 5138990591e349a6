// Even placement: on the loop with the fewest instances of the deployment, among those the one with the fewest of
// all. Pure. Not here: the loops that a deployment may use (director.ts).

import type { Placed } from './deployment.js';
import type { LoopEntry } from './loop-entry.js';

/** Larger than the number of instances on any loop. */
const rankFactor = 2 ** 26;

/** Chooses one of `loops`, of which there is at least one, for each of `count` more instances. */
export function spread(
  count: number,
  loops: readonly LoopEntry[],
  placed: { readonly own: readonly Placed[]; readonly all: readonly Placed[] },
): LoopEntry[] {
  const all = countsOf(placed.all);
  const own = countsOf(placed.own);
  return Array.from({ length: count }, () => {
    const rank = ({ loop }: LoopEntry): number =>
      (own.get(loop) ?? 0) * rankFactor + (all.get(loop) ?? 0);
    const best = loops.reduce((a, b) => (rank(b) < rank(a) ? b : a));
    own.set(best.loop, (own.get(best.loop) ?? 0) + 1);
    all.set(best.loop, (all.get(best.loop) ?? 0) + 1);
    return best;
  });
}

function countsOf(placed: readonly Placed[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { loop } of placed) {
    if (loop !== undefined) counts.set(loop, (counts.get(loop) ?? 0) + 1);
  }
  return counts;
}
