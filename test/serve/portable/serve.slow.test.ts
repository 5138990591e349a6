// Servers without the native core: Node alone passes the sockets on, and the kernel places connections. All tests
// of test/serve that need no core pass with `MANYCORE_NATIVE=off`, too; these are run always.

import '../../support/native-off.js';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text as readAll } from 'node:stream/consumers';
import { test } from 'node:test';
import { nativeBinding } from '../../../src/native.js';
import { type ServeOptions, serve } from '../../../src/serve/index.js';
import { isRunning, killOne, waitFor } from '../../support/index.js';
import { begin, bodyOf, bodyOver, keepBusy, portOf } from '../client.js';
import { announced, folder, listens, open, program } from '../served.js';

const publicUrl = new URL('../../../src/serve/public.js', import.meta.url).href;

test('the native core is not there', () => {
  assert.equal(nativeBinding(), undefined);
});

for (const loops of [1, 2]) {
  test(`a program answers from all loops, and a reload loses nothing, ${loops} loops`, async (t) => {
    const server = await open(t, listens, { processes: 2, loops });
    const port = portOf(server);
    const seen = new Set<string>();
    await waitFor(async () => {
      const asked = Array.from({ length: 8 }, () => bodyOf(port));
      for (const body of await Promise.all(asked)) seen.add(body);
      return seen.size === 2 * loops;
    });
    const before = server.pids;
    const load = [keepBusy(port, 4, true), keepBusy(port, 4, false)];
    for (let round = 0; round < 2; round += 1) {
      const answers = load.map((each) => each.answers());
      await server.reload();
      await waitFor(() => load.every((each, at) => each.answers() > (answers[at] ?? 0) + 20));
    }
    for (const each of load) assert.deepEqual((await each.stop()).failures, []);
    assert.equal(server.pids.length, 2);
    assert.ok(server.pids.every((pid) => !before.includes(pid)));
    await waitFor(() => before.every((pid) => !isRunning(pid)));
  });

  test(`a blocked loop is reported with its stack, then replaced, ${loops} loops`, async (t) => {
    const blocks = announced(t, 'manycore:server:blocked');
    const options = { processes: 2, loops, blockedTimeoutMs: 4000, drainTimeoutMs: 1000 };
    const server = await open(t, listens, options);
    const before = server.pids;
    const held = await begin(portOf(server), '/?block=60000');
    held.body.catch(() => {}); // it is killed
    const { stack } = await waitFor(() => blocks.find(({ stack }) => stack !== undefined));
    assert.match(String(stack), /serve\/apps\/listens\.js:\d+/);
    assert.match(await bodyOf(portOf(server)), /^\d+:\d+$/);
    await waitFor(() => server.pids.length === 2 && server.pids.join() !== before.join());
  });

  test(`processes whose supervisor is killed answer what is open, and end, ${loops} loops`, async (t) => {
    const entry = new URL('../../../src/serve/index.js', import.meta.url).href;
    const text = `import { serve } from '${entry}';
      const { pids, addresses } = await serve('${listens}', { processes: 2, loops: ${loops} });
      console.log([addresses[0].port, ...pids].join());`;
    const args = ['--no-warnings', '--input-type=module', '-e', text];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    const errors = readAll(child.stderr);
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const [port = 0, ...pids] = String(line).split(',').map(Number);
    assert.ok(pids.length === 2 && pids.every((pid) => isRunning(pid)));
    const open = await begin(port, '/?wait=1000');
    child.kill('SIGKILL');
    assert.match(await open.body, /^began \d+:\d+$/);
    await waitFor(() => pids.every((pid) => !isRunning(pid)));
    assert.equal(await errors, '');
  });
}

test('the status counts connections and requests of all loops', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 2 });
  const port = portOf(server);
  const held = await begin(port, '/?wait=60000');
  for (let request = 0; request < 5; request += 1) await bodyOf(port);
  const sums = () => {
    const lines = server.status();
    const total = (name: 'connections' | 'openConnections' | 'requests' | 'requestsInFlight') =>
      lines.reduce((sum, line) => sum + line[name], 0);
    const counts = [total('connections'), total('openConnections')];
    return [...counts, total('requests'), total('requestsInFlight')].join();
  };
  assert.deepEqual(new Set(server.status().map(({ state }) => state)), new Set(['ready']));
  await waitFor(() => sums() === '6,1,5,1');
  held.body.catch(() => {});
  held.leave();
  await waitFor(() => sums() === '6,0,5,0');
});

test('a killed process is replaced, and sizes change', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 1, maxProcesses: 3 });
  const [killed = 0] = server.pids;
  process.kill(killed, 'SIGKILL');
  await waitFor(() => server.pids.length === 2 && !server.pids.includes(killed));
  await server.scale(3);
  assert.equal(server.pids.length, 3);
  await server.scale(1);
  assert.equal(server.pids.length, 1);
  assert.match(await bodyOf(portOf(server)), /^\d+:0$/);
});

test('a Unix socket is shared, and its path goes with the server', async (t) => {
  const app = program(t, 'app.mjs', 'export default (q, r) => r.end(String(process.pid));');
  const unix = join(folder(t), 'app.sock');
  const server = await serve(app, { unix, processes: 2, loops: 2 });
  assert.ok(server.pids.includes(Number(await bodyOver(unix))));
  await server.close();
  assert.equal(existsSync(unix), false);
});

test('a program sees no channel of Node, and messages to a parent are dropped, as with the core', async (t) => {
  const text = `process.on('message', () => {});
    const isTaken = process.send('ready');
    export default (q, r) => r.end(String(isTaken));`;
  const server = await open(t, program(t, 'app.mjs', text), { port: 0, loops: 1 });
  assert.equal(await bodyOf(portOf(server)), 'true');
  await server.reload();
  assert.equal(await bodyOf(portOf(server)), 'true');
});

const refused: readonly [string, ServeOptions][] = [
  ['serverNames', { serverNames: ['a.example'] }],
  ['listenFds', { listenFds: [0] }],
  ['sticky', { sticky: 'address' }],
  ['placement: reuseport', { placement: 'reuseport' }],
];
for (const [name, options] of refused) {
  test(`${name} is refused by name`, async () => {
    await assert.rejects(serve(listens, options), (error: unknown) => {
      assert.equal(Object(error).code, 'NATIVE_MISSING');
      return String(Object(error).message).startsWith(`${name} of serve needs the native core`);
    });
  });
}

test('work for one loop runs in one, and follows a reload and a kill', async (t) => {
  const text = `import { onlyOne, self } from '${publicUrl}';
    let isOne = false;
    onlyOne((signal) => {
      isOne = true;
      signal.addEventListener('abort', () => { isOne = false; });
    });
    export default (q, r) => r.end(JSON.stringify([process.pid, self.instance, isOne]));`;
  const server = await open(t, program(t, 'app.mjs', text), { port: 0, processes: 2, loops: 1 });
  /** The process of the one loop, once both have answered. */
  const one = (): Promise<number> =>
    waitFor(async () => {
      const seen = new Map<number, boolean>();
      for (let count = 0; count < 20; count += 1) {
        const [pid, instance, isOne] = JSON.parse(await bodyOf(portOf(server)));
        assert.ok(instance === 0 || instance === 1);
        seen.set(pid, isOne);
      }
      const [first, ...others] = [...seen].filter(([, isOne]) => isOne);
      assert.equal(others.length, 0);
      return seen.size === 2 && first?.[0];
    });
  const before = await one();
  await server.reload();
  const after = await one();
  assert.notEqual(after, before);
  killOne(after, 'SIGKILL');
  await waitFor(async () => (await one()) !== after);
});
