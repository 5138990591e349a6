// Calls while a cluster is left, and afterwards.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BusMessage } from '../../src/bus/index.js';
import { turns } from '../bus/net.js';
import { waitFor } from '../support/index.js';
import { eventually, joinBus, refusals, skip, startServer } from './server.js';

test('requests that wait when the cluster is left', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  there.bus.consumer('never', () => {});
  await there.bus.drained();
  const asked = here.bus.request('never', 0);
  await Promise.all([
    assert.rejects(asked, { code: 'CLUSTER_CLOSED' }),
    here.bus.drained().then(() => here.cluster.close()),
  ]);
});

test('while the cluster is left every refusal has a code, and consumers stay', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const why = refusals(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  const held: BusMessage[] = [];
  here.bus.consumer('hold', (message) => void held.push(message));
  await here.bus.drained();
  const far: unknown[] = [];
  there.bus.consumer('far', ({ body }) => void far.push(body));
  await there.bus.drained();
  for (let sent = 0; sent < 500; sent += 1) there.bus.request('hold', sent).catch(() => {});
  await eventually(() => assert.equal(held.length, 500));
  const codes = new Set<unknown>();
  const note = (error: unknown): void => void codes.add(Object(error).code);
  const handled = new Set<string>();
  const asked: (Promise<unknown> | undefined)[] = [];
  let registered = 0;
  let isOver = false;
  const closing = here.cluster.close().then(() => {
    isOver = true;
  });
  // At first nothing of the connection has been read yet.
  await new Promise((resolve) => process.nextTick(resolve));
  for (; !isOver; await turns(1)) {
    const address = `late ${registered}`;
    here.bus.consumer(address, () => void handled.add(address));
    registered += 1;
    asked.push(here.bus.request('far', 'asked').catch(note));
    for (const say of [() => here.bus.send('far', 'sent'), () => here.bus.publish('far', 'sent')]) {
      try {
        say();
      } catch (error) {
        note(error);
      }
    }
    held.pop()?.reply('late');
    asked.push(held.pop()?.replyAndRequest('late').catch(note));
  }
  await closing;
  asked.push(held.pop()?.replyAndRequest('too late').catch(note));
  await Promise.all(asked);
  codes.delete('BUS_NO_HANDLERS'); // after the end, on one machine
  assert.deepEqual([...codes], ['CLUSTER_CLOSED']);
  await waitFor(() => far.length > 0);
  assert.equal(far[0], 'sent'); // no answer to the request before it could have arrived
  for (let at = 0; at < registered; at += 1) here.bus.send(`late ${at}`, 1);
  await eventually(() => assert.equal(handled.size, registered));
  assert.deepEqual(why, []);
});
