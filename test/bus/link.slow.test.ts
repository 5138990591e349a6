// Two buses over a channel, the other one in a thread of its own.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { EventBus } from '../../src/bus/index.js';
import { busFrame } from '../../src/bus/protocol.js';
import { BusLink } from '../../src/bus/transports/link.js';
import { acceptChannel, type ChannelKind, offerChannel } from '../../src/channels/index.js';
import { announcements } from '../../src/lib/index.js';
import { nativeBinding } from '../../src/native.js';
import { shared } from '../../src/public.js';
import { waitFor } from '../support/index.js';

const kinds: readonly ChannelKind[] = ['memory', 'shm'];

/** Ends with the test. */
async function openPair(t: TestContext, kind: ChannelKind) {
  const bus = new EventBus({ copy: structuredClone });
  const offer = offerChannel(kind, { worker: 'thread', spin: false });
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL('./apps/thread.js', import.meta.url), {
    workerData: { ticket: offer.ticket, gate },
    transferList: [...offer.transfer],
    // A thread that Node ends amid an import() leaves the file open, and the agent imports after a second.
    env: { ...process.env, MANYCORE_AGENT: '0' },
  });
  const end = offer.open(undefined);
  const exited = once(worker, 'exit');
  void exited.then(() => end.peerExited?.());
  const link = new BusLink(bus, end);
  t.after(async () => {
    link.close();
    bus.close();
    await worker.terminate();
  });
  await waitFor(() => bus.request('echo', 'are you there?'));
  /** Wakes the thread, which sleeps by request. */
  const wake = (): void => {
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
  };
  return { bus, link, exited, wake };
}

for (const kind of kinds) {
  const skip = kind === 'shm' && nativeBinding() === undefined && 'needs the native binary';
  const check = (title: string, body: (t: TestContext) => Promise<void>): void => {
    test(`over ${kind}: ${title}`, { skip }, body);
  };

  check('requests, answers, and answers to answers', async (t) => {
    const { bus } = await openPair(t, kind);
    const answer = await bus.request<number>('double', 21);
    assert.equal(answer.body, 42);
    assert.equal((await answer.replyAndRequest('thanks')).body, 'thanks!');
    const echo = await bus.request('echo', { deep: [1, new Date(0)] }, { headers: { a: 'b' } });
    assert.deepEqual([echo.body, echo.headers], [{ deep: [1, new Date(0)] }, { a: 'b' }]);
    bus.consumer<string>('caller', (message) => message.reply(`${message.body} back`));
    assert.equal((await waitFor(() => bus.request('ask back', 'and'))).body, 'and back');
  });

  check('functions travel with what they captured', async (t) => {
    const { bus } = await openPair(t, kind);
    const factor = 2.1;
    assert.equal((await bus.request('apply', (n: number) => n * factor)).body, 42);
  });

  check('how a request can fail', async (t) => {
    const { bus } = await openPair(t, kind);
    await assert.rejects(bus.request('fail', 1), { code: 'BUS_FAILED', failureCode: 404 });
    await assert.rejects(bus.request('throw', 1), {
      code: 'BUS_HANDLER_ERROR',
      message: /the consumer of throw threw: out of order/,
    });
    await assert.rejects(bus.request('never', 1, { timeoutMs: 20 }), { code: 'BUS_TIMEOUT' });
    await assert.rejects(bus.request('nobody', 1), { code: 'BUS_NO_HANDLERS' });
    await assert.rejects(bus.request('echo', new WeakMap()), { code: /^TRANSFER_/ });
    assert.match(String((await bus.request('weak', 1)).body), /^TRANSFER_/);
    assert.equal((await bus.request('echo', 'still there')).body, 'still there');
  });

  check('ten thousand messages come in order, also large ones', async (t) => {
    const { bus } = await openPair(t, kind);
    const large = 'x'.repeat(300_000);
    const bodies = Array.from({ length: 10_000 }, (_, at) => (at % 1000 === 7 ? large : at));
    for (const body of bodies) if (!bus.send('count', body)) await bus.drained();
    const { body } = await bus.request('counted', undefined);
    assert.deepEqual(body, bodies);
  });

  check(
    'a loop that does not read makes send fail, and loses nothing that was taken',
    async (t) => {
      const { bus, wake } = await openPair(t, kind);
      const body = 'x'.repeat(50_000);
      bus.send('sleep', 0);
      let sent = 0;
      assert.throws(
        () => {
          for (; sent < 100_000; sent += 1) bus.send('count', body);
        },
        { code: 'BUS_FULL' },
      );
      wake();
      await bus.drained();
      const counted = await bus.request<unknown[]>('counted', undefined);
      assert.equal(counted.body.length, sent);
    },
  );

  check('a loop that ends fails the requests that it has, and has no consumers', async (t) => {
    const { bus, link, exited } = await openPair(t, kind);
    const lost = bus.request('never', 1);
    bus.send('exit', 1);
    await assert.rejects(lost, { code: 'BUS_CONSUMER_LOST' });
    await exited;
    await link.closed;
    await assert.rejects(bus.request('echo', 1), { code: 'BUS_NO_HANDLERS' });
  });

  check('a link that is closed tells the other side', async (t) => {
    const { bus, link, exited } = await openPair(t, kind);
    link.close();
    await exited;
    await assert.rejects(bus.request('echo', 1), { code: 'BUS_NO_HANDLERS' });
  });
}

