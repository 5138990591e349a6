// The load of the case `gc`: in a worker, for a time, with a live set that old collections must mark.
import allocation from '../scaling/workloads/allocation.js';

const sliceMs = 50;
/** Objects that stay alive: some 40 MiB. */
const keptReports = 300_000;

/** Runs in a worker: how many items were done in each slice of the window. */
export async function allocateFor({ warmMs, windowMs }) {
  const { items, map } = allocation.open();
  const kept = Array.from({ length: keptReports }, (_, at) => ({ at, text: `report ${at}` }));
  let next = 0;
  const one = () => {
    const made = map(items[next % items.length], next);
    next += 1;
    // One in eight stays for a while: what survives is copied, and moved to the old generation.
    if (next % 8 === 0) kept[next % keptReports] = { at: next, text: made };
  };
  for (const end = performance.now() + warmMs; performance.now() < end; ) one();
  const slices = new Array(Math.floor(windowMs / sliceMs)).fill(0);
  const began = performance.now();
  for (;;) {
    one();
    const slice = Math.floor((performance.now() - began) / sliceMs);
    if (slice >= slices.length) return slices;
    slices[slice] += 1;
  }
}

/** Returns figures of all workers: items per second, and the unevenness of each worker's rate, in percent. */
export function evenness(workers, windowMs) {
  const items = workers.flat().reduce((sum, each) => sum + each, 0);
  const uneven = workers.map((slices) => {
    const mean = slices.reduce((sum, each) => sum + each, 0) / slices.length;
    const variance = slices.reduce((sum, each) => sum + (each - mean) ** 2, 0) / slices.length;
    return (100 * Math.sqrt(variance)) / mean;
  });
  return {
    perSecond: (items * 1000) / windowMs,
    unevenness: uneven.reduce((sum, each) => sum + each, 0) / uneven.length,
  };
}
