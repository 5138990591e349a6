// Four ways to keep a set of numbers that processes share, behind the same five functions.
import { tlist, tsortedMap } from 'manycore/stm';
import * as list from './list.js';
import * as tree from './tree.js';

export const structures = {
  list: { says: 'linked list, all reads of the way count', ...list },
  'elastic-list': {
    says: 'tlist(): only the last read of the way counts',
    make: () => tlist(),
    has: (set, key) => set.has(key),
    add: (set, key) => set.add(key),
    remove: (set, key) => set.delete(key),
    keys: (set) => set.keys(),
  },
  tree: { says: 'red-black tree', ...tree },
  map: {
    says: 'tsortedMap()',
    make: () => tsortedMap(),
    has: (set, key) => set.has(key),
    add: (set, key) => !set.has(key) && set.set(key, true) !== undefined,
    remove: (set, key) => set.delete(key),
    keys: (set) => set.keys(),
  },
};

/** A set of `count` numbers below twice that, every other one. */
export function fill(name, count) {
  const { make, add } = structures[name];
  const set = make();
  // In an order that is neither sorted nor random: a list is filled from its end.
  for (let at = count - 1; at >= 0; at -= 1) add(set, 2 * at);
  return set;
}

/**
 * Half of the operations search a number, a quarter adds one, a quarter removes one: numbers are drawn below twice
 * `count`. Returns how many ran in `windowMs`.
 */
export function work(name, set, count, { warmMs, windowMs }) {
  const { has, add, remove } = structures[name];
  const once = () => {
    const key = Math.floor(Math.random() * 2 * count);
    const what = Math.random();
    if (what < 0.5) has(set, key);
    else if (what < 0.75) add(set, key);
    else remove(set, key);
  };
  const repeat = (forMs) => {
    let turns = 0;
    for (const end = performance.now() + forMs; performance.now() < end; turns += 1) once();
    return turns;
  };
  repeat(warmMs);
  return repeat(windowMs);
}
