import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Candidate,
  chooseHost,
  hasRoom,
  type ScheduleLimits,
} from '../../src/pool/schedule.js';

const limits: ScheduleLimits = {
  concurrentTasks: 1,
  maxInFlight: 1000,
  mayWaitElsewhere: false,
};

function host(given: Partial<Candidate> = {}): Candidate {
  return { isOpen: true, inFlight: 0, pendingMs: 0, lastUsed: 0, isBusyElsewhere: false, ...given };
}

test('no host is chosen when none is open', () => {
  assert.equal(chooseHost([host({ isOpen: false })], 1, limits, true), undefined);
  assert.equal(chooseHost([], 1, limits, true), undefined);
});

test('among idle hosts the last used is chosen', () => {
  const [older, newer] = [host({ lastUsed: 1 }), host({ lastUsed: 2 })];
  assert.equal(chooseHost([older, newer], 1, limits, true), newer);
  assert.equal(chooseHost([newer, older], 1, limits, true), newer);
});

test('an idle host is chosen before one with long work', () => {
  const busy = host({ inFlight: 1, pendingMs: 0.3 });
  const idle = host();
  assert.equal(chooseHost([busy, idle], 0.05, limits, true), idle);
});

test('a host that is about to be done is chosen before an idle one', () => {
  const almostDone = host({ inFlight: 1, pendingMs: 0.001 });
  assert.equal(chooseHost([host(), almostDone], 0.001, limits, true), almostDone);
});

test('a task that is done faster than it is handed over stays with the host at work', () => {
  const busy = host({ inFlight: 300, pendingMs: 0.4 });
  assert.equal(chooseHost([host(), busy], 0.001, limits, true), busy);
  const idle = host();
  assert.equal(chooseHost([idle, busy], 0.01, limits, true), idle);
});

test('a host at work that is full of very short tasks leaves the next to an idle one', () => {
  const idle = host();
  const full = host({ inFlight: 500, pendingMs: 0.5 });
  assert.equal(chooseHost([idle, full], 0.001, limits, true), idle);
});

test('a task whose run time is not known waits behind no other', () => {
  assert.equal(hasRoom(host({ inFlight: 1 }), undefined, limits), false);
  assert.equal(hasRoom(host(), undefined, limits), true);
});

test('many short tasks may be ahead, one of a few milliseconds, no long one', () => {
  assert.equal(hasRoom(host({ inFlight: 100, pendingMs: 0.1 }), 0.001, limits), true);
  assert.equal(hasRoom(host({ inFlight: 1, pendingMs: 2 }), 2, limits), true);
  assert.equal(hasRoom(host({ inFlight: 2, pendingMs: 4 }), 0.9, limits), false);
  assert.equal(hasRoom(host({ inFlight: 1, pendingMs: 100 }), 0.001, limits), false);
  assert.equal(hasRoom(host({ inFlight: 1, pendingMs: 0 }), 100, limits), false);
});

test('a host that may run several tasks at a time takes them whatever they last', () => {
  const concurrent = { ...limits, concurrentTasks: 3, maxInFlight: 1000 };
  assert.equal(hasRoom(host({ inFlight: 2, pendingMs: 5000 }), undefined, concurrent), true);
  assert.equal(hasRoom(host({ inFlight: 3, pendingMs: 5000 }), undefined, concurrent), false);
});

test('no host gets more than maxInFlight tasks', () => {
  const one = { ...limits, concurrentTasks: 1, maxInFlight: 1 };
  assert.equal(hasRoom(host({ inFlight: 1 }), 0.0001, one), false);
});

test('among hosts at work the one with the least pending work is chosen', () => {
  const [more, less] = [
    host({ inFlight: 3, pendingMs: 0.4 }),
    host({ inFlight: 3, pendingMs: 0.2 }),
  ];
  assert.equal(chooseHost([more, less], 0.05, limits, true), less);
});

test('a host that works for another pool gets one task, and only where no other will come', () => {
  const elsewhere = host({ isBusyElsewhere: true });
  const idle = host();
  assert.equal(chooseHost([elsewhere], 0.01, limits, true), undefined);
  assert.equal(chooseHost([elsewhere, idle], 0.01, limits, true), idle);
  const waits = { ...limits, mayWaitElsewhere: true };
  assert.equal(chooseHost([elsewhere], 0.01, waits, true), elsewhere);
  assert.equal(chooseHost([elsewhere, idle], 0.01, waits, true), idle);
  const hasOne = host({ isBusyElsewhere: true, inFlight: 1 });
  assert.equal(chooseHost([hasOne], 0.01, waits, true), undefined);
});
