// Event emitters with listeners that are called once: Node keeps a bound function of its own for each.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, test } from 'node:test';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

interface Heard {
  readonly list: unknown[];
  readonly emitter: EventEmitter;
  readonly listener: (value: unknown) => void;
}

function makeHeard(): Heard {
  const emitter = new EventEmitter();
  const list: unknown[] = [];
  const listener = (value: unknown): void => void list.push(value);
  emitter.once('one', listener).on('each', listener).prependOnceListener('each', listener);
  return { list, emitter, listener };
}

function emitAll({ list, emitter, listener }: Heard): unknown {
  emitter.emit('one', 1);
  emitter.emit('one', 2);
  emitter.emit('each', 3);
  emitter.emit('each', 4);
  const before = emitter.listenerCount('late');
  emitter.once('late', listener).removeListener('late', listener);
  return [list.slice(), before, emitter.listenerCount('one'), emitter.listenerCount('each')];
}

const expected = [[1, 3, 3, 4], 0, 0, 1] as const;

test('a listener that is called once is so on the other side', async () => {
  assert.deepEqual(emitAll(makeHeard()), expected);
  const heard = makeHeard();
  assert.deepEqual(await peer.run(() => emitAll(heard)), expected, 'captured');
  assert.deepEqual(await peer.run((given) => emitAll(given), makeHeard()), expected, 'given');
  assert.deepEqual(emitAll(await peer.run(() => makeHeard())), expected, 'returned');
});

test('a listener that is removed before it is called is gone on the other side', async () => {
  const removed = await peer.run((given) => {
    given.emitter.removeListener('one', given.listener);
    given.emitter.emit('one', 1);
    return given.list;
  }, makeHeard());
  assert.deepEqual(removed, []);
});
