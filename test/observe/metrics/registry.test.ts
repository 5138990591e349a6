// Metrics in a registry of the program's own, and their names.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gauge, Registry } from 'prom-client';
import {
  metricDefinitions,
  openTelemetryName,
  prometheusName,
} from '../../../src/observe/metrics/definitions.js';
import { metricsText, registerMetrics } from '../../../src/observe/metrics/public.js';
import { openPool } from '../../pool/calls/ways.js';
import { waitFor } from '../../support/index.js';
import { readRepositoryFile } from '../../support/repository.js';
import { ownRuntime } from '../runtime.js';
import { linesOf, valuesOf } from './scrape.js';

test('a registry of the program has all metrics beside its own', async (t) => {
  ownRuntime(t);
  const registry = new Registry();
  new Gauge({ name: 'shop_carts', help: 'of the program', registers: [registry] }).set(3);
  registerMetrics(registry);
  const lines = linesOf(await registry.metrics());
  assert.deepEqual(valuesOf(lines, 'shop_carts'), [3]);
  assert.deepEqual(valuesOf(lines, 'manycore_thread_up', { pid: process.pid }), [1]);
  // While one module loads the loop has not begun yet.
  await waitFor(() => performance.eventLoopUtilization().active > 0);
  const again = linesOf(await registry.metrics());
  const sum = (found: typeof lines, name: string): number => valuesOf(found, name)[0] ?? 0;
  const active = sum(again, 'manycore_loop_active_seconds_total');
  const idle = sum(again, 'manycore_loop_idle_seconds_total');
  assert.ok(active > 0 && active + idle <= performance.now() / 1000); // read anew, not added up
});

test('a registry has all metrics as JSON, too', async (t) => {
  ownRuntime(t);
  const pool = openPool(t, { size: 1 });
  await pool.run(() => 1);
  const registry = new Registry();
  registerMetrics(registry);
  const metrics = await registry.getMetricsAsJSON();
  const waits = metrics.find(({ name }) => name === 'manycore_task_wait_seconds');
  assert.ok(
    waits?.values.some(({ value }) => value === 1),
    JSON.stringify(waits),
  );
});

test('a name that is taken is METRIC_NAME_TAKEN, and nothing was registered', () => {
  const registry = new Registry();
  const last = metricDefinitions.at(-1);
  assert.ok(last !== undefined);
  const name = prometheusName(last);
  new Gauge({ name, help: 'of the program', registers: [registry] });
  assert.throws(() => registerMetrics(registry), {
    code: 'METRIC_NAME_TAKEN',
    message: `the registry has a metric ${name} already: register once, or give a prefix`,
  });
  assert.deepEqual(
    registry.getMetricsAsArray().map((metric) => metric.name),
    [name],
  );
  registerMetrics(registry, { prefix: 'shop_' });
  assert.notEqual(registry.getSingleMetric(`shop_${name}`), undefined);
});

test('a second registration is an error that names the way out', () => {
  const registry = new Registry();
  registerMetrics(registry);
  const count = registry.getMetricsAsArray().length;
  assert.equal(count, metricDefinitions.length);
  assert.throws(() => registerMetrics(registry), {
    code: 'METRIC_NAME_TAKEN',
    message: /manycore_thread_up and \d+ more already: register once, or give a prefix/,
  });
  assert.equal(registry.getMetricsAsArray().length, count);
});

test('a prefix that no name may have is refused', () => {
  for (const prefix of ['9_', 'a-b', 'ä_']) {
    assert.throws(() => registerMetrics(new Registry(), { prefix }), { code: 'OPTION_INVALID' });
  }
});

test('names are valid in Prometheus, and unique', () => {
  const names = metricDefinitions.map(prometheusName);
  assert.equal(new Set(names).size, names.length);
  assert.equal(new Set(metricDefinitions.map(openTelemetryName)).size, names.length);
  for (const definition of metricDefinitions) {
    const name = prometheusName(definition);
    assert.match(name, /^manycore_[a-z_]+$/);
    assert.equal(name.endsWith('_total'), definition.type === 'counter', name);
    if (definition.unit === 's') assert.match(name, /_seconds(_total)?$/);
    if (definition.unit === 'By') assert.match(name, /_bytes(_total)?$/);
    assert.doesNotMatch(definition.help, /\.$/);
  }
});

test('labels are few, and none has a name of the program in it', () => {
  const common = ['pid', 'thread', 'pool', 'bus', 'server', 'loop'];
  const few = ['role', 'slot', 'state', 'kind', 'mode', 'quantile', 'limit'];
  const labels = new Set(metricDefinitions.flatMap((each) => each.labels));
  assert.deepEqual(
    [...labels].filter((label) => ![...common, ...few].includes(label)),
    [],
  );
});

test('the text describes each metric', async (t) => {
  ownRuntime(t);
  const text = await metricsText();
  for (const definition of metricDefinitions) {
    const name = prometheusName(definition);
    assert.ok(text.includes(`# HELP ${name} ${definition.help}\n`), name);
    assert.ok(text.includes(`# TYPE ${name} ${definition.type}\n`), name);
  }
});

test('docs/metrics.md has each metric with its labels, and what to do when it rises', () => {
  const page = readRepositoryFile('docs/metrics.md');
  const sections = page.split(/^### /m).slice(1);
  const documented = sections.map((section) => section.slice(0, section.indexOf('\n')));
  const names = metricDefinitions.map((each) => `\`${prometheusName(each)}\``);
  assert.deepEqual(documented, names);
  for (const [at, definition] of metricDefinitions.entries()) {
    const section = sections[at] ?? '';
    const { type, labels, help } = definition;
    const facts = `${help}. A ${type}, by ${labels.map((label) => `\`${label}\``).join(', ')}.`;
    assert.ok(section.includes(`\n\n${facts}`), `${definition.name}: "${facts}" is not there`);
    assert.ok(section.includes(`\`${openTelemetryName(definition)}\``), definition.name);
    assert.match(section, /^\*\*When it (rises|falls)\.\*\* \S/m, definition.name);
  }
});
