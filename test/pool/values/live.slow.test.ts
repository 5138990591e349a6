// Values that threads of one process can share or hand over pass to thread workers as by postMessage, on
// every road: as an argument, in one, captured, as a result and as an item of a map.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import threads, { MessageChannel, type Transferable } from 'node:worker_threads';
import { CodedError, type Pool, pmap } from '../../../src/public.js';
import { waitFor, withDeadline } from '../../support/index.js';
import { deadlineMs, Gate, openPool, ways } from '../calls/ways.js';
import { blockUntil } from '../tasks.js';

const threadWays = ways.filter(({ worker }) => worker === 'thread');
const wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
/** No part of the types of this project. */
const { Memory, Module } = Object(Reflect.get(globalThis, 'WebAssembly'));

const hasCode =
  (code: string, text: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof CodedError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, text);
    return true;
  };

/** Makers of values, and the description that a worker returns. */
const shareable: Record<string, readonly [make: () => unknown, says: string]> = {
  SharedArrayBuffer: [() => new SharedArrayBuffer(8), 'SharedArrayBuffer 8'],
  'a small view of one': [() => new Uint8Array(new SharedArrayBuffer(8), 2, 3), 'Uint8Array 3'],
  'a large view of one': [
    () => new Float64Array(new SharedArrayBuffer(2 ** 20)),
    'Float64Array 1048576',
  ],
  'a DataView of one': [() => new DataView(new SharedArrayBuffer(8)), 'DataView 8'],
  'a Buffer of one': [() => Buffer.from(new SharedArrayBuffer(8)), 'Buffer 8'],
  'shared memory of WebAssembly': [
    () => new Memory({ initial: 1, maximum: 1, shared: true }),
    'Memory 65536',
  ],
  'WebAssembly.Module': [() => new Module(wasm), 'Module 0'],
  Blob: [() => new Blob(['four']), 'Blob 4'],
};

function said(value: object): string {
  const memory: unknown = Reflect.get(value, 'buffer');
  const sized =
    Object.prototype.toString.call(value) === '[object WebAssembly.Memory]' ? memory : value;
  const size = Reflect.get(Object(sized), 'byteLength') ?? Reflect.get(Object(sized), 'size') ?? 0;
  return `${value.constructor.name} ${size}`;
}

const roads: Record<string, (pool: Pool, make: () => unknown) => Promise<unknown>> = {
  argument: (pool, make) => pool.run((value) => said(Object(value)), make()),
  'inside an argument': (pool, make) =>
    pool.run(({ list: [, value] }) => said(Object(value)), { list: [1, make()] }),
  capture: (pool, make) => {
    const value = make();
    return pool.run(() => said(Object(value)));
  },
  result: async (pool, make) => said(Object(await pool.run((value) => value, make()))),
  item: async (pool, make) => (await pmap([make()], (value) => said(Object(value)), { pool }))[0],
  'capture of a map': async (pool, make) => {
    const value = make();
    return (await pmap([1, 2, 3], () => said(Object(value)), { pool }))[2];
  },
};

for (const way of threadWays) {
  test(`${way.name}: what threads share arrives on every road`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    for (const [what, [make, says]] of Object.entries(shareable)) {
      for (const [road, take] of Object.entries(roads)) {
        assert.equal(await take(pool, make), says, `${what} as ${road}`);
      }
    }
  });

  test(`${way.name}: shared memory is one memory, with Atomics.wait in the worker`, async (t) => {
    const words = new Int32Array(new SharedArrayBuffer(12));
    const pool = openPool(t, { size: 2, setup: () => void Atomics.add(words, 2, 1) }, way);
    const wait = () => Atomics.wait(words, 0, 0, 20_000);
    const add = (given: Int32Array): number => Atomics.add(given, 1, 5);
    const waits = pool.run(wait);
    await waitFor(() => Atomics.notify(words, 0) === 1);
    assert.equal(await waits, 'ok');
    await pool.run(add, words);
    assert.deepEqual([...words.slice(0, 2)], [0, 5]);
    assert.ok(Atomics.load(words, 2) >= 1, 'the setup of a worker has it, too');
  });

  test(`${way.name}: a key that cannot be read out is used in the worker`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const name = { name: 'AES-GCM', iv: new Uint8Array(12) };
    const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, false, [
      'encrypt',
    ]);
    const there = await pool.run(() => crypto.subtle.encrypt(name, key, new Uint8Array(3)));
    assert.deepEqual(there, await crypto.subtle.encrypt(name, key, new Uint8Array(3)));
  });

  test(`${way.name}: ports go there and come back`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const { port1, port2 } = new MessageChannel();
    t.after(() => port1.close());
    const answered = new Promise((resolve) => port1.once('message', resolve));
    const used = await pool.with({ transfer: [port2] }).run(
      ({ port }) => {
        port.postMessage('from there');
        return port;
      },
      { port: port2 },
    );
    assert.equal(await answered, 'from there');
    const later = new Promise((resolve) => port1.once('message', resolve));
    used.postMessage('from the result');
    assert.equal(await later, 'from the result');
    const { port1: home, port2: away } = new MessageChannel();
    t.after(() => home.close());
    const heard = new Promise((resolve) => home.once('message', resolve));
    await pool.with({ transfer: [away] }).run(() => away.postMessage('captured'));
    assert.equal(await heard, 'captured');
  });

  test(`${way.name}: streams and files go there`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const stream = new Blob(['a stream']).stream();
    const text = await pool
      .with({ transfer: [stream] })
      .run((given) => new Response(given).text(), stream);
    assert.equal(text, 'a stream');
    const file = await open(import.meta.filename);
    const first = await pool.with({ transfer: [file] }).run(async (given) => {
      const { buffer } = await given.read(Buffer.alloc(2), 0, 2, 0);
      await given.close();
      return String(buffer);
    }, file);
    assert.equal(first, '//');
  });
}

