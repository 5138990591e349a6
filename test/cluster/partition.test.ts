// Machines that are cut off: no packet goes to them or comes from them, and nobody is told. Each test has a
// network of its own, with a real nats-server in it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startMember } from './member.js';
import { openNetwork, skip } from './network.js';
import { eventually } from './server.js';

/** So a server, and a node, notices within two seconds that the other is gone. */
const quickServer = ['ping_interval: "500ms"', 'ping_max: 1'];
const pingInterval = 300;

test('a node that is cut off is asked no more, and asked again when it is back', {
  skip,
}, async (t) => {
  const [hub, far] = await openNetwork(t, 2);
  assert.ok(hub !== undefined && far !== undefined);
  const nats = { servers: await hub.startServer(quickServer), pingInterval };
  const here = await startMember(hub, { nats });
  const near = await startMember(hub, { nats });
  const away = await startMember(far, { nats });
  for (const member of [near, away]) {
    await member.ask(async ({ bus }) => {
      bus.consumer('who', (message) => message.reply(process.pid));
      await bus.drained();
    });
  }
  await away.ask(async ({ bus }) => {
    bus.consumer('only', (message) => message.reply('away'));
    await bus.drained();
  });
  const whoAnswers = (): Promise<unknown[]> =>
    here.ask(async ({ bus }) => {
      const pids = new Set<unknown>();
      for (let asked = 0; asked < 30; asked += 1) pids.add((await bus.request('who', 0)).body);
      return [...pids].sort();
    });
  const both = [near.pid, away.pid].sort();
  assert.deepEqual(await whoAnswers(), both);

  far.cut();
  const askOnly = () => here.ask(({ bus }) => bus.request('only', 0, { timeoutMs: 200 }));
  await assert.rejects(askOnly(), { code: 'BUS_TIMEOUT' }); // nobody knows yet
  // Asking would keep the server from asking: it takes what it sends for a sign of life (before 2.10).
  await eventually(async () => assert.equal(await here.count('leave', away.pid), 1));
  await assert.rejects(askOnly(), { code: 'BUS_NO_HANDLERS' });
  assert.deepEqual(await whoAnswers(), [near.pid]);
  await eventually(async () => assert.equal(await away.count('lost'), 1));

  far.heal();
  await eventually(async () => assert.equal(await away.count('back'), 1));
  await eventually(async () => assert.equal(await here.count('join', away.pid), 2));
  await eventually(async () => assert.deepEqual(await whoAnswers(), both));
  assert.equal(await here.ask(async ({ bus }) => (await bus.request('only', 0)).body), 'away');
  assert.equal(await here.count('lost'), 0);
});
