// Which consumer gets a message of a peer, while consumers come, go and are between two loops.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventBus } from '../../src/bus/index.js';
import type { Peer } from '../../src/bus/transports/transport.js';
import { random } from '../support/index.js';

const peer: Peer = { hasRoom: true, announce() {}, note() {}, deliver() {} };

test('a message of a peer finds a consumer whenever the peer may reach one', (t) => {
  const chance = random(t);
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  bus.attach(peer);
  const { receivers } = bus.parts;
  const reached = new Map<ReturnType<EventBus['consumer']>, boolean>();
  for (let step = 0; step < 2000; step += 1) {
    const known = [...reached.keys()];
    if (known.length < 2 || chance.integer(0, 3) === 0) {
      reached.set(
        bus.consumer('here', () => {}),
        true,
      );
    } else if (known.length > 4 || chance.integer(0, 3) === 0) {
      const gone = chance.pick(known);
      gone.close();
      reached.delete(gone);
    } else {
      const moving = chance.pick(known);
      const isReached = chance.integer(0, 2) === 0;
      receivers.setOpen(moving, 1, { isReached: () => isReached, isAnnouncedTo: () => isReached });
      reached.set(moving, isReached);
    }
    const wanted = [...reached].flatMap(([each, isReached]) => (isReached ? [each] : []));
    const found = receivers.nextForPeer(peer, 'here');
    if (wanted.length === 0) assert.equal(found, undefined);
    else assert.ok(found !== undefined && wanted.includes(found), `step ${step}`);
  }
});
