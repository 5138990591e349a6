// The start of a thread's agent.

import assert from 'node:assert/strict';
import { Server } from 'node:net';
import { test } from 'node:test';
import { addSource } from '../../src/agent/sources.js';
import { ownRuntime } from '../observe/runtime.js';
import { waitFor } from '../support/index.js';

test('a source that goes while the agent starts, and one that comes, make one socket', async (t) => {
  ownRuntime(t);
  const listen = t.mock.method(Server.prototype, 'listen', function (this: Server) {
    return this;
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const owner = {};
  const remove = addSource('pool', owner, () => ({}));
  t.mock.timers.tick(1000); // it starts
  remove();
  const removeOther = addSource('pool', owner, () => ({}));
  t.mock.timers.tick(1000);
  t.mock.timers.reset();
  await waitFor(() => listen.mock.callCount() > 0);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(listen.mock.callCount(), 1);
  removeOther();
});
