// Streams over a bus, and between two loops.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { EventBus } from '../../src/bus/index.js';
import type { StreamFrame } from '../../src/bus/protocol.js';
import { BusStream, type StreamWire } from '../../src/bus/streams/stream.js';
import { CodedError, type ErrorCode } from '../../src/errors.js';
import type { BusHandlerFailedMessage } from '../../src/lib/index.js';
import type { UnitContext } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { skip, startLoops } from '../units/loops.js';
import { turns } from './net.js';

function openBus(): EventBus {
  return new EventBus({ copy: structuredClone });
}

async function all(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

test('items arrive in order, in both directions', async () => {
  const bus = openBus();
  bus.acceptStreams('double', async (stream, headers) => {
    assert.deepEqual(headers, { of: 'numbers' });
    for await (const item of stream) stream.write(2 * Number(item));
    stream.end();
  });
  const stream = await bus.openStream('double', { headers: { of: 'numbers' } });
  const numbers = Array.from({ length: 1000 }, (_, at) => at + 1);
  const written = pipeline(Readable.from(numbers), stream, { end: true });
  assert.deepEqual(
    await all(stream),
    numbers.map((number) => 2 * number),
  );
  await written;
});

test('a reader that does not read holds up the writer', async () => {
  const bus = openBus();
  let received = 0;
  let resume = (): void => {};
  bus.acceptStreams('slow', (stream) => {
    stream.on('data', () => {
      received += 1;
    });
    stream.pause();
    resume = () => stream.resume();
  });
  const stream = await bus.openStream('slow');
  let written = 0;
  while (stream.write(written)) written += 1;
  await new Promise((resolve) => setTimeout(resolve, 50));
  const before = written;
  assert.ok(before < 100, `${before} items were taken though nobody reads`);
  assert.equal(stream.writableNeedDrain, true);
  resume();
  await once(stream, 'drain');
  stream.end();
  await waitFor(() => received === before + 1);
});

test('destroying one end destroys the other with its reason', async () => {
  const bus = openBus();
  const errors: Error[] = [];
  bus.acceptStreams('open', (stream) => {
    stream.on('error', (error) => errors.push(error));
  });
  const abort = new AbortController();
  const stream = await bus.openStream('open', { signal: abort.signal });
  const failed = once(stream, 'error');
  abort.abort();
  assert.equal((await failed)[0].code, 'ABORTED');
  await waitFor(() => errors.length === 1);
  assert.match(errors[0]?.message ?? '', /the other end was destroyed: the signal was aborted/);
});

test('an error that a handler throws after the end of its stream is reported, its reason is not', async () => {
  const bus = openBus();
  const failures: BusHandlerFailedMessage[] = [];
  const note = (message: unknown): void => void failures.push(Object(message));
  subscribe('manycore:bus:handler-failed', note);
  try {
    bus.acceptStreams('late', async (stream) => {
      await new Promise((resolve) => stream.once('close', resolve));
      throw new Error('too late');
    });
    bus.acceptStreams('reads', async (stream) => {
      for await (const item of stream) assert.ok(item);
    });
    for (const address of ['reads', 'late']) {
      const stream = await bus.openStream(address);
      stream.on('error', () => {});
      stream.destroy(new Error('enough'));
    }
    await waitFor(() => failures.length === 1);
    await turns(2);
    assert.deepEqual([failures.length, failures[0]?.address], [1, 'late']);
    assert.match(String(failures[0]?.error), /the consumer of late threw: too late/);
  } finally {
    unsubscribe('manycore:bus:handler-failed', note);
  }
});

test('an end that the opener destroys ends no program whose handler has no listener', async () => {
  const bus = openBus();
  let accepted: Duplex | undefined;
  bus.acceptStreams('s', (stream) => {
    accepted = stream;
  });
  const stream = await bus.openStream('s');
  stream.on('error', () => {});
  stream.destroy(new Error('enough'));
  await waitFor(() => accepted?.destroyed === true);
  await turns(2);
  assert.match(String(accepted?.errored), /the other end was destroyed: enough/);
});

test('opening fails without an acceptor, too late, and for what is no stream', async () => {
  const bus = openBus();
  await assert.rejects(bus.openStream('nobody'), { code: 'BUS_NO_HANDLERS' });
  bus.consumer('mute', () => {});
  await assert.rejects(bus.openStream('mute', { timeoutMs: 20 }), { code: 'BUS_TIMEOUT' });
  bus.consumer('other', (message) => message.reply(42));
  await assert.rejects(bus.openStream('other'), { code: 'OPTION_INVALID' });
  assert.throws(() => bus.acceptStreams('x', Object(1)), { code: 'OPTION_INVALID' });
});

/** The way from one end of a stream to the other, which may refuse frames. */
class Way implements StreamWire {
  readonly tried: string[] = [];
  other: BusStream | undefined;
  closed = 0;
  #refusal: ErrorCode | undefined;
  #makesRoom: (() => void)[] = [];

  readonly send = (frame: StreamFrame): void => {
    this.tried.push(frame.type);
    if (this.#refusal !== undefined) throw new CodedError(this.#refusal, 'it does not go');
    setImmediate(() => this.other?.receive(frame));
  };

  readonly drained = (): Promise<void> =>
    new Promise((resolve) => {
      this.#makesRoom.push(resolve);
    });

  readonly onClose = (): void => {
    this.closed += 1;
  };

  /** Refuses frames from now on, until `makeRoom`. */
  refuse(code: ErrorCode): void {
    this.#refusal = code;
  }

  makeRoom(): void {
    this.#refusal = undefined;
    for (const resolve of this.#makesRoom.splice(0)) resolve();
  }
}

/** Both ends of a stream, and the ways from one to the other. */
function openEnds() {
  const [way, back] = [new Way(), new Way()];
  const [stream, other] = [new BusStream(way), new BusStream(back)];
  way.other = other;
  back.other = stream;
  return { way, stream, other };
}

test('the end of a stream waits for room on the way', async () => {
  const { way, stream, other } = openEnds();
  way.refuse('BUS_FULL');
  stream.end();
  await turns(2);
  assert.deepEqual(way.tried, ['end']);
  way.makeRoom();
  assert.deepEqual(await all(other), []);
  other.end();
  stream.resume();
  await once(stream, 'close');
});

test('credit of a reader waits for room on the way', async () => {
  const { way, stream, other } = openEnds();
  way.refuse('BUS_FULL');
  const numbers = Array.from({ length: 200 }, (_, at) => at);
  Readable.from(numbers).pipe(other);
  const seen: unknown[] = [];
  stream.on('data', (item) => seen.push(item));
  await waitFor(() => seen.length === 16); // as many as are granted from the start
  way.makeRoom();
  await once(stream, 'end');
  assert.deepEqual(seen, numbers);
});

test('a reader whose grants cannot be sent is destroyed', async () => {
  const { way, stream } = openEnds();
  way.refuse('CLUSTER_CLOSED');
  const failed = once(stream, 'error');
  for (let item = 0; item < 16; item += 1) stream.receive({ type: 'item', item });
  stream.resume();
  assert.equal((await failed)[0].code, 'CLUSTER_CLOSED');
  assert.equal(stream.destroyed, true);
  assert.equal(way.closed, 1);
  assert.deepEqual(way.tried, ['credit', 'destroyed']);
});

test('an item that waits for room when its stream is destroyed is not sent', async () => {
  const { way, stream } = openEnds();
  way.refuse('BUS_FULL');
  stream.on('error', () => {});
  const written = new Promise<unknown>((resolve) => stream.write('item', resolve));
  stream.destroy(new CodedError('ABORTED', 'no more of it'));
  way.makeRoom();
  assert.equal(Object(await written).code, 'ABORTED');
  assert.deepEqual(way.tried, ['item', 'destroyed']);
});

test('a write that waits for a reader fails when the stream is destroyed', async () => {
  const { way, stream, other } = openEnds();
  other.on('error', () => {});
  for (let item = 0; item < 16; item += 1) stream.write(item);
  const written = new Promise<unknown>((resolve) => stream.write('one too many', resolve));
  await waitFor(() => way.tried.length === 16);
  stream.destroy();
  assert.equal(Object(await written).code, 'ABORTED');
});

test('an item that cannot travel fails the stream that it was written to', { skip }, async (t) => {
  const loops = startLoops(t);
  await loops.deploy(({ bus }: UnitContext) => {
    bus.acceptStreams('sink', (stream) => {
      stream.on('error', () => {});
      stream.resume();
    });
  });
  const stream = await loops.bus.openStream('sink');
  stream.write(new WeakMap());
  const [error] = await once(stream, 'error');
  assert.match(error.code, /^TRANSFER_/);
});

test('streams between loops carry a hundred thousand items, and end with their loop', {
  skip,
}, async (t) => {
  const loops = startLoops(t);
  await loops.deploy(({ bus }: UnitContext) => {
    bus.acceptStreams('sum', async (stream) => {
      let sum = 0;
      for await (const item of stream) sum += Number(item);
      stream.end(sum);
    });
    bus.acceptStreams('die', (stream) => {
      stream.once('data', () => process.kill(process.pid, 'SIGKILL'));
    });
  });
  const count = 100_000;
  const stream = await loops.bus.openStream('sum');
  Readable.from(Array.from({ length: count }, (_, at) => at)).pipe(stream);
  assert.deepEqual(await all(stream), [(count * (count - 1)) / 2]);
  const lost = await loops.bus.openStream('die');
  const failed = once(lost, 'error');
  lost.write('now');
  assert.equal((await failed)[0].code, 'BUS_CONSUMER_LOST');
});

test('a unit that is undeployed ends its streams', { skip }, async (t) => {
  const loops = startLoops(t);
  const unit = await loops.deploy(({ bus }: UnitContext) => {
    bus.acceptStreams('hold', (stream) => {
      stream.on('error', () => {});
    });
  });
  const stream = await loops.bus.openStream('hold');
  const failed = once(stream, 'error');
  await unit.undeploy();
  assert.equal((await failed)[0].code, 'BUS_CONSUMER_LOST');
});

test('a stream carries what ends or means nothing to Node when it is wrapped', async (t) => {
  const bus = openBus();
  t.after(() => bus.close());
  bus.acceptStreams('echo', async (stream) => {
    for await (const item of stream) stream.write(item);
    stream.end();
  });
  const stream = await bus.openStream('echo');
  const items = [[null], [undefined], { a: null, b: undefined }, '', 0, false, NaN];
  for (const item of items) stream.write(item);
  stream.end();
  const arrived: unknown[] = [];
  for await (const item of stream) arrived.push(item);
  assert.deepStrictEqual(arrived, items);
  const bare = await bus.openStream('echo');
  t.after(() => bare.destroy());
  assert.throws(() => bare.write(null), { code: 'ERR_STREAM_NULL_VALUES' });
});

test('an ordinary consumer refuses to be opened, and an acceptor of streams is no other', async (t) => {
  const bus = openBus();
  t.after(() => bus.close());
  bus.consumer('word', (message) => message.reply('hello'));
  bus.consumer('number', (message) => message.reply(7));
  bus.acceptStreams('lines', () => assert.fail('a stream'));
  for (const address of ['word', 'number']) {
    await assert.rejects(bus.openStream(address), {
      code: 'OPTION_INVALID',
      message: new RegExp(`the consumer of "${address}" .* accepts no streams: .*acceptStreams`),
    });
  }
  for (const body of ['hello', undefined]) {
    await assert.rejects(bus.request('lines', body), {
      code: 'BUS_HANDLER_ERROR',
      message: /"lines" accepts streams, and no other messages: call openStream/,
    });
  }
});
