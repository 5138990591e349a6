// Shared memory that does not lie plainly in the arguments: in what a function captured, in class
// instances, in Maps, in errors. It must arrive as the same memory, and be freed after use.

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { shareBlocks } from '../../../src/channels/index.js';
import { Pool, shared } from '../../../src/public.js';
import { openDescriptors, waitFor } from '../../support/index.js';
import { Gate, openPool, ways } from '../calls/ways.js';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

class Frame {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

class FrameError extends Error {
  readonly frame: Frame;

  constructor(frame: Frame) {
    super('a frame');
    this.frame = frame;
  }
}

const sizeBytes = 200_000;

/** Uses shared memory in some way; no view of it is left when it has ended. */
type Use = (pool: Pool) => Promise<void>;

const uses: readonly (readonly [string, Use])[] = [
  [
    'a captured buffer',
    async (pool) => {
      const bytes = shared(sizeBytes);
      const read = await pool.run(() => {
        bytes.fill(3);
        return bytes.byteLength;
      });
      assert.deepEqual([read, bytes[0], bytes[sizeBytes - 1]], [sizeBytes, 3, 3]);
    },
  ],
  [
    'a buffer captured with two views, and an object that V8 alone cannot write',
    async (pool) => {
      const bytes = shared(sizeBytes);
      const captured = { whole: bytes, part: bytes.subarray(5, 10), frame: new Frame(bytes) };
      const isSame = await pool.run(() => {
        captured.part.fill(4);
        captured.frame.bytes[0] = 5;
        return captured.whole.buffer === captured.part.buffer;
      });
      assert.deepEqual([isSame, bytes[0], bytes[4], bytes[5], bytes[9]], [true, 5, 0, 4, 4]);
    },
  ],
  [
    'a captured buffer, called several times',
    async (pool) => {
      const bytes = shared(sizeBytes);
      const add = (by: number): void => {
        bytes[0] = (bytes[0] ?? 0) + by;
      };
      for (const by of [1, 2, 3]) await pool.run(add, by);
      assert.equal(bytes[0], 6);
    },
  ],
  [
    'a buffer in an instance',
    async (pool) => {
      const frame = new Frame(shared(sizeBytes));
      await pool.run((given: Frame) => void given.bytes.fill(6), frame);
      assert.equal(frame.bytes[sizeBytes - 1], 6);
    },
  ],
  [
    'a buffer in a Map',
    async (pool) => {
      const map = new Map([['bytes', shared(sizeBytes)]]);
      await pool.run((given: Map<string, Buffer>) => void given.get('bytes')?.fill(7), map);
      assert.equal(map.get('bytes')?.[sizeBytes - 1], 7);
    },
  ],
  [
    'a buffer that a task made and returns in an instance',
    async (pool) => {
      const frame = await pool.run(() => new Frame(shared(Buffer.alloc(200_000, 8))));
      assert.ok(frame instanceof Frame);
      assert.equal(frame.bytes.compare(Buffer.alloc(sizeBytes, 8)), 0);
      await pool.run((given: Frame) => void given.bytes.fill(9), frame);
      assert.equal(frame.bytes[sizeBytes - 1], 9);
    },
  ],
  [
    'a buffer of the caller that a task returns in an instance',
    async (pool) => {
      const bytes = shared(sizeBytes);
      const frame = await pool.run((given: Buffer) => new Frame(given), bytes);
      bytes[1] = 10;
      assert.equal(frame.bytes[1], 10);
    },
  ],
  [
    'a buffer in an error that a task throws',
    async (pool) => {
      const failing = pool.run(() => {
        throw new FrameError(new Frame(shared(Buffer.alloc(200_000, 11))));
      });
      await assert.rejects(failing, (error: FrameError) => {
        assert.equal(error.frame.bytes[sizeBytes - 1], 11);
        return true;
      });
    },
  ],
  [
    'a buffer captured by a call that is aborted before it is sent',
    async (pool) => {
      const bytes = shared(sizeBytes);
      const controller = new AbortController();
      const call = pool.with({ signal: controller.signal }).run(() => bytes[0]);
      controller.abort();
      await assert.rejects(call, { code: 'ABORTED' });
    },
  ],
  [
    'a buffer captured by a call whose worker dies',
    async (pool) => {
      const bytes = shared(sizeBytes);
      const call = pool.run(() => {
        bytes[0] = 12;
        process.exit(1);
      });
      await assert.rejects(call, { code: 'WORKER_EXITED' });
      assert.equal(bytes[0], 12);
    },
  ],
];

/** Uses of one buffer; no view of it is left in the worker when they have ended. */
const usesOfOne: readonly (readonly [
  string,
  (pool: Pool, bytes: Buffer, folder: string) => Promise<void>,
])[] = [
  [
    'a buffer that was captured, passed in instances and returned',
    async (pool, bytes) => {
      const [first, second] = [new Frame(bytes), new Frame(bytes)];
      await pool.run((given: Frame) => given.bytes.fill(bytes[0] ?? 0, 0, 1), first);
      await pool.run((given: Frame) => new Frame(given.bytes), second);
    },
  ],
  [
    'an argument of a function that cannot be made in the worker',
    async (pool, bytes, folder) => {
      const file = `${folder}/gone.mjs`;
      writeFileSync(file, 'export class Gone {}');
      const { Gone } = await import(file);
      rmSync(file);
      const call = pool.run((given: Buffer) => [new Gone(), given[0]], bytes);
      await assert.rejects(call, { code: 'TRANSFER_IMPORT_FAILED' });
    },
  ],
];

function isArenaOpen(): boolean {
  return openDescriptors().some((target) => target.includes('manycore-arena'));
}

for (const way of ways.filter(({ channel }) => channel === 'shm')) {
  for (const [what, use] of uses) {
    test(`${way.name}: ${what} is the same memory on both sides, and freed after use`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      await use(pool);
      assert.ok(isArenaOpen());
      await pool.close();
      await waitFor(() => {
        collect();
        return !isArenaOpen();
      });
    });
  }

