// Frames that no honest worker sends, and values that are not what they pretend to be: they end the partition, or change
// nothing. Not here: ends by limits (ends.test.ts), values that are plain data (values.test.ts).

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { assertWell, type End, silence, testEnds } from './hostile.js';
import { codeOf, forger, sandboxPool, skip } from './support.js';

const ends: readonly End[] = [
  {
    name: 'a definition',
    run: () => {
      forger().send(1, 0, 5, Buffer.from('x'));
      return silence();
    },
    seen: /kind 1, which no partition/,
  },
  {
    name: 'a chunk of a map',
    run: () => {
      forger().send(15, 0, 5);
      return silence();
    },
    seen: /kind 15, which no partition/,
  },
  {
    name: 'a block of memory',
    run: () => {
      forger().send(2, 0, 0, Buffer.alloc(40));
      return silence();
    },
    seen: /kind 2, which no partition/,
  },
  {
    name: 'a kind of frame that does not exist',
    run: () => {
      forger().send(-1, 0, 0);
      return silence();
    },
    seen: /kind -1, which no partition/,
  },
  {
    name: 'a result that is cut off',
    run: () => {
      forger().send(21, 0, 0, Buffer.from([9, 255, 0, 0, 0]));
      return silence();
    },
    seen: /does not fit a frame/,
  },
  {
    name: 'a ready message of garbage',
    run: () => {
      forger().send(20, 0, 0, Buffer.from([255]));
      return silence();
    },
    seen: /no value begins with tag 255/,
  },
  {
    name: 'memory statistics of garbage',
    run: () => {
      forger().send(28, 0, 0, Buffer.from([4, 1, 0, 0, 0]));
      return silence();
    },
    seen: /no memory/,
  },
  {
    name: 'an item of no stream',
    run: () => {
      forger().send(24, 0, 0, Buffer.from([1]));
      return silence();
    },
    seen: /an item too much/,
  },
  {
    name: 'a forged function',
    run: () => {
      forger().send(21, 0, 0, slow(graphOf([[0, 'eval']])));
      return silence();
    },
    seen: /has code in it/,
  },
  {
    name: 'a forged class',
    run: () => {
      forger().send(21, 0, 0, slow(graphOf([[6, 1, [1, 2], [], 0, 0]])));
      return silence();
    },
    seen: /has code in it/,
  },
  {
    name: 'a forged error of another class',
    run: () => {
      forger().send(21, 0, 0, slow(graphOf([[9, 'Function']])));
      return silence();
    },
    seen: /has code in it/,
  },
  {
    name: 'ten thousands of buffers that can grow',
    run: () => {
      forger().send(21, 0, 0, slow(many([0x7e, 1, 0x80, 0x80, 0x40, 7], 40_000)));
      return silence();
    },
    seen: /cannot be read/,
  },
  {
    name: 'a million maps in few bytes',
    run: () => {
      forger().send(21, 0, 0, slow(many([0x3b, 0x3a, 0], 2_000_000)));
      return silence();
    },
    seen: /too many parts for its size/,
  },
  {
    name: 'a million buffers in few bytes',
    run: () => {
      const body = Buffer.alloc(5 + 6_000_000);
      body[0] = 11;
      body.writeUInt32LE(1_000_000, 1);
      for (let at = 5; at < body.length; at += 6) body[at] = 14;
      forger().send(21, 0, 0, body);
      return silence();
    },
    seen: /too many parts for its size/,
  },
  {
    name: 'the end of its channel, while it stays',
    run: () => {
      stay();
      for (const bell of forger().bells) fs.closeSync(bell);
      return silence();
    },
    seen: /WORKER_EXITED/,
  },
  {
    name: 'a goodbye, while it stays',
    run: () => {
      stay();
      forger().close();
      return silence();
    },
    seen: /WORKER_EXITED/,
  },
  {
    name: 'a flood of reports, whose answers it does not read',
    run: () => {
      const { send } = forger();
      for (;;) send(30, 0, 1, Buffer.from([0]));
    },
    seen: /reads no answer/,
  },
];
// The program reads the channel of a guest as it reads that of a sandbox: one of each kind.
testEnds(ends, { outputMb: 1 }, ['a definition', 'a forged function']);

/** Keeps this process, whatever manycore does. */
function stay(): void {
  setInterval(() => {}, 1000);
  Reflect.set(process, 'reallyExit', () => {});
  Reflect.set(process, 'exit', () => {});
}