for (const way of ways) {
  test(`${way.name}: what is transferred arrives, and is gone at home`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const calls = [1, 2, 3].map((size) => {
      const buffer = new ArrayBuffer(size * 100_000);
      const view = new Uint8Array(buffer, 1);
      view.fill(size);
      const sent = pool
        .with({ transfer: [buffer] })
        .run((given, whole) => [given.length, given[0], given.buffer === whole], view, buffer);
      assert.equal(buffer.byteLength, 0, 'detached at the call, also where it waits');
      return sent;
    });
    assert.deepEqual(
      await Promise.all(calls),
      [1, 2, 3].map((size) => [size * 100_000 - 1, size, true]),
    );
    const captured = new Uint8Array(8).fill(7);
    const sum = pool
      .with({ transfer: [captured.buffer] })
      .run(() => captured.reduce((all, each) => all + each));
    assert.equal(captured.length, 0);
    assert.equal(await sum, 56);
  });

  test(`${way.name}: a call that is refused keeps what it would have transferred`, async (t) => {
    const pool = openPool(t, { size: 1, maxWaitingTasks: 0 }, way);
    await pool.warm();
    const buffer = new ArrayBuffer(8);
    const { port1 } = new MessageChannel();
    t.after(() => port1.close());
    const given = new Map<
      string,
      readonly [transfer: unknown, args: unknown[], code: string, text: RegExp]
    >([
      ['not part', [[buffer], [1], 'OPTION_INVALID', /transfer\[0\] is not part of the call/]],
      [
        'twice',
        [[buffer, buffer], [buffer], 'OPTION_INVALID', /transfer\[1\].* transfer\[0\] is the same/],
      ],
      [
        'no array',
        [buffer, [buffer], 'OPTION_INVALID', /transfer is an object: it must be an array/],
      ],
      ['no object', [[1], [buffer], 'OPTION_INVALID', /transfer\[0\] is 1/]],
      ['plain', [[{}], [buffer], 'OPTION_INVALID', /transfer\[0\] cannot be transferred/]],
      [
        'gone',
        [
          [structuredClone(buffer), moved()],
          [buffer],
          'OPTION_INVALID',
          /transfer\[1\] is detached/,
        ],
      ],
      ['other', [[buffer], [buffer, new WeakMap()], 'TRANSFER_UNSUPPORTED', /a WeakMap/]],
      [
        'unlisted',
        [[buffer], [buffer, port1], 'TRANSFER_UNSUPPORTED', /a MessagePort.*option `transfer`/],
      ],
    ]);
    for (const [what, [transfer, args, code, text]] of given) {
      const call = async () => pool.with({ transfer: listOf(transfer) }).run((_list) => {}, args);
      await assert.rejects(call, hasCode(code, text), what);
      assert.equal(buffer.byteLength, 8, what);
    }
    const gate = new Gate(t);
    const busy = pool.run(blockUntil, gate.file, gate.mark('busy'), 1);
    const late = pool
      .with({ transfer: [buffer] })
      .run((each: ArrayBuffer) => each.byteLength, buffer);
    await assert.rejects(late, hasCode('POOL_QUEUE_FULL', /./));
    assert.equal(buffer.byteLength, 8);
    if (way.worker === 'thread') {
      const { port1: near, port2: kept } = new MessageChannel();
      t.after(() => near.close());
      const refused = pool.with({ transfer: [kept] }).run((..._given: unknown[]) => 1, kept);
      await assert.rejects(refused, hasCode('POOL_QUEUE_FULL', /./));
      const heard = once(near, 'message');
      kept.postMessage('still open');
      assert.deepEqual(await heard, ['still open']);
    }
    gate.open();
    await busy;
    assert.throws(
      () => pool.with({ transfer: [buffer], retry: 1 }),
      hasCode('OPTION_INVALID', /retry/),
    );
  });
}

function listOf(value: unknown): Transferable[] {
  return isList(value) ? value : [];
}

function isList(_value: unknown): _value is Transferable[] {
  return true;
}

function moved(): ArrayBuffer {
  const buffer = new ArrayBuffer(4);
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
}

