// socket.io with its default transports (polling, then WebSocket) on several loops: its clients send requests of one
// session over several connections, which only the loop with that session can answer. The packages are those of
// the registry; without it the tests are skipped.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import type { ServeOptions } from '../../../src/serve/index.js';
import { withDeadline } from '../../support/index.js';
import { portOf } from '../client.js';
import { open, skip } from '../served.js';

const publicUrl = new URL('../../../src/serve/public.js', import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), 'manycore-socket-io-'));
let missing: string | undefined;

before(async () => {
  const packages = ['socket.io@4.8', 'socket.io-client@4.8'];
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder];
  try {
    await promisify(execFile)('npm', ['install', ...flags, ...packages], { timeout: 120_000 });
  } catch (error) {
    missing = `npm cannot install ${packages.join(' ')}: ${error}`;
  }
});
after(() => rmSync(folder, { recursive: true, force: true }));

const text = (isOwnId: boolean): string => `
  import { createServer } from 'node:http';
  import { Server } from 'socket.io';
  import { self, stickyId } from '${publicUrl}';
  const server = createServer();
  const io = new Server(server);
  if (${isOwnId}) io.engine.generateId = stickyId;
  io.on('connection', (socket) => {
    socket.on('where', (answer) => answer(self.process + '.' + self.loop));
  });
  server.listen(Number(process.env.PORT));`;

/** The part of a client that is used here. */
interface Client {
  readonly io: { readonly engine: Emitter & { readonly transport: { readonly name: string } } };
  once(event: string, listener: (value: unknown) => void): void;
  emit(event: string, ...given: unknown[]): void;
  disconnect(): void;
}
interface Emitter {
  once(event: string, listener: () => void): void;
}

/** Connects; resolves with the loop that answers over a WebSocket, after the first requests by polling. */
async function loopOfClient(port: number, localAddress: string): Promise<string> {
  const { io }: { io: (url: string, options: object) => Client } = createRequire(
    join(folder, 'test.js'),
  )('socket.io-client');
  const client = io(`http://127.0.0.1:${port}`, {
    forceNew: true,
    reconnection: false,
    agent: new Agent({ localAddress }), // its option localAddress is for WebSockets alone
  });
  try {
    const connected = new Promise<void>((resolve, reject) => {
      client.once('connect', () => resolve());
      client.once('connect_error', reject);
    });
    await connected;
    const { engine } = client.io;
    if (engine.transport.name !== 'websocket') {
      const upgraded = new Promise<void>((resolve) => engine.once('upgrade', resolve));
      await withDeadline(upgraded, 20_000, 'a WebSocket');
    }
    return await new Promise((resolve) => client.emit('where', resolve));
  } finally {
    client.disconnect();
  }
}

async function loopsOf100(
  t: TestContext,
  sticky: ServeOptions['sticky'],
  localAddress: (client: number) => string,
): Promise<string[]> {
  const path = join(folder, 'app.mjs');
  writeFileSync(path, text(typeof sticky === 'object'));
  const server = await open(t, path, { processes: 2, loops: 2, port: 0, sticky });
  const loops: string[] = [];
  for (let batch = 0; batch < 100; batch += 20) {
    const clients = Array.from({ length: 20 }, (_, each) =>
      loopOfClient(portOf(server), localAddress(batch + each)),
    );
    loops.push(...(await Promise.all(clients)));
  }
  return loops;
}

const many = (client: number): string => `127.0.2.${client + 1}`;
const one = (): string => '127.0.0.1';

for (const [name, sticky, localAddress, loopCount] of [
  ['by address, of many addresses', 'address', many, 4],
  ['by address, of one address', 'address', one, 1],
  ['by the id of their session, of one address', { query: 'sid' }, one, 4],
] as const) {
  test(`100 of 100 clients connect with default transports ${name}`, { skip }, async (t) => {
    if (missing !== undefined) return t.skip(missing);
    if (localAddress === many && process.platform !== 'linux') return t.skip('127.0.2.x');
    const loops = await loopsOf100(t, sticky, localAddress);
    assert.equal(loops.length, 100);
    assert.equal(new Set(loops).size, loopCount);
  });
}