  test(`${way.name}: a buffer that a set-up captured is there for each worker, and freed with the pool`, async () => {
    await (async () => {
      const bytes = shared(sizeBytes);
      const setup = (): void => {
        bytes[0] = (bytes[0] ?? 0) + 1;
      };
      // Not by openPool: the pool that is to be destroyed after the test would keep `setup`.
      const { worker, channel } = way;
      const pool = new Pool({ worker, channel, size: 1, maxTasksPerWorker: 1, setup });
      try {
        for (const _ of [1, 2, 3]) await pool.run(() => 0);
        assert.equal(bytes[0], 3);
      } finally {
        await pool.close();
      }
    })();
    await waitFor(() => {
      collect();
      return !isArenaOpen();
    });
  });

  for (const [what, use] of usesOfOne) {
    test(`${way.name}: ${what} is freed while the pool lives`, async (t) => {
      const pool = openPool(t, { size: 1 }, way);
      const { blocks, leave } = shareBlocks();
      t.after(leave);
      const block = await (async () => {
        const bytes = shared(sizeBytes);
        await use(pool, bytes, new Gate(t).folder);
        return blocks.sharedBlock(bytes.buffer);
      })();
      assert.ok(block);
      const isInUse = (): boolean => {
        try {
          blocks.borrow(block, true);
          return true;
        } catch {
          return false;
        }
      };
      await waitFor(async () => {
        collect();
        await pool.run(() => {
          setFlagsFromString('--expose-gc');
          runInNewContext('gc')();
        });
        return !isInUse();
      });
    });
  }

  test(`${way.name}: shared bytes that another channel's task captured and gets in an object are one copy`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const channel = way.worker === 'process' ? 'socket' : 'memory';
    const other = openPool(t, { size: 1, worker: way.worker, channel });
    const bytes = shared(new Uint8Array([1, 2, 3]));
    const write = (given: Frame): number[] => {
      given.bytes[0] = 9;
      return [...bytes, given.bytes[0]];
    };
    assert.deepEqual(await other.run(write, new Frame(bytes)), [9, 2, 3, 9]);
    assert.deepEqual([...bytes], [1, 2, 3]);
    assert.deepEqual(await pool.run(write, new Frame(bytes)), [9, 2, 3, 9]);
    assert.deepEqual([...bytes], [9, 2, 3]);
  });
}

test('a captured view of 512 MiB is not looked at element by element', async (t) => {
  const pool = openPool(t, { size: 1, channel: 'shm' });
  // A list of its names would hold more texts than this process may.
  const large = { samples: new Uint8Array(shared(2 ** 29).buffer), half: (of: number) => of / 2 };
  assert.equal(await pool.run(() => large.half(large.samples.length)), 2 ** 28);
});
