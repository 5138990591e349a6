// A memory of 4 GiB: what lies behind the first 2 is as what lies before.

import { test } from 'node:test';
import { runWithWords } from './programs.js';

test('variables and collections live behind 2 GiB as before', async (t) => {
  await runWithWords(
    t,
    `
    memoryBytes = 2 ** 32;
    const words = openWords();
    assert.equal(words.length, 2 ** 30);
    words[place.heapTop] = 2 ** 29 + 2 ** 20;
    const keys = Array.from({ length: 300 }, (_, at) => 'key ' + at * 7);
    const values = [1, 2.5, 'a text of the leaf', 'x'.repeat(5000), [1, { a: 2n }], null, undefined];
    for (const make of [tmap, tsortedMap]) {
      const [map, plain] = [make(), new Map()];
      for (const [at, key] of keys.entries()) {
        map.set(key, values[at % values.length]);
        plain.set(key, values[at % values.length]);
      }
      for (const key of keys) assert.deepEqual(map.get(key), plain.get(key), key);
      for (const key of keys.slice(0, 100)) assert.equal(map.delete(key), plain.delete(key));
      assert.deepEqual(new Map(map.entries()), plain);
    }
    const variable = tvar({ from: 'behind' });
    assert.deepEqual(variable.peek(), { from: 'behind' });
    const [list, queue] = [tlist(), tqueue()];
    for (const key of keys) {
      list.add(key);
      atomically(() => queue.put(key));
    }
    assert.deepEqual([...list.keys()], keys.toSorted());
    for (const key of keys) assert.equal(atomically(() => queue.take()), key);
    const pool = new Pool({ size: 1 });
    assert.equal(await pool.run((given) => given.peek().from, variable), 'behind');
    await pool.close();
    assert.ok(words[place.heapTop] > 2 ** 29 + 2 ** 20);
  `,
  );
});
