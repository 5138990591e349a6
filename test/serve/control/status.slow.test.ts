// State of loops in the scoreboard, as `status()` returns it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitFor } from '../../support/index.js';
import { begin, bodyOf, portOf } from '../client.js';
import { listens, open, program, skip } from '../served.js';

test('the status counts bytes sent by the kernel, and the lag of a loop', {
  skip,
}, async (t) => {
  const staticModule = new URL('../../../src/http-apps/static/static.js', import.meta.url).href;
  const app = program(
    t,
    'app.mjs',
    `import { serveStatic } from '${staticModule}';
    import { writeFileSync } from 'node:fs';
    const root = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
    writeFileSync(root + '/large.bin', Buffer.alloc(2 ** 20));
    const files = serveStatic(root);
    export default (request, response) => {
      if (request.url !== '/block') return files(request, response);
      response.write('began ');
      const endMs = performance.now() + 2500;
      setImmediate(() => { while (performance.now() < endMs); response.end('done'); });
    };`,
  );
  const server = await open(t, app, { loops: 1, port: 0 });
  const status = () => server.status()[0];
  assert.equal((await bodyOf(portOf(server), '/large.bin')).length, 2 ** 20);
  await waitFor(() => (status()?.bytesWritten ?? 0) >= 2 ** 20);
  const before = status()?.lagMs ?? 0; // above 0 on a busy machine
  await (await begin(portOf(server), '/block')).body;
  await waitFor(() => (status()?.lagMs ?? 0) > before + 500); // it is asked once a second
});

test('the status has a line for each loop', async (t) => {
  const server = await open(t, listens, { processes: 2, loops: 2 });
  const port = portOf(server);
  const waiting = await begin(port, '/?wait=60000');
  for (let request = 0; request < 5; request += 1) await bodyOf(port);
  const total = (name: 'connections' | 'openConnections' | 'requests' | 'requestsInFlight') =>
    server.status().reduce((sum, line) => sum + line[name], 0);
  const states = server.status().map(({ state }) => state);
  assert.deepEqual(states, ['ready', 'ready', 'ready', 'ready']);
  await waitFor(() => total('connections') === 6);
  // The last client may have its answer before the scoreboard is updated.
  await waitFor(() => total('requestsInFlight') === 1 && total('openConnections') === 1);
  await waitFor(() => total('requests') === 5);
  waiting.leave();
  await waitFor(() => total('requestsInFlight') === 0 && total('openConnections') === 0);
  assert.equal(total('requests'), 5);
});

test('a process that drains does so in all its lines, also for loops that hold nothing', async (t) => {
  const server = await open(t, listens, { processes: 1, loops: 2, drainTimeoutMs: 60_000 });
  const [old] = server.pids;
  const held = await begin(portOf(server), '/?wait=60000');
  await server.reload();
  const states = () => {
    const found = server.status().flatMap(({ pid, state }) => (pid === old ? [state] : []));
    assert.ok(!found.includes('free'));
    return found;
  };
  const timer = setInterval(states, 10);
  t.after(() => clearInterval(timer));
  await waitFor(() => states().join() === 'draining,draining');
  held.body.catch(() => {});
  held.leave();
});
