// `pmap` without workers: the same two functions as plain loops in this process. sequential.js uses them
// and parallel.js uses those of manycore; nothing else differs.

/** `fn(item, index)` of every item, in order. */
export async function pmap(items, fn) {
  return items.map((item, index) => fn(item, index));
}

/** `fn(a, b, i, j)` of every two items with i < j, in the order (0, 1), (0, 2), …, (1, 2), … */
pmap.pairs = async (items, fn) => {
  return items.flatMap((a, i) => items.slice(i + 1).map((b, k) => fn(a, b, i, i + 1 + k)));
};