/** A value of the slow codec. */
function slow(bytes: Buffer): Buffer {
  const head = Buffer.from([16, 0, 0, 0, 0]);
  head.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** A payload with these specials, of which the first is the value. */
function graphOf(specials: readonly unknown[]): Buffer {
  const root = [undefined];
  const { Serializer } = process.getBuiltinModule('node:v8');
  const writer = new Serializer();
  writer.writeHeader();
  writer.writeUint32(1);
  writer.writeValue([root, specials, [root, 0, 0], [], [], [], [], []]);
  return writer.releaseBuffer();
}

/** An array that has one value, as V8 writes it, many times. */
function many(value: readonly number[], count: number): Buffer {
  const length = [
    (count & 0x7f) | 0x80,
    ((count >> 7) & 0x7f) | 0x80,
    ((count >> 14) & 0x7f) | 0x80,
    count >> 21,
  ];
  const values = Buffer.alloc(value.length * count, Buffer.from(value));
  return Buffer.concat([
    Buffer.from([0xff, 0x0f, 0, 0x41, ...length]),
    values,
    Buffer.from([0x24, 0, ...length]),
  ]);
}

/** Frames that answer nothing, with bodies that can be read. */
const unasked: Readonly<
  Record<string, { readonly kind: number; readonly slot?: number; readonly body?: () => Buffer }>
> = {
  memory: { kind: 28, body: forgedMemory },
  retire: { kind: 26 },
  ready: { kind: 20, body: () => Buffer.from([11, 2, 0, 0, 0, 4, 1, 0, 0, 0, 8, 1, 97]) },
  'failed items': { kind: 27 },
  'failed starts': { kind: 25 },
  'uncaught errors': { kind: 29 },
  'results of no call': { kind: 21, slot: 99 },
  'items of no call': { kind: 24, slot: 99 },
  'reports of no call': { kind: 30, slot: 99, body: () => Buffer.from([0]) },
};
for (const [name, { kind, slot = 0, body }] of Object.entries(unasked)) {
  test(`a sandbox ends for a flood of frames: ${name}`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    const flood = pool.run(
      (forged, at, content) => {
        const { send } = forger();
        for (let sent = 0; sent < 1500; sent += 1) send(forged, at, 0, Buffer.from(content));
        return silence();
      },
      kind,
      slot,
      new Uint8Array(body?.() ?? []),
    );
    await assert.rejects(flood, (error) => {
      assert.match(
        `${codeOf(error)} ${error}`,
        /WORKER_EXITED .*sent 100\d frames that answer nothing/,
      );
      const { cause }: { cause?: unknown } = Object(error);
      // An error that nothing caught is the cause of an end that was no success, forged or not.
      if (kind !== 29) assert.equal(codeOf(cause), 'WORKER_PROTOCOL');
      return true;
    });
    assert.equal(pool.stats().overLimit?.protocol, 1);
    await assertWell(pool);
  });
}

function forgedMemory(): Buffer {
  const pauses = { count: 0, totalMs: 0, maxMs: 0 };
  const { Serializer } = process.getBuiltinModule('node:v8');
  const writer = new Serializer();
  writer.writeHeader();
  writer.writeUint32(0);
  writer.writeValue({
    atMs: 1,
    heap: { usedBytes: 1, totalBytes: 1, limitBytes: 1, externalBytes: 1 },
    gc: { minor: pauses, major: pauses, incremental: pauses, weakCallbacks: pauses },
  });
  return slow(writer.releaseBuffer());
}

test('a frame too much at each of many calls is no flood', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const one = (): number => {
    forger().send(21, 99, 0);
    return process.pid;
  };
  for (let at = 0; at < 1500; at += 1) await pool.run(one);
  assert.deepEqual([pool.stats().exitedWorkers, pool.stats().completedTasks], [0, 1500]);
  await assertWell(pool);
});

test('a sandbox that does not leave when it is retired is replaced', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const answer = await pool.run(() => {
    stay();
    forger().send(26, 0, 0); // asks to be replaced
    return 5;
  });
  assert.equal(answer, 5);
  await assertWell(pool);
});

test('frames that answer nothing change nothing', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const answer = await pool.run(() => {
    const { send } = forger();
    const nothing = Buffer.from([1]);
    for (const slot of [-5, 99, 2 ** 31 - 1, -(2 ** 31)]) {
      for (const kind of [21, 22, 23, 24, 27]) send(kind, slot, -7, nothing);
    }
    send(20, 0, 0, Buffer.from([11, 2, 0, 0, 0, 4, 1, 0, 0, 0, 8, 1, 97])); // ready, again
    return 5;
  });
  assert.equal(answer, 5);
  await assertWell(pool);
});

for (const [name, kind] of [
  ['an item', 24],
  ['a stream', 23],
] as const) {
  test(`a stream that sends ${name} too much ends with its sandbox`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    const stream = await pool.run(async function* (forged) {
      yield 1;
      await new Promise((resolve) => setImmediate(resolve)); // the frames before are sent
      const { send } = forger();
      for (let at = 0; at < 1000; at += 1) send(forged, 0, 0, Buffer.from([1]));
      yield 2;
    }, kind);
    await assert.rejects(
      async () => {
        for await (const item of stream) assert.notEqual(item, 'x');
      },
      new RegExp(`sent ${name} too much`),
    );
    await assertWell(pool);
  });
}
