// Bound sockets without the native core: when an address is taken, and which path is removed.

import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PortableSocketOpener } from '../../../src/serve/portable/socket-opener.js';
import type { ListenQuery } from '../../../src/serve/protocol.js';
import { errnoOf } from '../../../src/serve/shared/errno.js';
import { folder } from '../served.js';

const query: ListenQuery = {
  address: '127.0.0.1',
  port: 0,
  addressType: 4,
  backlog: 0,
  isV6Only: false,
  index: 0,
};

/** Pairs of addresses on one port: address, family, only IPv6. */
const pairs: readonly [boolean, [string, 4 | 6, boolean], [string, 4 | 6, boolean]][] = [
  [true, ['127.0.0.1', 4, false], ['127.0.0.1', 4, false]],
  [true, ['0.0.0.0', 4, false], ['127.0.0.1', 4, false]],
  [true, ['127.0.0.1', 4, false], ['0.0.0.0', 4, false]],
  [true, ['127.0.0.1', 4, false], ['::', 6, false]],
  [true, ['::', 6, true], ['::1', 6, false]],
  [false, ['127.0.0.1', 4, false], ['127.0.0.2', 4, false]],
  [false, ['0.0.0.0', 4, false], ['::1', 6, false]],
  [false, ['0.0.0.0', 4, false], ['::', 6, true]],
  [false, ['::1', 6, false], ['127.0.0.1', 4, false]],
];

for (const [isTaken, first, second] of pairs) {
  test(`after ${first.join()} the port of ${second.join()} is ${isTaken ? 'taken' : 'free'}`, async () => {
    const opener = new PortableSocketOpener();
    const open = ([address, addressType, isV6Only]: typeof first, port: number) =>
      opener.open({ ...query, address, addressType, isV6Only, port });
    const bound = await open(first, 0);
    const { port } = Object(bound.address);
    if (isTaken) {
      await assert.rejects(open(second, port), { errno: errnoOf('EADDRINUSE') });
      bound.close();
    } else (await open(second, port)).close();
    bound.close();
    (await open(first, port)).close();
  });
}

test('a socket that another program listens on is taken', async () => {
  const { createServer } = await import('node:net');
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = Object(server.address());
  const opened = new PortableSocketOpener().open({ ...query, port });
  await assert.rejects(opened, { errno: errnoOf('EADDRINUSE') });
  server.close();
});

test('a path is removed with its socket, unless it has become another file', async (t) => {
  const path = join(folder(t), 'a.sock');
  const opener = new PortableSocketOpener();
  const wanted = { ...query, address: path, port: -1, addressType: -1 };
  const first = await opener.open(wanted);
  first.close();
  assert.equal(existsSync(path), false);
  const second = await opener.open(wanted);
  rmSync(path);
  writeFileSync(path, 'of another');
  second.close();
  assert.equal(existsSync(path), true);
});
