// Transactions of several processes, and of one and the same memory without a part of the protocol: a history must have
// an order, and those of the mutants must be found to have none.

import { test } from 'node:test';
import { requireNative } from '../../../src/native.js';
import { contradictionIn } from './history.js';
import { assertFound, assertOrder, mutants } from './programs.js';
import { registers, transactionsOn } from './registers.js';

requireNative(); // without it there is nothing to run

for (const [what, register] of Object.entries(registers)) {
  test(`transactions on ${what} have an order, and attempts in vain fit into it`, async (t) => {
    await assertOrder(t, transactionsOn(register), contradictionIn);
  });
}

for (const what of [
  'a commit without validation',
  'a longer snapshot without validation',
  'a commit that loses a write',
  'a transaction that does not see its own writes',
  'an attempt that forgets a read',
] as const) {
  test(`${what} is found by variables`, async (t) => {
    await assertFound(t, transactionsOn(registers.variables), mutants[what], contradictionIn);
  });
}
