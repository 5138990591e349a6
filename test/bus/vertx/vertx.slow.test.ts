// Vert.x's cases on manycore's bus, in four placements.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { useFolder } from '../../cluster/local/buses.js';
import { skip } from '../../cluster/server.js';
import { withDeadline } from '../../support/index.js';
import { oneLoop, overNats, type Place, runCase, twoProcesses, twoPrograms } from './places.js';
import { busCases } from './table.js';

useFolder();

const caseMs = 60_000;
const placements: readonly (readonly [
  string,
  (t: TestContext) => Promise<Place>,
  (string | false)?,
])[] = [
  ['one loop', oneLoop],
  ['two processes', twoProcesses],
  ['two programs', twoPrograms],
  ['two programs over NATS', overNats, skip],
];
const names = placements.map(([name]) => name);

for (const [name, open, skip = false] of placements) {
  test(`the bus does what Vert.x's cases expect, or the difference by name: ${name}`, {
    skip,
  }, async (t) => {
    const place = await open(t);
    const failed: string[] = [];
    for (const each of busCases) {
      if (names.indexOf(name) < names.indexOf(each.least ?? name)) continue;
      await withDeadline(runCase(place, each), caseMs, each.name).catch((error: unknown) =>
        failed.push(`${each.name}: ${String(error)}`),
      );
    }
    assert.deepEqual(failed, []);
  });
}
