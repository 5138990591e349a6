// Links over Node's own channel, without a process: what is sent, and when.

import assert from 'node:assert/strict';
import { ChildProcess } from 'node:child_process';
import { test } from 'node:test';
import { ChildLink } from '../../../src/serve/portable/ipc-link.js';
import type { ArrivedEnvelope } from '../../../src/serve/protocol.js';

const command = 'NODE_MANYCORE';

function make() {
  const child = new ChildProcess();
  const sent: unknown[] = [];
  child.send = (message: unknown, handle: unknown) => {
    sent.push(handle === undefined ? message : [message, handle]);
    return true;
  };
  const arrived: ArrivedEnvelope[] = [];
  const errors: unknown[] = [];
  const link = new ChildLink<unknown>(child, {
    onEnvelope: (envelope) => {
      if (envelope.body === 'throw') throw new Error('thrown');
      arrived.push(envelope);
    },
    onError: (error) => errors.push(error),
  });
  const arrives = (message: unknown, cmd = command) =>
    child.emit('internalMessage', { cmd, message });
  return { link, sent, arrived, errors, arrives };
}

test('messages wait for the first of the process, and keep their order', () => {
  const { link, sent, arrives } = make();
  link.post({ body: 1 });
  link.post({ loop: 3, id: 4, body: 2 });
  assert.deepEqual(sent, []);
  arrives({ body: 'here' });
  link.post({ body: 3 });
  assert.deepEqual(sent, [
    { cmd: command, message: { body: 1 } },
    { cmd: command, message: { loop: 3, id: 4, body: 2 } },
    { cmd: command, message: { body: 3 } },
  ]);
});

test('an envelope goes with its handle, and descriptors are refused', () => {
  const { link, sent, arrives } = make();
  arrives({ body: 'here' });
  const handle = {
    fd: 7,
    onconnection: undefined,
    listen: () => 0,
    ref() {},
    unref() {},
    close() {},
  };
  link.post({ body: 1, handle });
  assert.deepEqual(sent, [[{ cmd: command, message: { body: 1 } }, handle]]);
  assert.throws(() => link.post({ body: 1, fds: [5] }), { code: 'NATIVE_MISSING' });
  assert.equal(sent.length, 1);
});

test("what the listener throws, and an unreadable message, reach onError; Node's own are left", () => {
  const { arrived, errors, arrives } = make();
  arrives({ body: 'throw' });
  arrives({ loop: 'x' });
  arrives({ body: 1 }, 'NODE_HANDLE_ACK');
  assert.deepEqual(arrived, []);
  assert.deepEqual(
    errors.map((error) => Object(error).code),
    [undefined, 'WORKER_PROTOCOL'],
  );
});
