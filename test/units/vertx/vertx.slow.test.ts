// Vert.x's cases of deployments, on two processes with one loop each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDeadline } from '../../support/index.js';
import { startLoops } from '../loops.js';
import { runCase } from './place.js';
import { unitCases } from './table.js';

const caseMs = 60_000;

test("deployments do what Vert.x's cases expect, or the difference by name", async (t) => {
  const loops = startLoops(t);
  const failed: string[] = [];
  for (const each of unitCases) {
    await withDeadline(runCase(loops, each), caseMs, each.name).catch((error: unknown) =>
      failed.push(`${each.name}: ${String(error)}`),
    );
  }
  assert.deepEqual(failed, []);
});
