// `manycore serve --metrics`: the supervisor reports all processes and loops to Prometheus.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../faults/child.js';
import { scrape, valuesOf } from '../observe/metrics/scrape.js';
import { ownRuntime } from '../observe/runtime.js';
import { bodyOf } from '../serve/client.js';
import { folder, listens, program, skip } from '../serve/served.js';
import { waitFor } from '../support/index.js';
import { command, deadlineMs, startWith } from './serving.js';

test('serve --metrics prints the address of the metrics, which cover all loops', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const { lines, port } = await startWith(t, ['-P', '1', '-L', '2', '--metrics', '0', listens]);
  const line = await waitFor(
    () => lines.find((line) => line.startsWith('metrics at ')),
    deadlineMs,
  );
  const [, url = ''] = /^metrics at (http:\/\/127\.0\.0\.1:\d+\/metrics)$/.exec(line) ?? [];
  for (let count = 0; count < 4; count += 1) await bodyOf(port);
  const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);
  await waitFor(async () => {
    const found = await scrape(url);
    const isWhole = valuesOf(found, 'manycore_thread_up', {}).length === 3;
    return isWhole && sum(valuesOf(found, 'manycore_requests_total')) === 4;
  }, deadlineMs);
});

test('a configuration may set the address of the metrics', { skip }, async (t) => {
  ownRuntime(t);
  const app = program(t, 'app.mjs', `export default (q, r) => r.end('here');`);
  const config = join(folder(t), 'config.json');
  const metrics = { host: '127.0.0.2', port: 0 };
  writeFileSync(config, JSON.stringify({ app, port: 0, processes: 1, loops: 1, metrics }));
  const { lines } = await startWith(t, ['--config', config]);
  await waitFor(() => lines.some((line) => /^metrics at http:\/\/127\.0\.0\.2:\d+/.test(line)));
});

test('metrics that cannot be served give one sentence, and nothing is served', {
  skip,
}, async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = Object(other.address());
  const run = [process.execPath, command, 'serve', '-P', '1', '-L', '1'];
  const taken = await runCommand(t, [...run, '--metrics', String(port), listens]);
  assert.equal(taken.status, 2);
  assert.match(
    taken.stderr,
    /^manycore: metrics cannot be served at .*EADDRINUSE.*\(METRICS_LISTEN_FAILED\)\n$/,
  );
  assert.equal(taken.stdout, '');
  const wrong = await runCommand(t, [...run, '--metrics', 'here', listens]);
  assert.match(wrong.stderr, /PORT or HOST:PORT/);
  const config = join(folder(t), 'config.json');
  writeFileSync(config, JSON.stringify({ app: listens, metrics: '9464' }));
  const text = await runCommand(t, [process.execPath, command, 'serve', '--config', config]);
  assert.match(text.stderr, /metrics is "9464": it must be a port, or \{ host, port \}/);
});
