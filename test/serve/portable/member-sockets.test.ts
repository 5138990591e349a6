// Channels between members over Unix sockets: offered, accepted, withdrawn.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { Wire } from '../../../src/channels/index.js';
import { acceptOverSocket, offerOverSocket } from '../../../src/serve/portable/member-sockets.js';
import { waitFor } from '../../support/index.js';

test('an offer is one connection, with messages in both directions', async (t) => {
  const offer = await offerOverSocket();
  const received: unknown[] = [];
  const wireOf = (end: { channel: ConstructorParameters<typeof Wire>[0] } | undefined) => {
    assert.ok(end);
    const wire = new Wire(end.channel, { onMessage: (message) => received.push(message) });
    t.after(() => wire.close());
    return wire;
  };
  const accepted = wireOf(acceptOverSocket(offer.path));
  accepted.post({ text: 'before it is connected' });
  const offered = wireOf(await offer.end);
  offered.post({ text: 'back' });
  await waitFor(() => received.length === 2);
  const texts = received.map((message) => Object(message).text);
  assert.deepEqual(texts.sort(), ['back', 'before it is connected']);
  assert.equal(existsSync(offer.path), false);
});

test('an offer that is withdrawn has no end, and leaves no path', async () => {
  const offer = await offerOverSocket();
  offer.withdraw();
  assert.equal(await offer.end, undefined);
  assert.equal(existsSync(offer.path), false);
});

for (const path of ['/run/docker.sock', '/tmp/mesh-1-0-1.sock', '', 'mesh-1-0-1.sock']) {
  test(`${path || 'no path'} is no path of an offer`, () => {
    assert.throws(() => acceptOverSocket(path), { code: 'WORKER_PROTOCOL' });
  });
}
