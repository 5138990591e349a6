// A server, or a network, that is slow: what passes is late, or stands still for a while.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { announcements } from '../../src/internal/index.js';
import { startProxy } from './proxy.js';
import { eventually, joinBus, refusals, skip, startServer } from './server.js';

const secret = 'nobody else knows this';

function upTo(end: number, start = 0): number[] {
  return Array.from({ length: end - start }, (_, at) => start + at);
}

for (const options of [{ secret }, {}]) {
  const name = `what comes late, from a connection that is over, does not come behind what came later`;
  test(`${name}, ${'secret' in options ? 'with' : 'without'} a secret`, { skip }, async (t) => {
    const server = await startServer(t);
    const proxy = await startProxy(t, server);
    const nats = { servers: proxy.url, pingInterval: 300 };
    const [here, there] = [
      await joinBus(t, server, { ...options, nats }),
      await joinBus(t, server, options),
    ];
    const lost: unknown[] = [];
    let back = 0;
    const noteLost = (message: unknown): void => void lost.push(message);
    const noteBack = (): void => {
      back += 1;
    };
    announcements.clusterLost.subscribe(noteLost);
    announcements.clusterBack.subscribe(noteBack);
    t.after(() => {
      announcements.clusterLost.unsubscribe(noteLost);
      announcements.clusterBack.unsubscribe(noteBack);
    });
    const why = refusals(t);
    const got: unknown[] = [];
    there.bus.consumer('count', ({ body }) => void got.push(body));
    await there.bus.drained();
    for (const sent of upTo(10)) here.bus.send('count', sent);
    await eventually(() => assert.deepEqual(got, upTo(10)));

    proxy.hold();
    for (const sent of upTo(20, 10)) here.bus.send('count', sent);
    await eventually(() => assert.equal(back, 1));
    for (const sent of upTo(30, 20)) here.bus.send('count', sent);
    await eventually(() => assert.deepEqual(got, [...upTo(10), ...upTo(30, 20)]));
    proxy.release();
    await eventually(() => assert.equal(why.length, 10));
    assert.match(why.join(), /late/);
    assert.deepEqual(got, [...upTo(10), ...upTo(30, 20)]);
    assert.equal(lost.length, 1);
    assert.ok(Object(lost[0]).unconfirmed >= 10);
  });
}
