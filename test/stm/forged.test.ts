// Collections whose words a faulty process has changed: an error in whoever reads them, and no endless loop.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atomically, tlist, tmap, tsortedMap } from '../../src/stm/public.js';
import { sharedName, threadState, variableAt } from '../../src/stm/tvar.js';

const damaged = { code: 'SEGMENT_CORRUPT' };

/** Places in a leaf (leaf.ts). */
const [nextAt, nextHeader, high] = [1, 2, 4];

function nameOf(collection: object) {
  const name = sharedName(collection);
  assert.ok(name);
  return name;
}

for (const make of [tsortedMap<number, number>, tmap<number, number>]) {
  test(`a ${make.name} whose leaf leads to itself is an error in each method`, () => {
    const map = make();
    map.set(1, 1);
    const { at, header } = nameOf(map);
    const { words } = threadState().space;
    const base = words[at + 2] ?? 0;
    const keys = new Float64Array(words.buffer);
    words[base + nextAt] = at;
    words[base + nextHeader] = header;
    keys[(base + high) / 2] = -(2 ** 40); // before all keys, spread or not
    const calls = [
      () => map.get(5),
      () => map.has(5),
      () => map.set(5, 5),
      () => map.delete(5),
      () => map.size,
      () => map.entries(),
      () => map.clear(),
    ];
    for (const call of calls) assert.throws(call, damaged, String(call));
    if ('entries' in map && make === tsortedMap) {
      assert.throws(() => Reflect.apply(map.entries, map, [{ reverse: true }]), damaged);
    }
  });
}

test('a list that leads back is an error in each method', () => {
  const list = tlist<number>();
  list.add(1);
  const { at, header } = nameOf(list);
  const first = variableAt({ at, header });
  atomically(() => first.set({ key: 1, next: first }));
  const calls = [
    () => list.has(5),
    () => list.add(5),
    () => list.delete(5),
    () => list.keys(),
    () => [...list],
  ];
  for (const call of calls) assert.throws(call, damaged, String(call));
});
