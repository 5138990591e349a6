import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreBudget } from '../../../src/pool/workers/budget.js';

const nobody = (): void => assert.fail('told without having waited');

test('a pool gets cores while there are some, then waits', () => {
  const budget = new CoreBudget(2);
  assert.equal(budget.tryTake(0, nobody), true);
  assert.equal(budget.tryTake(1, nobody), true);
  assert.equal(
    budget.tryTake(2, () => {}),
    false,
  );
  assert.equal(budget.usedCores, 2);
});

test('every pool gets its first core whatever the others hold', () => {
  const budget = new CoreBudget(1);
  assert.equal(budget.tryTake(0, nobody), true);
  assert.equal(budget.tryTake(0, nobody), true);
  assert.equal(budget.usedCores, 2);
});

test('a core that is given back is offered once to one that waits', () => {
  const budget = new CoreBudget(1);
  const told: string[] = [];
  budget.tryTake(0, nobody);
  budget.tryTake(1, () => told.push('first'));
  budget.tryTake(1, () => told.push('second'));
  budget.give();
  assert.deepEqual(told, ['first']);
  budget.tryTake(0, nobody);
  budget.give();
  budget.tryTake(0, nobody);
  budget.give();
  assert.deepEqual(told, ['first', 'second']);
});

test('a pool that got a core meanwhile is not notified of another', () => {
  const budget = new CoreBudget(1);
  const told: string[] = [];
  const first = (): void => void told.push('first');
  budget.tryTake(0, nobody);
  assert.equal(budget.tryTake(1, first), false);
  budget.tryTake(1, () => told.push('second'));
  assert.equal(budget.tryTake(0, first), true);
  budget.give();
  assert.deepEqual(told, ['second']);
});

test('a forgotten pool is not notified', () => {
  const budget = new CoreBudget(1);
  budget.tryTake(0, nobody);
  budget.tryTake(1, nobody);
  budget.forget(nobody);
  budget.give();
  assert.equal(budget.usedCores, 0);
});

test('a pool of more workers than cores raises the budget, a smaller one leaves it', () => {
  const budget = new CoreBudget(2);
  budget.raise(5);
  budget.raise(3);
  assert.equal(budget.coreCount, 5);
});
