// Slices of the tasks of a thread, also for a listener that reads nothing, and of tasks that do not end.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readdirSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { TaskSlice } from '../../src/agent/index.js';
import { openSocket } from '../../src/agent/socket.js';
import { TaskFeed } from '../../src/agent/task-feed.js';
import { announcements } from '../../src/lib/index.js';
import { ownRuntime } from '../observe/runtime.js';
import { waitFor } from '../support/index.js';

const work = { pool: 1, name: 'work' };

/** Takes each slice while it `hasRoom`. */
function listen(t: TestContext) {
  const listener = { slices: [] as TaskSlice[], hasRoom: true, isGone: false, checks: 0 };
  const feed = new TaskFeed({
    send: (slice) => listener.slices.push(slice),
    hasRoom: () => {
      listener.checks += 1;
      return listener.hasRoom;
    },
    disconnect: () => {
      listener.isGone = true;
    },
  });
  t.after(() => feed.end());
  return listener;
}

test('a listener without room gets one later slice with everything', async (t) => {
  const listener = listen(t);
  listener.hasRoom = false;
  for (let task = 1; task <= 3; task += 1) {
    const before = listener.checks;
    announcements.taskStart.publish({ ...work, task, worker: 1, waitedMs: 3 });
    announcements.taskEnd.publish({ ...work, task, worker: 1, ranMs: 2 });
    await waitFor(() => listener.checks > before);
  }
  assert.deepEqual(listener.slices, []);
  listener.hasRoom = true;
  const slice = await waitFor(() => listener.slices[0]);
  assert.equal(slice.workers[0]?.tasks, 3);
  assert.equal(slice.tasks.length, 3);
  assert.deepEqual(slice.ran, [[2, 3]]);
  assert.deepEqual(slice.waited, [[4, 3]]);
  const next = await waitFor(() => listener.slices[1]);
  assert.equal(next.fromMs, slice.toMs);
  assert.deepEqual(next.workers, []);
});

test('a task that does not end keeps its worker busy, and is sent up to the end of each slice', async (t) => {
  const listener = listen(t);
  announcements.taskStart.publish({ ...work, task: 7, worker: 2, waitedMs: 0 });
  await waitFor(() => listener.slices.length > 3);
  const slices = listener.slices.splice(0);
  const [first] = slices;
  assert.ok(first !== undefined);
  for (const { fromMs, toMs, workers, running, tasks } of slices.slice(1)) {
    assert.deepEqual(workers, [{ worker: 2, tasks: 0, failed: 0, busyMs: toMs - fromMs }]);
    assert.equal(running[0]?.task, 7);
    assert.equal(running[0].endMs, toMs);
    assert.ok(running[0].startMs < fromMs);
    assert.deepEqual(tasks, []);
  }
  // The task is given up: the state of its worker is unknown from now on.
  announcements.taskError.publish({
    ...work,
    task: 7,
    worker: 0,
    ranMs: 0,
    error: new Error('late'),
  });
  const failed = await waitFor(() =>
    listener.slices.find(({ workers }) => workers[0]?.failed === 1),
  );
  assert.equal(failed.workers[0]?.worker, 2);
  assert.deepEqual(failed.running, []);
});

test('a long task that ends counts in each slice as long as it ran there', async (t) => {
  const listener = listen(t);
  await waitFor(() => listener.slices.length > 0);
  announcements.taskEnd.publish({ ...work, task: 1, worker: 1, ranMs: 60_000 });
  const slice = await waitFor(() => listener.slices.find(({ workers }) => workers.length > 0));
  const { busyMs = 0 } = slice.workers[0] ?? {};
  assert.ok(busyMs >= 0 && busyMs <= slice.toMs - slice.fromMs);
  assert.equal(slice.tasks[0] && slice.tasks[0].endMs - slice.tasks[0].startMs, 60_000);
});

test('a listener that never reads is disconnected, and its data does not grow until then', async (t) => {
  const runtime = ownRuntime(t);
  t.after(
    openSocket(
      () => [],
      async () => {},
      () => () => {},
    ),
  );
  let served: Socket | undefined;
  const onServed = (message: unknown): void => {
    served = Object(message).socket;
  };
  subscribe('net.server.socket', onServed);
  t.after(() => unsubscribe('net.server.socket', onServed));
  const name = await waitFor(() => readdirSync(runtime)[0]);
  const reader = createConnection(join(runtime, name));
  t.after(() => reader.destroy());
  reader.on('error', () => {});
  reader.write('tasks\n');
  const socket = await waitFor(() => served);
  const unsentBytes: number[] = [];
  const long = 'x'.repeat(20_000);
  await waitFor(() => {
    if (socket.writableNeedDrain && !socket.destroyed) unsentBytes.push(socket.writableLength);
    announcements.taskEnd.publish({ pool: 1, task: 1, worker: 1, ranMs: 5, name: long });
    return socket.destroyed;
  });
  const [fullBytes = 0] = unsentBytes;
  assert.ok(fullBytes > 0 && Math.max(...unsentBytes) === fullBytes, unsentBytes.join(' '));
});