const skip = nativeBinding() === undefined && 'needs the native binary';

for (const where of ['alone', 'nested'] as const) {
  test(`over shm: memory of shared() passes without a copy, ${where}`, { skip }, async (t) => {
    const { bus } = await openPair(t, 'shm');
    const bytes = shared(100_000);
    bus.send('fill', where === 'nested' ? new Map([['bytes', bytes]]) : bytes);
    await waitFor(() => bytes.every((byte) => byte === 7));
  });

  test(`over shm: memory that the other side has shared comes whole, ${where}`, {
    skip,
  }, async (t) => {
    const { bus } = await openPair(t, 'shm');
    const mine = shared(100_000); // the effect of a wrong name
    const { body } = await bus.request<Uint8Array | Map<string, Uint8Array>>('own', where);
    const bytes = body instanceof Map ? body.get('bytes') : body;
    assert.equal(bytes?.byteLength, 100_000);
    assert.ok(bytes?.every((byte) => byte === 9));
    assert.ok(mine.every((byte) => byte === 0));
  });
}

test('over shm: the memory of large messages is given back, in both directions', {
  skip,
}, async (t) => {
  const { bus } = await openPair(t, 'shm');
  const sizeBytes = 4 * 2 ** 20;
  const body = new Uint8Array(sizeBytes).fill(1);
  for (let at = 0; at < 200; at += 1) {
    assert.equal((await bus.request('size', body)).body, sizeBytes);
    assert.equal((await bus.request<Uint8Array>('large', sizeBytes)).body.byteLength, sizeBytes);
  }
  const [, kib = ''] =
    /^RssShmem:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  assert.ok(Number(kib) < 600 * 1024, `${kib} KiB of 1,600 MiB that went through are still there`);
});

test('a frame of an unknown kind is announced and dropped, and later ones are read', async (t) => {
  const bus = new EventBus({ copy: structuredClone });
  const offer = offerChannel('memory', { worker: 'thread', spin: false });
  const link = new BusLink(bus, offer.open(undefined));
  link.ref();
  const { channel } = acceptChannel(offer.ticket);
  t.after(() => {
    link.close();
    channel.close();
    bus.close();
  });
  const why: unknown[] = [];
  const note = (message: unknown): void => void why.push(Object(message).why);
  announcements.busDropped.subscribe(note);
  t.after(() => announcements.busDropped.unsubscribe(note));
  for (const kind of [63, busFrame.announced]) {
    assert.equal(
      channel.trySend(kind, 0, 0, () => true, undefined),
      'sent',
    );
  }
  await link.announced;
  assert.deepEqual(why, ['the bus received an unknown frame: its kind is 63']);
});
