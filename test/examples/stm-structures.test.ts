// The structures of examples/stm-structures: each is as a set, the tree is a red-black tree, and the program runs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { TVar } from '../../src/stm/public.js';
import { random } from '../support/index.js';

interface Structure {
  make(): unknown;
  has(set: unknown, key: number): boolean;
  add(set: unknown, key: number): boolean;
  remove(set: unknown, key: number): boolean;
  keys(set: unknown): number[];
}

interface Node {
  readonly key: number;
  readonly isRed: boolean;
  readonly left: TVar<Node | null>;
  readonly right: TVar<Node | null>;
}

const folder = 'examples/stm-structures';
const { structures }: { structures: Record<string, Structure> } = await import(
  pathToFileURL(`${folder}/structures.js`).href
);

for (const [name, { make, has, add, remove, keys }] of Object.entries(structures)) {
  test(`${name} is as a set`, (t) => {
    const next = random(t).next;
    const set = make();
    const model = new Set<number>();
    for (let round = 0; round < 4000; round += 1) {
      const key = Math.floor(next() * 120);
      const what = next();
      if (what < 0.4) {
        assert.equal(add(set, key), !model.has(key));
        model.add(key);
      } else if (what < 0.8) assert.equal(remove(set, key), model.delete(key));
      else assert.equal(has(set, key), model.has(key));
      if (name === 'tree' && round % 10 === 0) blackHeight(set);
    }
    assert.deepEqual(
      keys(set),
      [...model].sort((left, right) => left - right),
    );
  });
}

/** The number of black nodes on each way down, which are as many on all. */
function blackHeight(place: unknown): number {
  const node = nodeOf(place);
  if (node === null) return 0;
  const [left, right] = [blackHeight(node.left), blackHeight(node.right)];
  assert.equal(left, right, `below ${node.key}`);
  const reds = [node.left, node.right].filter((child) => nodeOf(child)?.isRed);
  assert.ok(!node.isRed || reds.length === 0, `two red nodes at ${node.key}`);
  return left + Number(!node.isRed);
}

function nodeOf(place: unknown): Node | null {
  assert.ok(typeof place === 'object' && place !== null && 'peek' in place);
  assert.ok(typeof place.peek === 'function');
  return place.peek();
}

test('the program prints a line for each structure and number of processes', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [`${folder}/main.js`, '20', '5'], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /linked list.*: 1 × \d+ operations\/s, 1\.00 times one/);
  for (const word of ['linked list', 'tlist', 'red-black tree', 'tsortedMap']) {
    assert.ok(stdout.includes(word), stdout);
  }
});
