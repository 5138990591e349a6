// Numbers in shared memory are input: whatever a peer writes there, the channel ends with a code or goes on,
// and the process lives.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { wordAt } from '../../src/channels/shm/layout.js';
import { hasCode } from '../../src/errors.js';
import { random } from '../support/index.js';
import { openIsolatedPair, openPair, until, writeText } from './shm-harness.js';

const forgeries: [string, (words: Int32Array, requestAt: number) => void][] = [
  ['a tail beyond the ring', (words) => Atomics.store(words, wordAt.requestTail, 1 << 20)],
  ['a tail behind the head', (words) => Atomics.store(words, wordAt.requestTail, -8)],
  ['a tail that no frame ends at', (words) => Atomics.add(words, wordAt.requestTail, 4)],
  ['a size of 0', (words, at) => Atomics.store(words, at, 0)],
  ['a size below a header', (words, at) => Atomics.store(words, at, 15)],
  ['a size beyond the tail', (words, at) => Atomics.store(words, at, 4000)],
  ['the largest size', (words, at) => Atomics.store(words, at, 0x7fff_ffff)],
  ['a gap that does not end at the end', (words, at) => Atomics.store(words, at, -24)],
  ['a gap of the smallest number', (words, at) => Atomics.store(words, at, -0x8000_0000)],
  ['a spilled frame without a place', (words, at) => Atomics.store(words, at, 0x4000_0018)],
];

for (const [title, forge] of forgeries) {
  test(`${title} ends the channel with SEGMENT_CORRUPT`, async (t) => {
    const [parent, worker] = openPair(t, { ringBytes: 4096 });
    const closes: unknown[] = [];
    worker.channel.handle({
      onClose: (error) => closes.push(error),
      onFrame: () => assert.fail('a forged frame was delivered'),
    });
    worker.channel.ref();
    assert.equal(parent.channel.trySend(1, 2, 3, writeText, 'whole'), 'sent');
    forge(worker.memory.words, worker.requestAt >> 2);
    await until(() => closes.length > 0, 'onClose');
    assert.ok(hasCode(closes[0], 'SEGMENT_CORRUPT'));
    assert.equal(worker.channel.trySend(1, 2, 3, writeText, 'late'), 'closed');
    assert.equal(closes.length, 1);
  });
}

test('a forged head ends the writing side with SEGMENT_CORRUPT, outside of trySend', async (t) => {
  const [parent, worker] = openPair(t, { ringBytes: 1024 });
  const closes: unknown[] = [];
  parent.channel.handle({ onClose: (error) => closes.push(error) });
  Atomics.store(worker.memory.words, wordAt.requestHead, 12345);
  const outcomes = new Set<string>();
  for (let i = 0; i < 100; i++) outcomes.add(parent.channel.trySend(0, i, 0, writeText, 'x'));
  assert.ok(outcomes.has('closed'));
  assert.equal(closes.length, 0);
  await until(() => closes.length > 0, 'onClose');
  assert.ok(hasCode(closes[0], 'SEGMENT_CORRUPT'));
});

const codes = ['SEGMENT_CORRUPT', 'CHANNEL_FRAME_CORRUPT'] as const;
/** Both ends in this thread, whichever the kind of the channel. */
const opens = {
  'a segment': (t: TestContext) => openPair(t, { ringBytes: 1024 }),
  'an isolated segment': (t: TestContext) =>
    openIsolatedPair(t, { ringBytes: 1024, maxFrameBytes: 1e6 }),
};

for (const [name, openEnds] of Object.entries(opens)) {
  test(`random numbers anywhere in ${name} never harm the process`, async (t) => {
    const chance = random(t);
    const outcomes = new Map<string, number>();
    for (let round = 0; round < 100; round++) {
      const [parent, worker] = openEnds(t);
      let outcome = 'open';
      for (const end of [parent, worker]) {
        end.channel.handle({
          onClose: (error) => {
            const isKnown = codes.some((code) => hasCode(error, code));
            assert.ok(error === undefined || isKnown, String(error));
            if (outcome !== 'corrupt') outcome = error === undefined ? 'closed' : 'corrupt';
          },
        });
        end.channel.ref();
      }
      const { words } = parent.memory;
      for (let step = 0; step < 20; step++) {
        for (const end of [parent, worker]) {
          const outcome = end.channel.trySend(step, step, step, writeText, 'y'.repeat(step * 7));
          assert.notEqual(outcome, 'refused');
        }
        const anywhere = chance.integer(0, 3) === 0;
        const index = anywhere ? chance.integer(0, words.length - 1) : 32 * chance.integer(1, 12);
        words[index] =
          chance.integer(0, 1) === 0
            ? chance.integer(-64, 64) * 8
            : chance.integer(-(2 ** 31), 2 ** 31 - 1);
        await new Promise((resolve) => setImmediate(resolve));
      }
      parent.channel.destroy();
      worker.channel.destroy();
      parent.peerExited();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    t.diagnostic(`outcomes: ${JSON.stringify([...outcomes])}`);
    assert.ok((outcomes.get('corrupt') ?? 0) > 10, 'the forgeries reach what is checked');
  });
}
