// The workloads of the scaling case, by name; a further one is a line in this table. Each module's default
// export has
//   says     description of one item, for people
//   open     (allocate) => { items, map, fill? }, or a promise of it
// `items` are the same in every process and at every run. `map(item, index)` is a plain function of 100 µs or
// more that any worker may call; its answer for an item never changes. The plain loop takes about half a
// second for all items. `allocate(sizeBytes)` returns the memory for typed arrays among the items: a view if
// the channel passes it best. `fill(items)` then writes the contents of those that this process maps.

import allocation from './allocation.js';
import bandwidth from './bandwidth.js';
import checker from './checker.js';
import fibonacci from './fibonacci.js';

/** The checker's programs must be fetched before it is opened. */
export const workloads = { fibonacci, checker, allocation, bandwidth };

/** `{ items, map }` of a workload, ready to be mapped; `isMine(item, index)` picks the items. */
export async function openWorkload(name, allocate, isMine = () => true) {
  const { items, map, fill } = await workloads[name].open(allocate);
  const mine = items.filter(isMine);
  fill?.(mine);
  return { items: mine, map };
}

/** Allocates memory of this process alone, in the form that workloads expect. */
export const allocateHere = (sizeBytes) => new Uint8Array(sizeBytes);
