// The ticket of a worker on a kernel of its own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acceptChannel } from '../../src/channels/index.js';
import { hasCode } from '../../src/errors.js';

const ticket = { kind: 'shm', worker: 'isolated', segment: 1000, bell: 1001, spin: false };

test('facts for a guest that cannot be are refused', () => {
  const wrong = [
    null,
    {},
    { segmentBytes: 4096 },
    { segmentBytes: 0, coreCount: 1 },
    { segmentBytes: 4096, coreCount: 1.5 },
    { segmentBytes: '4096', coreCount: 1 },
  ];
  for (const guest of wrong) {
    assert.throws(
      () => acceptChannel({ ...ticket, guest }),
      (error) => hasCode(error, 'CHANNEL_UNAVAILABLE'),
      JSON.stringify(guest),
    );
  }
});
