// Histories of maps with many leaves, which divide and go away while others read them in both directions.

import { test } from 'node:test';
import { requireNative } from '../../../src/native.js';
import { someOf } from '../../support/index.js';
import { contradictionIn } from './history.js';
import { assertFound, assertOrder, mutants } from './programs.js';
import { regions, transactionsOn } from './registers.js';

requireNative(); // without it there is nothing to run

for (const [what, region] of Object.entries(regions)) {
  test(`transactions on leaves of ${what} have an order, and attempts in vain fit into it`, async (t) => {
    await assertOrder(t, transactionsOn(region, 8, 500), contradictionIn);
  });
}

const found = [
  'a search that also drops the read of where it ends',
  'a commit without validation',
  'a longer snapshot without validation',
  'an attempt that forgets a read',
] as const;
for (const what of someOf(found, 1)) {
  test(`${what} is found by leaves`, async (t) => {
    const recording = transactionsOn(regions['a sorted map'], 8, 500);
    await assertFound(t, recording, mutants[what], contradictionIn);
  });
}
