// Hostile code writes into the words of its ring: the sandbox ends, and the parent goes on. The indices are those of
// src/channels/shm/layout.ts, written out: these functions travel into sandboxes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wordAt } from '../../src/channels/shm/layout.js';
import { codeOf, type Forger, forger, sandboxPool, skip } from './support.js';

/** A word of the segment that only this side or only the other may write. */
const { replyTail, replyHead, workerState, requestRoom, parentAsleep } = wordAt;

const pieceFlag = 0x4000_0000;

/** Writes a frame with any size and body behind the last one, and moves the tail by `step`. */
function raw(forged: Forger, size: number, body: readonly number[], step: number): void {
  const at = { replyTail: 96, replyAt: 7, ringBytes: 3 };
  const { words } = forged;
  const tail = Atomics.load(words, at.replyTail);
  const ringBytes = words[at.ringBytes] ?? 0;
  const start = ((words[at.replyAt] ?? 0) + (tail & (ringBytes - 1))) >> 2;
  words.set([size, 21, 0, 0, ...body], start);
  Atomics.store(words, at.replyTail, tail + step);
  forged.ring(1);
}

const silence = (): Promise<never> => new Promise(() => {});

const forgeries: readonly (readonly [name: string, forge: (forged: Forger) => void])[] = [
  ['a frame of 2 GB', (forged) => raw(forged, 0x3fff_0000, [], 32)],
  ['a negative size', (forged) => raw(forged, -2, [], 32)],
  ['a size of 0', (forged) => raw(forged, 0, [], 32)],
  ['a frame of half of the ring', (forged) => raw(forged, 512 * 1024, [], 512 * 1024)],
  ['a piece without a size', (forged) => raw(forged, pieceFlag + 16, [], 16)],
  ['a piece of a body of -1', (forged) => raw(forged, pieceFlag + 32, [0, -1074790400, 1, 1], 32)],
  ['a piece of a body of NaN', (forged) => raw(forged, pieceFlag + 32, [0, -524288, 1, 1], 32)],
  [
    'a piece larger than its body',
    (forged) => raw(forged, pieceFlag + 32, [0, 1072693248, 1, 1], 32),
  ],
  ['a tail that no frame ends at', (forged) => raw(forged, 20, [1], 20)],
  ['a tail beyond the ring', (forged) => raw(forged, 16, [], 2 ** 22)],
  ['a tail behind the head', (forged) => raw(forged, 16, [], -64)],
  [
    "the parent's own head, again and again",
    ({ words }) => {
      for (;;) Atomics.add(words, 128, 8);
    },
  ],
  [
    'a state that is none',
    ({ words, ring }) => {
      Atomics.store(words, 320, 7);
      ring(1);
    },
  ],
  [
    'a state that goes back',
    ({ words, ring }) => {
      Atomics.store(words, 320, 0);
      ring(1);
    },
  ],
  [
    'room that nobody has requested',
    ({ words, ring }) => {
      Atomics.store(words, 352, 2);
      ring(1);
    },
  ],
  ['a flood of rings', ({ ring }) => ring(100_000)],
  [
    'a ring at each sleep of the parent',
    ({ words, ring }) => {
      for (;;) if (Atomics.exchange(words, 160, 0) !== 0) ring(1);
    },
  ],
  [
    'a tail that moves to and fro',
    ({ words }) => {
      for (;;) {
        const tail = Atomics.add(words, 96, 8);
        Atomics.store(words, 96, tail);
      }
    },
  ],
];

test('the indices that hostile code uses are those of the segment', () => {
  const used = [replyTail, replyHead, workerState, requestRoom, parentAsleep];
  assert.deepEqual(used, [96, 128, 320, 352, 160]);
});

