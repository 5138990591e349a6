// The publications that a successor takes while they come two ways, and the number of senders that it
// remembers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Publications } from '../../src/bus/delivery/publications.js';
import { upTo } from './net.js';

/** The number of senders that are remembered. */
const maxSenders = 4096;

test('a sender that goes on sending makes it forget no other', () => {
  const publications = new Publications();
  const senders = upTo(maxSenders).map((at) => `sender ${at}`);
  for (const sender of senders) publications.takesHandedOn({ sender, number: 5 });
  for (const number of upTo(50)) {
    publications.takesHandedOn({ sender: `sender ${maxSenders - 1}`, number });
  }
  const twice = senders.filter((sender) => publications.takesStraight({ sender, number: 5 }));
  assert.deepEqual(twice, []);
});

test('a new sender makes it forget the oldest one', () => {
  const publications = new Publications();
  const senders = upTo(maxSenders + 1).map((at) => `sender ${at}`);
  for (const sender of senders) publications.takesHandedOn({ sender, number: 5 });
  const forgotten = senders.filter((sender) => publications.takesStraight({ sender, number: 5 }));
  assert.deepEqual(forgotten, ['sender 0']);
});
