// More workers than cores: some lose theirs in the middle of a commit, which others undo. Values change their kind, so
// that a commit which goes on after that reads a half of what the next one writes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atomically, stmStats, type TVar, tvar } from '../../src/stm/public.js';
import { openPool } from '../pool/calls/ways.js';
import { isFew } from '../support/index.js';

/** Thefts that are enough, and batches without so many. */
const thefts = isFew ? 80 : 400;
const batches = 3000;

const values: Readonly<Record<string, readonly unknown[]>> = {
  'null and objects': [null, { key: 1, text: 'x'.repeat(40) }],
  'numbers and texts': [1e300, 'y'.repeat(40)],
  'large and small': ['z'.repeat(4000), 7, undefined],
};

function turn(
  cells: readonly TVar<number>[],
  kinds: readonly unknown[],
  contents: TVar<unknown>[],
) {
  for (let round = 0; round < 500; round += 1) {
    atomically(() => {
      for (const [at, cell] of cells.entries()) {
        const next = (cell.get() + 1) % kinds.length;
        cell.set(next);
        contents[at]?.set(kinds[next]);
      }
    });
  }
}

for (const [name, kinds] of Object.entries(values)) {
  test(`a commit that was stolen goes on as a conflict: ${name}`, async (t) => {
    const pool = openPool(t, { size: 6 });
    const cells = Array.from({ length: 4 }, () => tvar(0));
    const contents = cells.map(() => tvar<unknown>(kinds[0]));
    const before = stmStats().thefts;
    for (let batch = 0; batch < batches && stmStats().thefts < before + thefts; batch += 1) {
      const workers = Array.from({ length: 6 }, () => pool.run(turn, cells, kinds, contents));
      await Promise.all(workers);
      const [seen, held] = atomically(() => [
        cells.map((cell) => kinds[cell.get()]),
        contents.map((content) => content.get()),
      ]);
      assert.deepEqual(held, seen);
    }
    t.diagnostic(`${stmStats().thefts - before} thefts`);
  });
}
