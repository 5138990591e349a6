// Overload and the size of a server, on made-up rows.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { requireNative } from '../../../src/native.js';
import { fillServeOptions } from '../../../src/serve/options.js';
import { Sizer } from '../../../src/serve/supervisor/sizer.js';
import { waitFor } from '../../support/index.js';
import { skip } from '../served.js';

test('more than 33 connections that wait to be accepted start a process, however idle the others', () => {
  const sizer = () => new Sizer(fillServeOptions({ processes: { min: 1, max: 8 }, loops: 1 }));
  assert.equal(sizer().changeOfProcesses(2, [], 33), 0);
  assert.equal(sizer().changeOfProcesses(2, [], 34), 1);
  assert.equal(sizer().changeOfProcesses(8, [], 1000), 0);
});

test('the connections that the kernel holds for a listening socket are counted', {
  skip,
}, async (t) => {
  const descriptors = new (requireNative().NativeDescriptors)();
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port }: { port: number } = Object(server.address());
  const fd = descriptors.release(descriptors.duplicate(Object(Reflect.get(server, '_handle')).fd));
  t.after(() => closeSync(fd));
  server.close(); // it listens on, and nobody accepts
  const waiting = () => requireNative().acceptQueue(fd);
  assert.equal(waiting(), 0);
  const sockets = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await waitFor(() => waiting() === 3);
});
