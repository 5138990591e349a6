// Metrics of a served program, aggregated over its loops.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { Counter, Registry } from 'prom-client';
import { metricsFrom } from '../../../src/agent/index.js';
import { metricsText } from '../../../src/observe/metrics/public.js';
import { ask, portOf } from '../../serve/client.js';
import { open, program, skip } from '../../serve/served.js';
import { waitFor } from '../../support/index.js';
import { linesOf, valuesOf } from './scrape.js';

const client = createRequire(import.meta.url).resolve('prom-client');
const serveModule = new URL('../../../src/serve/public.js', import.meta.url).href;

const text = `
import { createServer } from 'node:http';
import client from ${JSON.stringify(client)};
import { metricsFrom, self } from ${JSON.stringify(serveModule)};

const { Counter, Gauge, Histogram, Summary, register } = client;
metricsFrom(register);
metricsFrom(register); // has no effect
const served = new Counter({ name: 'served_total', help: 'Requests', labelNames: ['path'] });
const took = new Histogram({ name: 'took', help: 'Time', buckets: [1, 10] });
const sizes = new Summary({ name: 'sizes', help: 'Sizes' });
for (const aggregator of ['sum', 'first', 'omit', 'average', 'min', 'max']) {
  new Gauge({ name: 'instance_' + aggregator, help: 'Number', aggregator }).set(self.instance);
}
new Gauge({ name: 'manycore_heap_used_bytes', help: 'Taken' }).set(-1);
new Gauge({ name: 'odd', help: 'Not a number' }).set(NaN);
createServer((request, response) => {
  served.inc({ path: request.url });
  took.observe(5);
  sizes.observe(7);
  response.end('ok');
}).listen(0);
`;

test('counters and histograms are summed, gauges follow their aggregator', {
  skip,
}, async (t) => {
  const app = program(t, 'app.mjs', text);
  const server = await open(t, app, { processes: 2, loops: 2 });
  const port = portOf(server);
  const scraped = async () => linesOf(await metricsText());
  const haveAll = async (): Promise<boolean> => {
    const [sum] = valuesOf(await scraped(), 'instance_sum');
    return sum === 0 + 1 + 2 + 3;
  };
  await waitFor(haveAll);
  const send = async (path: string, count: number): Promise<void> => {
    for (let sent = 0; sent < count; sent += 1) await ask(port, path);
  };
  await send('/a', 20);
  await send('/b', 3);
  // A loop that has no core for a second is left out.
  const withAll = (count: number) =>
    waitFor(async () => {
      const found = await scraped();
      return valuesOf(found, 'took_count')[0] === count && found;
    });
  const lines = await withAll(23);
  assert.deepEqual(valuesOf(lines, 'served_total', { path: '/a' }), [20]);
  assert.deepEqual(valuesOf(lines, 'served_total', { path: '/b' }), [3]);
  assert.deepEqual(valuesOf(lines, 'took_bucket', { le: '1' }), [0]);
  assert.deepEqual(valuesOf(lines, 'took_bucket', { le: '10' }), [23]);
  assert.deepEqual(valuesOf(lines, 'took_bucket', { le: '+Inf' }), [23]);
  assert.deepEqual(valuesOf(lines, 'took_sum'), [115]);
  assert.deepEqual(valuesOf(lines, 'sizes_sum'), [161]);
  assert.deepEqual(valuesOf(lines, 'sizes_count'), [23]);
  assert.deepEqual(valuesOf(lines, 'sizes'), []); // quantiles cannot be aggregated
  assert.deepEqual(valuesOf(lines, 'instance_min'), [0]);
  assert.deepEqual(valuesOf(lines, 'instance_max'), [3]);
  assert.deepEqual(valuesOf(lines, 'instance_average'), [1.5]);
  assert.equal(valuesOf(lines, 'instance_first').length, 1);
  assert.deepEqual(valuesOf(lines, 'instance_omit'), []);
  assert.deepEqual(valuesOf(lines, 'odd'), []);
  assert.ok(!valuesOf(lines, 'manycore_heap_used_bytes').includes(-1));
  const whole = await metricsText();
  for (const name of ['served_total', 'took', 'manycore_thread_up']) {
    assert.equal(whole.match(new RegExp(`^# TYPE ${name} `, 'gm'))?.length, 1, name);
  }

  await server.reload();
  await waitFor(haveAll); // gauges of ended loops no longer count
  await send('/a', 2);
  assert.deepEqual(valuesOf(await withAll(25), 'served_total', { path: '/a' }), [22]);
});

test('a program without a server has its own metrics behind those of manycore', async () => {
  const registry = new Registry();
  new Counter({ name: 'own_total', help: 'Own', registers: [registry] }).inc(5);
  metricsFrom(registry);
  assert.deepEqual(valuesOf(linesOf(await metricsText()), 'own_total'), [5]);
});

test('a registry that fails leaves the other metrics', async () => {
  const failing = { getMetricsAsJSON: () => Promise.reject(new Error('as it should')) };
  metricsFrom(failing);
  assert.match(await metricsText(), /^# TYPE manycore_thread_up gauge$/m);
});

for (const registry of [undefined, null, {}, 'register', { getMetricsAsJSON: 1 }]) {
  test(`metricsFrom refuses ${JSON.stringify(registry)}`, () => {
    // @ts-expect-error: a wrong value
    assert.throws(() => metricsFrom(registry), {
      code: 'OPTION_INVALID',
      message: /^registry is .*: it must be a Registry of prom-client/,
    });
  });
}
