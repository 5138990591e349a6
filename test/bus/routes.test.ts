// Turns of made-up receivers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Routes } from '../../src/bus/delivery/routes.js';

test('in each round of turns everybody is next as often as its weight says', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 3 }),
      (weights, rounds) => {
        const routes = new Routes<number>();
        for (const [at, weight] of weights.entries()) routes.set('here', at, weight);
        const sum = weights.reduce((total, weight) => total + weight, 0);
        const turns = Array.from({ length: rounds * sum }, () => routes.next('here'));
        for (const [at, weight] of weights.entries()) {
          assert.equal(turns.filter((turn) => turn === at).length, rounds * weight);
        }
      },
    ),
  );
});

test('turns are spread: the heavy one does not have all of its own in a row', () => {
  const routes = new Routes<string>();
  routes.set('here', 'a', 4);
  routes.set('here', 'b', 2);
  const turns = Array.from({ length: 6 }, () => routes.next('here')).join('');
  assert.equal(turns, 'abaaba');
});

test('a receiver that comes and goes is next, and is not', () => {
  const routes = new Routes<string>();
  assert.equal(routes.next('here'), undefined);
  routes.set('here', 'a', 1);
  routes.set('there', 'a', 1);
  routes.set('here', 'b', 1);
  assert.deepEqual(routes.all('here'), ['a', 'b']);
  routes.set('here', 'a', 0);
  assert.deepEqual(routes.all('there'), ['a']);
  routes.set('there', 'a', 0);
  assert.deepEqual([routes.next('here'), routes.next('here')], ['b', 'b']);
  assert.deepEqual([...routes.everyone()], ['b']);
  routes.set('here', 'b', 0);
  assert.equal(routes.next('here'), undefined);
});

test('an eligible receiver is found, whatever came, went and had its turn before', () => {
  const step = fc.record({
    receiver: fc.integer({ min: 0, max: 4 }),
    weight: fc.integer({ min: 0, max: 2 }),
    turns: fc.integer({ min: 0, max: 5 }),
    eligible: fc.uniqueArray(fc.integer({ min: 0, max: 4 })),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const routes = new Routes<number>();
      for (const { receiver, weight, turns, eligible } of steps) {
        routes.set('here', receiver, weight);
        for (let turn = 0; turn < turns; turn += 1) {
          const found = routes.next('here', (each) => eligible.includes(each));
          const wanted = routes.all('here').filter((each) => eligible.includes(each));
          if (wanted.length === 0) assert.equal(found, undefined);
          else assert.ok(found !== undefined && wanted.includes(found));
          routes.next('here');
        }
      }
    }),
  );
});

test('consumers that a peer may reach have equal turns beside those that it may not', () => {
  const routes = new Routes<string>();
  for (const name of ['a', 'b', 'c']) routes.set('here', name, 1);
  const turns = Array.from({ length: 6 }, () => routes.next('here', (each) => each !== 'a'));
  assert.deepEqual(turns, ['b', 'c', 'b', 'c', 'b', 'c']);
});
