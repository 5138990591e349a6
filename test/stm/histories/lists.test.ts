// Histories of lists: a search keeps one read, and others change the list before it.

import { test } from 'node:test';
import { requireNative } from '../../../src/native.js';
import { someOf } from '../../support/index.js';
import { contradictionIn } from './history.js';
import { assertFound, assertOrder, mutants } from './programs.js';
import { list, transactionsOn } from './registers.js';

requireNative(); // without it there is nothing to run

const recording = transactionsOn(list, 4);

test('transactions on keys of a list have an order, and attempts in vain fit into it', async (t) => {
  await assertOrder(t, recording, contradictionIn);
});

const found = [
  'a search that also drops the read of where it ends',
  'a commit without validation',
  'an attempt that forgets a read',
] as const;
for (const what of someOf(found, 1)) {
  test(`${what} is found by keys of a list`, async (t) => {
    await assertFound(t, recording, mutants[what], contradictionIn);
  });
}
