// `instrument` with an SDK: metrics of the whole program, exported once, and spans that are not lost.

import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type DataPoint, MeterProvider } from '@opentelemetry/sdk-metrics';
import { metricDefinitions, openTelemetryName } from '../../../src/observe/metrics/definitions.js';
import { instrument } from '../../../src/observe/opentelemetry/opentelemetry.js';
import { Pool } from '../../../src/public.js';
import { runCommand } from '../../faults/child.js';
import { folder } from '../../serve/served.js';
import { ownRuntime } from '../runtime.js';
import { Reader } from './reader.js';
import { inSpan } from './tracing.js';

/** All exported metrics, by name. */
async function collected(reader: Reader): Promise<Map<string, readonly DataPoint<unknown>[]>> {
  const { resourceMetrics, errors } = await reader.collect();
  assert.deepEqual(errors, []);
  const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  return new Map(all.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]));
}

test('the metrics are those of the table, read when the SDK collects', async (t) => {
  ownRuntime(t);
  const reader = new Reader();
  instrument({ meterProvider: new MeterProvider({ readers: [reader] }) });
  const pool = new Pool({ size: 1 });
  t.after(() => pool.close());
  await pool.run(() => 1);
  const first = await collected(reader);
  const [done] = first.get('manycore.tasks.completed') ?? [];
  assert.equal(done?.value, 1);
  assert.equal(done?.attributes['pid'], process.pid);
  await pool.run(() => 2);
  const second = await collected(reader);
  assert.equal(second.get('manycore.tasks.completed')?.[0]?.value, 2);
  const defined = new Set(metricDefinitions.map(openTelemetryName));
  assert.deepEqual(
    [...second.keys()].filter((name) => !defined.has(name)),
    [],
  );
  assert.ok((second.get('manycore.loop.active')?.length ?? 0) === 1);
});

test('the second call takes the place of the first', async (t) => {
  ownRuntime(t);
  const [one, two] = [new Reader(), new Reader()];
  instrument({ meterProvider: new MeterProvider({ readers: [one] }) });
  instrument({ meterProvider: new MeterProvider({ readers: [two] }) });
  assert.equal((await collected(one)).size, 0);
  assert.ok((await collected(two)).size > 0);
});

test('the error for a wrong option has its name', () => {
  const wrong: object = { meter: 1 };
  assert.throws(() => instrument(wrong), { code: 'OPTION_INVALID', message: /meter/ });
});

test('a worker sends its last spans before it exits', async (t) => {
  const file = join(folder(t), 'spans');
  const pool = new Pool({
    size: 1,
    execArgv: ['--import', new URL('./late.js', import.meta.url).href],
    env: { SPANS_FILE: file },
  });
  t.after(() => pool.destroy());
  await inSpan('request', () =>
    pool.run(function work() {
      return 1;
    }),
  );
  assert.equal(existsSync(file), false);
  await pool.close();
  assert.equal(readFileSync(file, 'utf8'), 'task work\n');
});

/** A copy of the package in which only `names` are installed beside it. */
function packageWith(t: TestContext, names: readonly string[]): string {
  const path = folder(t);
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  cpSync(join(root, 'dist/bundle'), join(path, 'dist/bundle'), { recursive: true });
  cpSync(join(root, 'package.json'), join(path, 'package.json'));
  mkdirSync(join(path, 'node_modules'));
  for (const name of names) {
    symlinkSync(join(root, 'node_modules', name), join(path, 'node_modules', name));
  }
  return path;
}

test('without the API of OpenTelemetry, the error of instrument() names the package to install', async (t) => {
  const path = packageWith(t, ['acorn']);
  const program = join(path, 'program.mjs');
  writeFileSync(
    program,
    `import { instrument } from './dist/bundle/opentelemetry.js';
     try { instrument(); } catch (error) { console.log(error.code, error.message); }`,
  );
  const { stdout, stderr } = await runCommand(t, [process.execPath, program]);
  assert.equal(
    stdout,
    'OPENTELEMETRY_MISSING @opentelemetry/api is not installed: ' +
      'npm install @opentelemetry/api, and an SDK\n',
    stderr,
  );
});
