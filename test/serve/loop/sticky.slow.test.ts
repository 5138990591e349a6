// Clients that stay with one loop: by address, cookie, header and query; through the end of loops and reloads.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ServedApp, ServeOptions } from '../../../src/serve/index.js';
import { rowOfStickyId, stickyId } from '../../../src/serve/self.js';
import { killOne, waitFor } from '../../support/index.js';
import { keepBusy, portOf } from '../client.js';
import { open, program, skip } from '../served.js';

const app = fileURLToPath(new URL('../apps/sticky.js', import.meta.url));

interface Seen {
  /** Number of the process, and of the loop in it. */
  readonly loop: string;
  readonly pid: number;
  readonly id: string;
  readonly cookies: readonly string[];
}

interface Asked {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly localAddress?: string;
}

/** One request over a connection of its own. */
function see(server: ServedApp, { path = '/', headers = {}, localAddress }: Asked): Promise<Seen> {
  const where = { port: portOf(server), host: '127.0.0.1', agent: false } as const;
  return new Promise((resolve, reject) => {
    const from = localAddress === undefined ? {} : { localAddress };
    const asked = request({ ...where, ...from, path, headers }, (response) => {
      const cookies = response.headers['set-cookie'] ?? [];
      text(response).then((body) => resolve({ ...JSON.parse(body), cookies }), reject);
    });
    asked.on('error', reject);
    asked.end();
  });
}

function serveSticky(
  t: TestContext,
  sticky: ServeOptions['sticky'],
  options: ServeOptions = {},
): Promise<ServedApp> {
  return open(t, app, { processes: 2, loops: 2, port: 0, sticky, ...options });
}

/** The loops of `count` clients, each of which connects `times`; fails when one has several loops. */
async function loopsOf(
  server: ServedApp,
  count: number,
  asked: (client: number) => Asked,
  times = 1,
): Promise<string[]> {
  const loops: string[] = [];
  for (let client = 0; client < count; client += 1) {
    const all = Array.from({ length: times }, () => see(server, asked(client)));
    const seen = new Set((await Promise.all(all)).map(({ loop }) => loop));
    assert.equal(seen.size, 1, `client ${client}: ${[...seen].join(' ')}`);
    loops.push([...seen][0] ?? '');
  }
  return loops;
}

function countsOf(loops: readonly string[]): number[] {
  const counts = new Map<string, number>();
  for (const loop of loops) counts.set(loop, (counts.get(loop) ?? 0) + 1);
  return [...counts.values()];
}

const byAddress = (client: number): Asked => ({ localAddress: `127.0.1.${client + 1}` });
const byHeader = (client: number): Asked => ({ headers: { 'x-client': `client ${client}` } });
const byQuery = (client: number): Asked => ({ path: `/?a=1&room=${client}` });

const noAddresses = process.platform === 'linux' ? skip : 'only Linux has all of 127.0.0.0/8';

for (const [name, sticky, asked] of [
  ['address', 'address', byAddress],
  ['header', { header: 'X-Client' }, byHeader],
  ['query', { query: 'room' }, byQuery],
] as const) {
  test(`200 clients by ${name} stay, are spread, and only those of a dead process move`, {
    skip: noAddresses,
  }, async (t) => {
    const server = await serveSticky(t, sticky);
    const before = await loopsOf(server, 200, asked, 5);
    const counts = countsOf(before);
    assert.equal(counts.length, 4);
    assert.ok(
      counts.every((count) => count >= 20),
      counts.join(' '),
    );
    const dead = server.status().find(({ pid }) => pid === server.pids[0])?.process;
    const isOfDead = (loop: string | undefined): boolean => loop?.startsWith(`${dead}.`) === true;
    killOne(server.pids[0], 'SIGKILL');
    await waitFor(() => server.pids.length === 1);
    const during = await loopsOf(server, 60, asked);
    for (const [client, loop] of during.entries()) {
      // Clients of the dead one go to others; the replacement may be ready by now.
      if (!isOfDead(before[client]) && loop !== before[client]) {
        assert.ok(!before.includes(loop), `client ${client}: ${before[client]} ${loop}`);
      }
    }
    await waitFor(() => server.pids.length === 2);
    await loopsOf(server, 60, asked, 3);
  });
}

test('clients stay with a blocked loop', { skip }, async (t) => {
  const server = await serveSticky(t, 'address');
  const { loop } = await see(server, {});
  const blocked = see(server, { path: '/block' });
  const others = Array.from({ length: 10 }, () => see(server, {}));
  for (const other of await Promise.all([blocked, ...others])) assert.equal(other.loop, loop);
});

test('reloads lose no request of sticky clients', { skip }, async (t) => {
  const server = await serveSticky(t, 'address');
  let isOver = false;
  let answers = 0;
  const client = async (number: number): Promise<void> => {
    while (!isOver) {
      await see(server, byAddress(number));
      answers += 1;
    }
  };
  const clients = Promise.all(Array.from({ length: 6 }, (_, number) => client(number)));
  for (let round = 0; round < 4; round += 1) {
    const before = answers;
    await server.reload();
    await waitFor(() => answers > before + 50);
  }
  isOver = true;
  await clients;
});

