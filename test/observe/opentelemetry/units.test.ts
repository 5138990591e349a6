// A trace from this program to a unit on another loop, and on to the unit's own task in a worker.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { UnitContext } from '../../../src/public.js';
import { folder } from '../../serve/served.js';
import { skip, startLoops } from '../../units/loops.js';
import { ownRuntime } from '../runtime.js';
import { inSpan, type spinInSpan } from './tracing.js';

/** Makes processes that are started later load the instrumentation. */
function instrumentProcesses(t: TestContext, by = './tracing.js'): void {
  const before = process.env['NODE_OPTIONS'];
  process.env['NODE_OPTIONS'] = `--import ${new URL(by, import.meta.url).href}`;
  t.after(() => {
    if (before === undefined) delete process.env['NODE_OPTIONS'];
    else process.env['NODE_OPTIONS'] = before;
  });
}

interface Where {
  readonly handler: ReturnType<typeof spinInSpan>;
  readonly task: ReturnType<typeof spinInSpan>;
  readonly metrics: number;
}

test('a trace goes to a unit and on to its task; the loop exports no metrics of its own', {
  skip,
}, async (t) => {
  ownRuntime(t);
  instrumentProcesses(t);
  const loops = startLoops(t, { processes: 1, loops: 1 });
  await loops.deploy(new URL('../apps/traced-unit.js', import.meta.url));
  const { result, traceId, spanId } = await inSpan('request', () =>
    loops.bus.request<Where>('where', undefined),
  );
  const { handler, task, metrics } = result.body;
  assert.equal(handler.traceId, traceId);
  assert.notEqual(handler.spanId, spanId);
  assert.notEqual(handler.pid, process.pid);
  assert.equal(task.traceId, traceId);
  assert.notEqual(task.spanId, handler.spanId);
  assert.notEqual(task.pid, handler.pid);
  // The program reports all its loops.
  assert.equal(metrics, 0);
});

function answers({ bus }: UnitContext): void {
  bus.consumer('ask', (message) => message.reply('here'));
}

for (const on of ['loop', 'blocking'] as const) {
  test(`a ${on} of units sends its last spans before it exits`, { skip }, async (t) => {
    ownRuntime(t);
    const file = join(folder(t), 'spans');
    instrumentProcesses(t, './late.js');
    process.env['SPANS_FILE'] = file;
    t.after(() => delete process.env['SPANS_FILE']);
    const loops = startLoops(t, { processes: 1, loops: 1 });
    await loops.deploy(answers, { on });
    await inSpan('request', () => loops.bus.request('ask', undefined));
    assert.equal(existsSync(file), false);
    await loops.close();
    assert.equal(readFileSync(file, 'utf8'), 'process ask\n');
  });
}