for (const [name, forge] of forgeries) {
  test(`a sandbox ends for ${name}`, { skip }, async (t) => {
    const pool = sandboxPool(t, {}, { onOutput: () => {}, graceMs: 50 });
    const parent = setInterval(() => {}, 1); // a loop that wakes by itself, as one with other work
    t.after(() => clearInterval(parent));
    await assert.rejects(
      pool.with({ timeoutMs: 60_000 }).run(
        async (act, stay) => {
          act(forger());
          await stay();
        },
        forge,
        silence,
      ),
      (error) => {
        assert.match(`${codeOf(error)} ${error}`, /WORKER_EXITED.*is invalid|WORKER_EXITED.*piece/);
        return true;
      },
    );
    assert.equal(await pool.run(() => 1), 1);
  });
}

test('room that is answered and not made ends a sandbox', { skip }, async (t) => {
  const pool = sandboxPool(t, {}, { graceMs: 50 });
  await pool.run(() => {
    const { words, ring } = forger();
    setTimeout(() => {
      for (;;) if (Atomics.compareExchange(words, 352, 1, 2) === 1) ring(1);
    }, 0);
  });
  await assert.rejects(
    pool.with({ timeoutMs: 60_000 }).run((bytes: Buffer) => bytes.length, Buffer.alloc(9e6)),
    /room that was not made/,
  );
  assert.equal(await pool.run(() => 1), 1);
});

test('a body in pieces of one byte ends a sandbox', { skip }, async (t) => {
  const pool = sandboxPool(t, {}, { graceMs: 50 });
  await assert.rejects(
    pool.with({ timeoutMs: 60_000 }).run(
      async (act, stay) => {
        act(forger());
        await stay();
      },
      (forged: Forger) => raw(forged, 0x4000_0000 + 25, [0, 0x4130_0000, 1, 1], 32), // of 2 ** 20
      silence,
    ),
    /a piece does not belong/,
  );
  assert.equal(await pool.run(() => 1), 1);
});

test('a call whose claim was opened again ends one worker, and not one after the other', {
  skip,
}, async (t) => {
  const pool = sandboxPool(t, {}, { graceMs: 50 });
  await pool.warm();
  await assert.rejects(
    pool.run(() => {
      const { words } = forger();
      words.fill(1, 1024, 1024 + 1024);
      process.exit(3);
    }),
    (error) => codeOf(error) === 'WORKER_EXITED',
  );
  assert.equal(pool.stats().exitedWorkers, 1);
  assert.equal(await pool.run(() => 1), 1);
});

test('large arguments beside another busy sandbox are no forgery', { skip }, async (t) => {
  const pools = [sandboxPool(t), sandboxPool(t)];
  const [chatty, other] = pools;
  let isOver = false;
  const calls = (async () => {
    for (let at = 0; !isOver; at += 1) assert.equal(await chatty?.run((x: number) => x, at), at);
  })();
  for (let round = 0; round < 6; round += 1) {
    assert.equal(await other?.run((bytes: Buffer) => bytes.length, Buffer.alloc(6e6)), 6e6);
  }
  isOver = true;
  await calls;
  assert.deepEqual(
    pools.map((pool) => pool.stats().exitedWorkers),
    [0, 0],
  );
});

test('a body that is announced and never comes costs no memory', { skip }, async (t) => {
  const pool = sandboxPool(t, { resultMb: 1024 }, { graceMs: 50, size: 2 });
  const before = process.memoryUsage().rss;
  const seen = pool.with({ timeoutMs: 60_000 }).run(async () => {
    // One byte of a body of 2^30: 0x41d0000000000000.
    raw(forger(), 0x4000_0000 + 32, [0, 0x41d0_0000, 1, 1], 32);
    return silence();
  });
  const noted = assert.rejects(seen);
  assert.equal(await pool.with({ timeoutMs: 60_000 }).run(() => 1), 1);
  assert.ok(process.memoryUsage().rss - before < 2 ** 29);
  await pool.destroy();
  await noted;
});

test('a body above resultMb is refused before it comes', { skip }, async (t) => {
  const pool = sandboxPool(t, { resultMb: 1 }, { graceMs: 50 });
  await assert.rejects(
    pool.run(() => Buffer.alloc(8 * 2 ** 20)),
    /is too large, 1048576 are the most/,
  );
  assert.equal(await pool.run(() => 1), 1);
});
