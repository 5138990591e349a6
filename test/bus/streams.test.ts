// Streams over a bus, and between two loops.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { EventBus } from '../../src/bus/index.js';
import type { UnitContext } from '../../src/index.js';
import { waitFor } from '../support/index.js';
import { skip, startLoops } from '../units/loops.js';

function openBus(): EventBus {
  return new EventBus({ copy: structuredClone });
}

async function all(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

test('what one end writes the other reads, in order, in both directions', async () => {
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

test('who destroys its end is heard of at the other', async () => {
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

test('a handler that throws ends its stream, and nothing else', async () => {
  const bus = openBus();
  bus.acceptStreams('throws', (stream) => {
    stream.on('error', () => {});
    throw new Error('not this one');
  });
  const stream = await bus.openStream('throws');
  const [error] = await once(stream, 'error');
  assert.match(String(error), /the other end was destroyed: not this one/);
});

test('nobody accepts, too late, or what is no stream', async () => {
  const bus = openBus();
  await assert.rejects(bus.openStream('nobody'), { code: 'BUS_NO_HANDLERS' });
  bus.consumer('mute', () => {});
  await assert.rejects(bus.openStream('mute', { timeoutMs: 20 }), { code: 'BUS_TIMEOUT' });
  bus.consumer('other', (message) => message.reply(42));
  await assert.rejects(bus.openStream('other'), { code: 'TRANSFER_CORRUPT' });
  assert.throws(() => bus.acceptStreams('x', Object(1)), { code: 'OPTION_INVALID' });
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