/** Makers of handles, each with a promise of its end. */
const handles: Record<string, (t: TestContext) => Promise<[Transferable, () => Promise<unknown>]>> =
  {
    MessagePort: async () => {
      const { port1, port2 } = new MessageChannel();
      const closed = once(port1, 'close');
      port1.ref();
      return [port2, () => closed];
    },
    ReadableStream: async () => {
      let isEnded = false;
      const cancel = (): void => {
        isEnded = true;
      };
      return [new ReadableStream({ cancel }), () => waitFor(() => isEnded)];
    },
    WritableStream: async () => {
      let isEnded = false;
      const abort = (): void => {
        isEnded = true;
      };
      return [new WritableStream({ abort }), () => waitFor(() => isEnded)];
    },
    FileHandle: async (t) => {
      const path = new Gate(t).mark('file');
      const isOpen = (): boolean =>
        readdirSync('/proc/self/fd').some((fd) => targetOf(`/proc/self/fd/${fd}`) === path);
      const file = await open(path, 'w');
      assert.ok(isOpen());
      return [file, () => waitFor(() => !isOpen())];
    },
  };

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined; // closed meanwhile
  }
}

for (const [what, make] of Object.entries(handles)) {
  test(`a ${what} whose call is cancelled in the queue is ended`, async (t) => {
    const pool = openPool(t, { size: 1, worker: 'thread' });
    const [given, ended] = await make(t);
    const controller = new AbortController();
    const gate = new Gate(t);
    const busy = pool.run(blockUntil, gate.file, gate.mark('busy'), 1);
    const call = pool
      .with({ transfer: [given], signal: controller.signal })
      .run((_given) => 'taken', given);
    controller.abort();
    await assert.rejects(call, hasCode('ABORTED', /./));
    await withDeadline(ended(), deadlineMs, `the end of the ${what}`);
    gate.open();
    await busy;
  });
}

test('memory that Node keeps for small Buffers is refused, and stays', {
  skip: !('isMarkedAsUntransferable' in threads) && 'Node 20 copies it',
}, async (t) => {
  const pool = openPool(t, { size: 1, worker: 'thread' });
  const small = Buffer.from('small');
  const call = async () =>
    pool.with({ transfer: listOf([small.buffer]) }).run((_given) => {}, small);
  await assert.rejects(
    call,
    hasCode('OPTION_INVALID', /transfer\[0\] is marked as untransferable/),
  );
  assert.equal(String(small), 'small');
});

test('what went to a worker that died is not lost without a word', async (t) => {
  const pool = openPool(t, { size: 1, worker: 'thread' });
  const { port1, port2 } = new MessageChannel();
  t.after(() => port1.close());
  const exits = pool.with({ transfer: [port2] }).run((_port) => process.exit(3), port2);
  await assert.rejects(exits, hasCode('WORKER_EXITED', /./));
});

for (const way of ways.filter(({ worker }) => worker === 'process')) {
  test(`${way.name}: shared memory is refused with its way out, however large`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    for (const sizeBytes of [8, 2 ** 20]) {
      const view = new Uint8Array(new SharedArrayBuffer(sizeBytes));
      const call = pool.run((given) => given.length, view);
      await assert.rejects(
        call,
        hasCode('TRANSFER_UNSUPPORTED', /shared\(bytes\).*worker: 'thread'/),
      );
    }
  });
}

test('what is handed over waits for a worker in which no neighbour blocks it', async (t) => {
  const pool = openPool(t, { size: 1, worker: 'thread', concurrentTasksPerWorker: 2, graceMs: 10 });
  const words = new Int32Array(new SharedArrayBuffer(4));
  const controller = new AbortController();
  const blocker = pool.with({ signal: controller.signal }).run(() => {
    Atomics.store(words, 0, 1);
    while (Atomics.load(words, 0) === 1);
  });
  await waitFor(() => Atomics.load(words, 0) === 1);
  const ports = Array.from({ length: 3 }, () => new MessageChannel());
  for (const { port1 } of ports) t.after(() => port1.close());
  const handed = ports.map(({ port2 }) =>
    pool.with({ transfer: [port2] }).run((port, at) => at + Number(port.close() ?? 0), port2, 1),
  );
  const beside = pool.run(() => 'beside');
  controller.abort();
  await assert.rejects(blocker, hasCode('ABORTED', /./));
  assert.deepEqual(await Promise.all(handed), [1, 1, 1]);
  assert.equal(await beside, 'beside');
  assert.equal(pool.stats().exitedWorkers, 1);
});

test('what is handed over goes to the worker that is empty first', async (t) => {
  const pool = openPool(t, { size: 2, worker: 'thread', concurrentTasksPerWorker: 2 });
  await pool.warm(1);
  void pool.run(() => new Promise(() => {})).catch(() => {});
  const { port1, port2 } = new MessageChannel();
  t.after(() => port1.close());
  const handed = pool.with({ transfer: [port2] }).run((port) => {
    port.close();
    return 'taken';
  }, port2);
  assert.equal(await withDeadline(handed, deadlineMs, 'the hand-over'), 'taken');
});
