import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Candidate,
  chooseWorker,
  hasRoom,
  type ScheduleLimits,
} from '../../src/pool/schedule.js';

const limits: ScheduleLimits = {
  concurrentTasks: 1,
  maxInFlight: 1000,
  mayWaitElsewhere: false,
};

function worker(given: Partial<Candidate> = {}): Candidate {
  return { isOpen: true, inFlight: 0, pendingMs: 0, lastUsed: 0, isBusyElsewhere: false, ...given };
}

test('no worker is chosen when none is open', () => {
  assert.equal(chooseWorker([worker({ isOpen: false })], 1, limits, true), undefined);
  assert.equal(chooseWorker([], 1, limits, true), undefined);
});

test('among idle workers the last used is chosen', () => {
  const [older, newer] = [worker({ lastUsed: 1 }), worker({ lastUsed: 2 })];
  assert.equal(chooseWorker([older, newer], 1, limits, true), newer);
  assert.equal(chooseWorker([newer, older], 1, limits, true), newer);
});

test('an idle worker is chosen before one with long work', () => {
  const busy = worker({ inFlight: 1, pendingMs: 0.3 });
  const idle = worker();
  assert.equal(chooseWorker([busy, idle], 0.05, limits, true), idle);
});

test('a worker that is about to be done is chosen before an idle one', () => {
  const almostDone = worker({ inFlight: 1, pendingMs: 0.001 });
  assert.equal(chooseWorker([worker(), almostDone], 0.001, limits, true), almostDone);
});

test('a task that is done faster than it is handed over stays with the worker at work', () => {
  const busy = worker({ inFlight: 300, pendingMs: 0.4 });
  assert.equal(chooseWorker([worker(), busy], 0.001, limits, true), busy);
  const idle = worker();
  assert.equal(chooseWorker([idle, busy], 0.01, limits, true), idle);
});

test('a worker at work that is full of very short tasks leaves the next to an idle one', () => {
  const idle = worker();
  const full = worker({ inFlight: 500, pendingMs: 0.5 });
  assert.equal(chooseWorker([idle, full], 0.001, limits, true), idle);
});

test('a task whose run time is not known waits behind no other', () => {
  assert.equal(hasRoom(worker({ inFlight: 1 }), undefined, limits), false);
  assert.equal(hasRoom(worker(), undefined, limits), true);
});

test('many short tasks may be ahead, one of a few milliseconds, no long one', () => {
  assert.equal(hasRoom(worker({ inFlight: 100, pendingMs: 0.1 }), 0.001, limits), true);
  assert.equal(hasRoom(worker({ inFlight: 1, pendingMs: 2 }), 2, limits), true);
  assert.equal(hasRoom(worker({ inFlight: 2, pendingMs: 4 }), 0.9, limits), false);
  assert.equal(hasRoom(worker({ inFlight: 1, pendingMs: 100 }), 0.001, limits), false);
  assert.equal(hasRoom(worker({ inFlight: 1, pendingMs: 0 }), 100, limits), false);
});

test('a worker that may run several tasks at a time takes them whatever they last', () => {
  const concurrent = { ...limits, concurrentTasks: 3, maxInFlight: 1000 };
  assert.equal(hasRoom(worker({ inFlight: 2, pendingMs: 5000 }), undefined, concurrent), true);
  assert.equal(hasRoom(worker({ inFlight: 3, pendingMs: 5000 }), undefined, concurrent), false);
});

test('no worker gets more than maxInFlight tasks', () => {
  const one = { ...limits, concurrentTasks: 1, maxInFlight: 1 };
  assert.equal(hasRoom(worker({ inFlight: 1 }), 0.0001, one), false);
});

test('among workers at work the one with the least pending work is chosen', () => {
  const [more, less] = [
    worker({ inFlight: 3, pendingMs: 0.4 }),
    worker({ inFlight: 3, pendingMs: 0.2 }),
  ];
  assert.equal(chooseWorker([more, less], 0.05, limits, true), less);
});

test('a worker that works for another pool gets one task, and only where no other will come', () => {
  const elsewhere = worker({ isBusyElsewhere: true });
  const idle = worker();
  assert.equal(chooseWorker([elsewhere], 0.01, limits, true), undefined);
  assert.equal(chooseWorker([elsewhere, idle], 0.01, limits, true), idle);
  const waits = { ...limits, mayWaitElsewhere: true };
  assert.equal(chooseWorker([elsewhere], 0.01, waits, true), elsewhere);
  assert.equal(chooseWorker([elsewhere, idle], 0.01, waits, true), idle);
  const hasOne = worker({ isBusyElsewhere: true, inFlight: 1 });
  assert.equal(chooseWorker([hasOne], 0.01, waits, true), undefined);
});
