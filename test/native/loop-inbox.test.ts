// An event loop's inbox at the listener thread, without a server around it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { nativeBinding, requireNative } from '../../src/native.js';
import { boardAt, Row } from '../../src/serve/shared/board.js';
import { waitFor } from '../support/index.js';

const skip = nativeBinding() === undefined && 'needs the native binary';
const number = 3;

/** Makes this thread the only loop of the only process; it closes each connection. */
async function openInbox(t: TestContext) {
  const native = requireNative();
  const descriptors = new native.NativeDescriptors();
  const board = native.NativeBoard.create(1, 1);
  const bell = descriptors.release(descriptors.createEventfd());
  const acceptor = new native.NativeAcceptor(board, 0, [bell], 'least-loaded', 0, []);
  const row = new Row(board.buffer(), 0, 0);
  let taken = 0;
  const deliver = (): void => {
    const [count = 0, ...entries] = batch;
    batch[0] = 0;
    // Number, descriptor, time.
    for (const fd of entries.slice(0, 3 * count).filter((_, at) => at % 3 === 1)) closeSync(fd);
    row.add(boardAt.open, -count);
    taken += count;
  };
  const inbox = new native.NativeLoopInbox(acceptor.key, 0, deliver);
  const batch = new Uint32Array(inbox.batch());
  const opened = createServer().listen(0, '127.0.0.1');
  await once(opened, 'listening');
  const { port }: { port: number } = Object(opened.address());
  const fd: number = Object(Reflect.get(opened, '_handle')).fd;
  acceptor.addSocket(number, descriptors.release(descriptors.duplicate(fd)));
  opened.close();
  row.set(boardAt.limit, 1000);
  row.set(boardAt.listens, 1 << number);
  row.state = 'ready';
  inbox.wake();
  t.after(() => {
    inbox.close();
    acceptor.close();
    board.close();
  });
  return { row, inbox, acceptor, port, taken: () => taken };
}

function dial(t: TestContext, port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  t.after(() => socket.destroy());
  return socket;
}

/** Simulates so many connections that this loop cannot sleep, until the test ends. */
async function beginStorm(t: TestContext, { row, inbox }: Awaited<ReturnType<typeof openInbox>>) {
  let isStorm = true;
  t.after(() => {
    isStorm = false;
  });
  const blow = (): void => {
    if (!isStorm) return;
    row.add(boardAt.placed, 50);
    inbox.wake();
    setImmediate(blow);
  };
  blow();
  await waitFor(() => row.get(boardAt.direct) === 1);
}

test('a loop that cannot sleep accepts by itself, and is relieved of it when it is blocked', {
  skip,
}, async (t) => {
  const fixture = await openInbox(t);
  const { row, port, taken } = fixture;
  dial(t, port);
  await waitFor(() => taken() === 1);
  await beginStorm(t, fixture);
  for (let count = 0; count < 50; count += 1) dial(t, port);
  await waitFor(() => taken() === 51 && row.get(boardAt.direct) === 1); // it may have ended and begun again
  dial(t, port);
  await new Promise<void>((resolve) => {
    process.nextTick(() => {
      const endMs = performance.now() + 20_000; // the connection waits in the kernel's queue
      while (row.get(boardAt.direct) !== 0 && performance.now() < endMs);
      assert.equal(row.get(boardAt.direct), 0);
      resolve();
    });
  });
  await waitFor(() => taken() === 52);
});

test('connections that a loop accepts by itself are closed with its socket, also while it is blocked', {
  skip,
}, async (t) => {
  const fixture = await openInbox(t);
  const { row, acceptor, port, taken } = fixture;
  await beginStorm(t, fixture);
  acceptor.removeSocket(number);
  assert.equal(row.get(boardAt.direct), 0);
  const refused = async (): Promise<boolean> => {
    const [error] = await once(dial(t, port), 'error').catch((thrown: unknown) => [thrown]);
    return Object(error).code === 'ECONNREFUSED';
  };
  await waitFor(refused);
  assert.equal(taken(), 0);
});

test('a loop that has left takes nothing any more', { skip }, async (t) => {
  const fixture = await openInbox(t);
  const { row, inbox, acceptor, port, taken } = fixture;
  await beginStorm(t, fixture);
  row.state = 'draining';
  assert.ok(inbox.tryLeave());
  assert.equal(row.get(boardAt.direct), 0);
  const waiting: Socket[] = [];
  for (let count = 0; count < 20; count += 1) {
    const client = dial(t, port);
    await once(client, 'connect'); // in the kernel's queue, while this loop goes on
    waiting.push(client);
  }
  const closed = waiting.map((client) => new Promise((resolve) => client.once('close', resolve)));
  acceptor.removeSocket(number); // resets those that nobody has taken
  await Promise.all(closed);
  assert.equal(taken(), 0);
});
