// Traces go with calls and messages: a task in a worker runs in a child of the caller's span.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { context, propagation, trace } from '@opentelemetry/api';
import { createCopy, EventBus } from '../../../src/bus/index.js';
import { type Pool, pmap, run, task } from '../../../src/public.js';
import { deadlineMs, openPool, type Way, ways } from '../../pool/calls/ways.js';
import { waitFor } from '../../support/index.js';
import { inSpan, type SpanFacts, type spinInSpan as spinHere, takeSpans } from './tracing.js';

const flags = ['--import', new URL('./tracing.js', import.meta.url).href];

function tracedPool(t: TestContext, size = 1, way?: Way): Pool {
  return openPool(t, { size, execArgv: flags }, way);
}

/** Ended spans in the only worker of the pool, without the span of this call. */
async function spansOf(pool: Pool): Promise<SpanFacts[]> {
  return await pool.run(() => takeSpans()); // of its own copy of the module
}

/** The one with this name that has ended here. */
function ownSpan(name: string): SpanFacts | undefined {
  return takeSpans().find((span) => span.name === name);
}

for (const way of ways) {
  test(`${way.name}: a task's span is a child of its caller's`, async (t) => {
    const pool = tracedPool(t, 1, way);
    await pool.warm();
    takeSpans();
    const { traceId, spanId } = await inSpan('request', () =>
      pool.run(async function work() {
        await inSpan('inner', () => {});
      }),
    );
    const call = ownSpan('call work');
    assert.deepEqual([call?.traceId, call?.parentId], [traceId, spanId]);
    const spans = await spansOf(pool);
    assert.deepEqual(spans.map(({ name }) => name).sort(), ['inner', 'task work']);
    const task = spans.find(({ name }) => name === 'task work');
    assert.deepEqual([task?.traceId, task?.parentId], [traceId, call?.spanId]);
    const inner = spans.find(({ name }) => name === 'inner');
    assert.deepEqual([inner?.traceId, inner?.parentId], [traceId, task?.spanId]);
    assert.equal(task?.attributes['code.function.name'], 'work');
    assert.equal(task?.attributes['manycore.worker'], pool.stats().workers[0]?.id);
    const waited = Number(task?.attributes['manycore.task.wait']);
    assert.ok(waited >= 0 && waited < 60, `${waited} s`);
    assert.equal(task?.error, undefined);
    if (way.worker === 'process') assert.notEqual(task?.pid, process.pid);
  });
}

test('a task outside of a trace has no span', async (t) => {
  const pool = tracedPool(t);
  takeSpans();
  await pool.run(() => 1);
  const baggage = propagation.createBaggage({ customer: { value: '7' } });
  await context.with(propagation.setBaggage(context.active(), baggage), () => pool.run(() => 2));
  assert.deepEqual(takeSpans(), []);
  assert.deepEqual(await spansOf(pool), []);
});

test('each call has the trace of its own caller, also of the same function', async (t) => {
  const pool = tracedPool(t);
  const work = (): string | undefined => trace.getActiveSpan()?.spanContext().traceId;
  const both = await Promise.all([
    inSpan('one', () => pool.run(work)),
    inSpan('two', () => pool.run(work)),
  ]);
  for (const { result, traceId } of both) assert.equal(result, traceId);
  assert.notEqual(both[0].traceId, both[1].traceId);
  assert.equal(await pool.run(work), undefined);
});

test('the error of a task, thrown or rejected, is written into its span', async (t) => {
  const pool = tracedPool(t);
  await inSpan('request', async () => {
    await assert.rejects(
      pool.run(function fail() {
        throw new Error('thrown');
      }),
    );
    await assert.rejects(
      pool.run(async function failLater() {
        await Promise.resolve();
        throw new Error('rejected');
      }),
    );
  });
  const spans = await spansOf(pool);
  const facts = spans.map(({ name, error, exceptions }) => [name, error, exceptions]);
  assert.deepEqual(facts, [
    ['task fail', 'thrown', 1],
    ['task failLater', 'rejected', 1],
  ]);
});

test('the span of a task that streams ends with its last item', async (t) => {
  const pool = tracedPool(t);
  const items: unknown[] = [];
  const { traceId } = await inSpan('request', async () => {
    const stream = await pool.run(async function* count() {
      yield await trace.getActiveSpan()?.spanContext().traceId;
      await inSpan('inner', () => {});
      yield 2;
    });
    for await (const item of stream) items.push(item);
  });
  assert.deepEqual(items, [traceId, 2]);
  const spans = await spansOf(pool);
  assert.deepEqual(
    spans.map(({ name }) => name),
    ['inner', 'task count'],
  );
  assert.equal(spans[0]?.parentId, spans[1]?.spanId);
});

test('a generator that comes later, out of a promise, runs in the span of its task', async (t) => {
  const pool = tracedPool(t);
  const items: unknown[] = [];
  const { traceId } = await inSpan('request', async () => {
    const stream = await pool.run(async function count() {
      await Promise.resolve();
      return (async function* () {
        yield trace.getActiveSpan()?.spanContext().traceId;
        throw new Error('too many');
      })();
    });
    await assert.rejects(async () => {
      for await (const item of Object(stream)) items.push(item);
    }, /too many/);
  });
  assert.deepEqual(items, [traceId]);
  const [span] = await spansOf(pool);
  assert.deepEqual([span?.name, span?.error], ['task count', 'too many']);
});