for (const [name, sticky] of [
  ['their address', 'address'],
  ['a header that they do not send', { header: 'x-client' }],
] as const) {
  test(`reloads and sizes lose no request, kept connections or not, by ${name}`, {
    skip,
  }, async (t) => {
    const server = await serveSticky(t, sticky, { maxProcesses: 3 });
    const port = portOf(server);
    const load = [keepBusy(port, 8, true), keepBusy(port, 8, false)];
    for (const size of [3, undefined, 1, undefined, 2]) {
      const answers = load.map((each) => each.answers());
      if (size === undefined) await server.reload();
      else await server.scale(size);
      await waitFor(() => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 50));
    }
    for (const each of load) assert.deepEqual((await each.stop()).failures, []);
  });
}

test('the cookie is set once, beside those of the program, and leads to its loop', {
  skip,
}, async (t) => {
  const server = await serveSticky(t, { cookie: 'loop' });
  const loops = new Set<string>();
  for (const path of ['/', '/cookies', '/object', '/array', '/head', '/', '/', '/']) {
    const first = await see(server, { path });
    loops.add(first.loop);
    const own = first.cookies.filter((cookie) => !cookie.startsWith('loop='));
    const expected = { '/cookies': 2, '/object': 1, '/array': 1 }[path] ?? 0;
    assert.equal(own.length, expected, path);
    const [cookie = ''] = first.cookies.find((each) => each.startsWith('loop='))?.split(';') ?? [];
    const headers = { Cookie: `a=b; ${cookie}; c=d` };
    for (let count = 0; count < 3; count += 1) {
      const next = await see(server, { headers });
      assert.deepEqual([next.loop, next.cookies], [first.loop, []], path);
    }
  }
  // New clients go to the least loaded loop; one that has no core for a moment comes last.
  await waitFor(async () => loops.add((await see(server, {})).loop).size === 4);
  const first = await see(server, {});
  await server.reload();
  const headers = { Cookie: first.cookies[0]?.split(';')[0] ?? '' };
  await waitFor(() => server.status().every(({ state }) => state !== 'draining'));
  const next = await see(server, { headers });
  assert.notEqual(next.loop, first.loop);
  assert.match(next.cookies[0] ?? '', /^loop=mc\d+-[\w-]+; Path=\/; HttpOnly$/);
});

test('an id that a loop has made leads to it', { skip }, async (t) => {
  const server = await serveSticky(t, { query: 'sid' });
  const loops = new Set<string>();
  // A loop that has no core for a moment comes last.
  for (let count = 0; count < 12 || (loops.size < 4 && count < 200); count += 1) {
    const { loop, id } = await see(server, {});
    loops.add(loop);
    for (let again = 0; again < 3; again += 1) {
      assert.equal((await see(server, { path: `/?EIO=4&sid=${id}` })).loop, loop);
    }
  }
  assert.equal(loops.size, 4);
});

test('apps that share a port by name have sticky clients of their own', { skip }, async (t) => {
  const sticky = { header: 'x-client' };
  const one = await serveSticky(t, sticky, { serverNames: ['one.example'] });
  const port = portOf(one);
  const other = await serveSticky(t, undefined, { serverNames: ['other.example'], port });
  const to = (client: number, Host: string): Asked => ({
    headers: { 'x-client': String(client), Host },
  });
  const loops = await loopsOf(one, 40, (client) => to(client, 'one.example'), 3);
  assert.equal(new Set(loops).size, 4);
  const { pid } = await see(one, to(1, 'other.example'));
  assert.ok(other.pids.includes(pid));
  await one.reload();
  assert.ok(one.pids.includes((await see(other, to(1, 'one.example'))).pid));
  await one.close();
  await see(other, to(1, 'other.example'));
});

test('another app on the port of a sticky one is refused', { skip }, async (t) => {
  const server = await serveSticky(t, 'address');
  for (const sticky of ['address', undefined] as const) {
    await assert.rejects(serveSticky(t, sticky, { port: portOf(server) }), /EADDRINUSE/);
  }
});

test('a request in pieces, or with a very long head, is answered', { skip }, async (t) => {
  const server = await serveSticky(t, { header: 'x-client' });
  const over = async (pieces: readonly string[]): Promise<string> => {
    const socket = connect(portOf(server), '127.0.0.1');
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return await text(socket);
  };
  const end = 'Connection: close\r\n\r\n';
  const pieces = ['GET / HT', 'TP/1.1\r\nHost: a\r\n', 'x-client: 1\r', `\n${end}`];
  assert.match(await over(pieces), /^HTTP\/1.1 200/);
  const long = `GET / HTTP/1.1\r\nHost: a\r\nx: ${'x'.repeat(20_000)}\r\n${end}`;
  assert.match(await over([long]), /^HTTP\/1.1 431/);
});

test('outside of a server an id has no loop', () => {
  assert.equal(rowOfStickyId(stickyId()), undefined);
  assert.notEqual(stickyId(), stickyId());
  assert.equal(rowOfStickyId('mc12-a'), 12);
  for (const odd of ['', 'mc-a', 'mc12', 'mc12345678901-a', 'MC1-a']) {
    assert.equal(rowOfStickyId(odd), undefined, odd);
  }
});

test('a start that fails after the program has listened is refused with its reason', {
  skip,
}, async (t) => {
  const broken = program(
    t,
    'app.mjs',
    `import { createServer } from 'node:http';
    createServer().listen(0, () => { throw new Error('no database'); });`,
  );
  const options = { processes: 2, loops: 1, port: 0, sticky: 'address' } as const;
  await assert.rejects(open(t, broken, options), { code: 'SERVE_START_FAILED' });
});
