// A worker that dies between any two accesses to shared memory: the parent gets a prefix of the expected
// frames, each whole and once, then one `onClose`, and nothing is left behind.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { offerShm, type ShmEnd } from '../../src/channels/shm/index.js';
import { hasCode } from '../../src/errors.js';
import {
  openDescriptors,
  readText,
  until,
  untilCollected,
  writeText,
} from '../channels/shm-harness.js';

const victimFile = fileURLToPath(new URL('./channel-victim.js', import.meta.url));
/** Small, large enough to be spilled, and one more. */
const texts = ['one', 'two'.repeat(3000), 'three'];

interface Outcome {
  readonly signal: unknown;
  readonly received: string[];
}

/** Lets a victim echo `texts` and die at `step`. */
async function runVictim(step: number, side: 'before' | 'after'): Promise<Outcome> {
  const offer = offerShm({ worker: 'process', spin: step % 2 === 0, ringBytes: 16 * 1024 });
  const child = spawn(
    process.execPath,
    [victimFile, JSON.stringify(offer.ticket), String(step), side],
    { stdio: ['ignore', 'inherit', 'inherit', ...offer.stdio] },
  );
  const end = offer.open();
  const exited = once(child, 'exit');
  child.once('exit', () => end.peerExited());
  const received: string[] = [];
  const closes: unknown[] = [];
  end.channel.handle({
    onFrame: (_kind, task, _target, body) => received.push(`${task}${readText(body)}`),
    onClose: (error) => closes.push(error),
  });
  end.channel.ref();
  sendTexts(end);
  await until(() => received.length === texts.length || closes.length > 0, `step ${step}`);
  end.channel.close();
  const [, signal] = await exited;
  await until(() => closes.length > 0, 'onClose');
  assert.equal(closes.length, 1);
  if (signal === null) assert.equal(closes[0], undefined);
  else assert.ok(closes[0] === undefined || hasCode(closes[0], 'CHANNEL_CLOSED'));
  assert.equal(end.channel.trySend(0, 0, 0, writeText, 'late'), 'closed');
  return { signal, received };
}

function sendTexts({ channel }: ShmEnd): void {
  for (const [task, text] of texts.entries()) {
    assert.equal(channel.trySend(0, task, 0, writeText, text), 'sent');
  }
}

for (const side of ['before', 'after'] as const) {
  test(`a worker that dies ${side} any step loses only unanswered frames`, async (t) => {
    const expected = texts.map((text, task) => `${task}${text}`);
    const counts = new Set<number>();
    let isOver = false;
    for (let step = 1; !isOver && step < 200; step += 3) {
      const outcomes = await Promise.all([0, 1, 2].map((more) => runVictim(step + more, side)));
      for (const { signal, received } of outcomes) {
        assert.deepEqual(received, expected.slice(0, received.length));
        counts.add(received.length);
        // It lived to the end: there are no more steps.
        if (signal === null) isOver = true;
      }
    }
    assert.ok(isOver, 'some step is beyond the last');
    t.diagnostic(`answers before death: ${[...counts].join(', ')}`);
    assert.deepEqual([...counts].sort(), [0, 1, 2, 3]);
    await untilCollected(() => openDescriptors('manycore-').length === 0, 'no memfd is open');
    await until(
      () => openDescriptors('[eventfd]').length === eventfdsBefore,
      'every eventfd is closed',
    );
  });
}

const eventfdsBefore = openDescriptors('[eventfd]').length;