test('a result that cannot travel is an error in the span of its task', async (t) => {
  const pool = tracedPool(t);
  await inSpan('request', async () => {
    const code = { code: 'TRANSFER_UNSUPPORTED' };
    await assert.rejects(
      pool.run(() => new WeakMap()),
      code,
    );
    await assert.rejects(
      pool.run(async () => new WeakMap()),
      code,
    );
  });
  const spans = await spansOf(pool);
  assert.equal(spans.length, 2);
  for (const { error, exceptions } of spans) {
    assert.match(error ?? '', /WeakMap/);
    assert.equal(exceptions, 1);
  }
});

test('a map has a span for each chunk, not for each item', async (t) => {
  const pool = tracedPool(t);
  takeSpans();
  const { traceId, spanId } = await inSpan('request', () =>
    pmap(
      Array.from({ length: 1000 }, (_, at) => at),
      function double(item: number) {
        return 2 * item;
      },
      { pool },
    ),
  );
  const map = ownSpan('map double');
  assert.deepEqual([map?.traceId, map?.parentId], [traceId, spanId]);
  const spans = await spansOf(pool);
  assert.ok(spans.length > 0 && spans.length < 500, `${spans.length} spans`);
  const items = spans.map(({ attributes }) => Number(attributes['manycore.map.items']));
  assert.ok(items.reduce((sum, each) => sum + each, 0) >= 1000);
  for (const span of spans) {
    assert.deepEqual(
      [span.name, span.traceId, span.parentId],
      ['map double', traceId, map?.spanId],
    );
    assert.equal('manycore.task.wait' in span.attributes, false);
  }
});

test('an item that fails is written into the span of its chunk, which ends all the same', async (t) => {
  const pool = tracedPool(t);
  const failing = inSpan('request', () =>
    pmap(
      [1, 2, 3],
      async function odd(item: number) {
        if (item === 2) throw new Error('even');
        return item;
      },
      { pool },
    ),
  );
  await assert.rejects(failing, /even/);
  // The map rejects with the item; its chunk ends later.
  await waitFor(async () => (await spansOf(pool)).some(({ error }) => error === 'even'));
});

// A task by name: an imported function is a value in a worker, which could not send it on.
const spinInSpan = task<typeof spinHere>(new URL('./tracing.js', import.meta.url), 'spinInSpan');

test('tasks and maps in a task belong to its trace, inline and in another worker', async (t) => {
  const pool = tracedPool(t, 2);
  await pool.warm();
  const outer = async () => {
    const own = await spinInSpan(0);
    const inline = await run(() => spinInSpan(0));
    const items = Array.from({ length: 60 }, (_, at) => at);
    const mapped = await pmap(items, () => spinInSpan(2), { chunk: 1 });
    return { own, inline, mapped };
  };
  // The distribution of items to workers is not deterministic.
  const { result, traceId } = await waitFor(async () => {
    const answer = await inSpan('request', () => pool.run(outer));
    const { own, mapped } = answer.result;
    return mapped.some(({ pid }) => pid !== own.pid) && answer;
  }, deadlineMs);
  const { own, inline, mapped } = result;
  assert.equal(own.traceId, traceId);
  assert.deepEqual(inline, own);
  assert.deepEqual(new Set(mapped.map((each) => each.traceId)), new Set([traceId]));
  const elsewhere = mapped.filter(({ pid }) => pid !== own.pid);
  for (const { spanId } of elsewhere) assert.notEqual(spanId, own.spanId);
});

test('a worker that loads no instrumentation runs the task as it is', async (t) => {
  const pool = openPool(t, { size: 1 });
  const { result } = await inSpan('request', () => pool.run((value: number) => value + 1, 1));
  assert.equal(result, 2);
});

test('a message has the trace of its sender, and its handler a span', async (t) => {
  const bus = new EventBus({ copy: createCopy() });
  t.after(() => bus.close());
  const seen: (string | undefined)[] = [];
  bus.consumer('shop.order', async (message) => {
    await Promise.resolve();
    seen.push(trace.getActiveSpan()?.spanContext().traceId);
    if (message.body === 'wrong') throw new Error('no such order');
    message.reply('done');
  });
  takeSpans();
  const { traceId, spanId } = await inSpan('request', () => bus.request('shop.order', 'one'));
  await assert.rejects(
    inSpan('request', () => bus.request('shop.order', 'wrong')),
    { code: 'BUS_HANDLER_ERROR' },
  );
  await bus.request('shop.order', 'without');
  assert.equal(seen[0], traceId);
  assert.equal(seen[2], undefined);
  const handled = takeSpans().filter(({ name }) => name === 'process shop.order');
  assert.equal(handled.length, 2);
  assert.deepEqual([handled[0]?.traceId, handled[0]?.parentId], [traceId, spanId]);
  assert.deepEqual(
    handled.map(({ error }) => error),
    [undefined, 'no such order'],
  );
  assert.equal(handled[0]?.attributes['messaging.destination.name'], 'shop.order');
});

test('a message that is forwarded with its headers is a child of the forwarder', async (t) => {
  const bus = new EventBus({ copy: createCopy() });
  t.after(() => bus.close());
  bus.consumer('first', async (message) => {
    const { headers } = message;
    message.reply((await bus.request('second', message.body, { headers })).body);
  });
  bus.consumer('second', (message) => message.reply('done'));
  takeSpans();
  const { traceId } = await inSpan('request', () => bus.request('first', 'one'));
  const spans = takeSpans();
  const first = spans.find(({ name }) => name === 'process first');
  const second = spans.find(({ name }) => name === 'process second');
  assert.deepEqual([second?.traceId, second?.parentId], [traceId, first?.spanId]);
});
