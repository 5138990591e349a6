import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { announcements } from '../../src/lib/index.js';

test('what is announced reaches a listener that knows only the name of the channel', () => {
  const heard: unknown[] = [];
  const listener = (message: unknown) => void heard.push(message);
  assert.equal(announcements.taskStart.hasSubscribers, false);
  subscribe('manycore:task:start', listener);
  assert.equal(announcements.taskStart.hasSubscribers, true);
  const message = { pool: 1, task: 2, name: 'decode', worker: 3, waitedMs: 0.5 };
  announcements.taskStart.publish(message);
  unsubscribe('manycore:task:start', listener);
  announcements.taskStart.publish(message);
  assert.deepEqual(heard, [message]);
});

test('every announcement has a name of its own, manycore:part:event', () => {
  const names = Object.values(announcements).map((each) => String(each.name));
  assert.equal(new Set(names).size, names.length);
  for (const name of names)
    assert.match(name, /^manycore:(task|worker|pool|server|loop|bus|cluster|unit):[a-z]+$/);
});
