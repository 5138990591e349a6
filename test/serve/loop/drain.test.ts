// A drain, of a server in this process.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Connections } from '../../../src/serve/loop/clients/connections.js';
import { IdleConnections } from '../../../src/serve/loop/clients/idle-connections.js';
import { Drain } from '../../../src/serve/loop/drain.js';
import { boardAt, Row } from '../../../src/serve/shared/board.js';
import { withDeadline } from '../../support/index.js';

test('a connection that comes after the drain began, and is silent, holds up nothing', async (t) => {
  const row = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  const connections = new Connections(row, new IdleConnections(undefined, () => {}));
  const server = createServer((_request, response) => response.end('fine')).listen(0, '127.0.0.1');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  let open = 0;
  server.on('connection', (socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
  });
  let hasCome = false;
  const done = new Promise<void>((resolve) => {
    const drain = new Drain(connections, () => hasCome && open === 0, resolve);
    drain.addServer(server);
    drain.begin(60_000, true);
  });
  const address = server.address();
  const silent = connect(typeof address === 'object' ? (address?.port ?? 0) : 0, '127.0.0.1');
  await once(server, 'connection');
  const ended = once(silent.resume(), 'close');
  hasCome = true;
  await withDeadline(Promise.all([done, ended]), 20_000, 'the end of the drain');
  assert.equal(open, 0);
});
