// Requests of a traced server: as many as it answered during the trace.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { TracedRequests } from '../../src/cli/commands/trace/trace-requests.js';
import { remoteServers } from '../../src/serve/index.js';
import { freePort, waitFor, withDeadline } from '../support/index.js';
import { command, notLinux, scratch } from './tracing.js';

const skip = notLinux;

const text = `require('node:http').createServer((request, response) => response.end('x'))
  .listen(Number(process.env.PORT), '127.0.0.1');`;

function isAnswered(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = get({ port, host: '127.0.0.1', agent: false }, (response) => {
      response.resume().on('end', () => resolve(true));
    });
    asked.on('error', () => resolve(false));
  });
}

/** Resolves after `count` answered requests; one at a time. */
async function ask(port: number, count: number): Promise<void> {
  for (let left = count; left > 0; ) if (await isAnswered(port)) left -= 1;
}

/** Returns the count of the server at this port. */
async function countOf(port: number): Promise<number> {
  const servers = await remoteServers();
  const own = servers.filter(({ status: { addresses } }) =>
    addresses.some((address) => Object(address).port === port),
  );
  const loops = own.flatMap(({ status }) => status.loops);
  return loops.reduce((sum, { requests }) => sum + requests, 0);
}

/** A loop counts a request when it releases it, which may be after the client has its answer. */
async function hasCounted(port: number, count: number): Promise<void> {
  await waitFor(async () => (await countOf(port)) === count);
}

/** `manycore serve`, behind other arguments. */
function startServer(t: TestContext, port: number, before: readonly string[]) {
  const app = join(scratch(t), 'app.cjs');
  writeFileSync(app, text);
  const args = [...before, command, 'serve', '-P', '1', '-L', '1', app];
  const env = { ...process.env, PORT: `${port}` };
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
  t.after(() => child.kill('SIGTERM'));
  return { child, ended: new Promise((resolve) => child.once('exit', resolve)) };
}

test('requests of a server that runs are those that it answers while it is traced', {
  skip,
}, async (t) => {
  const port = await freePort();
  const { child, ended } = startServer(t, port, []);
  await withDeadline(ask(port, 20), 30_000, 'it serves');
  await hasCounted(port, 20);
  const file = join(scratch(t), 'report.json');
  const flags = ['--method', 'counters', '--seconds', '100', '--json', '--output', file];
  const tracing = spawn(process.execPath, [command, 'trace', ...flags, `${child.pid}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => tracing.kill('SIGKILL'));
  const traced = once(tracing, 'exit');
  await withDeadline(once(tracing.stderr, 'data'), 30_000, 'the trace begins');
  await withDeadline(ask(port, 30), 30_000, 'it serves');
  await hasCounted(port, 50);
  tracing.kill('SIGINT');
  await withDeadline(traced, 30_000, 'the trace ends');
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')).requests, { count: 30 });
  child.kill('SIGTERM');
  await withDeadline(ended, 20_000, 'the server ends');
});

test('requests of a server that is traced from its start are all that it answered', {
  skip,
}, async (t) => {
  const port = await freePort();
  const file = join(scratch(t), 'report.json');
  const flags = ['--method', 'counters', '--json', '--output', file];
  const { child, ended } = startServer(t, port, [
    command,
    'trace',
    ...flags,
    '--',
    process.execPath,
  ]);
  await withDeadline(ask(port, 40), 30_000, 'it serves');
  await hasCounted(port, 40);
  child.kill('SIGTERM');
  await withDeadline(ended, 20_000, 'the trace ends');
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')).requests, { count: 40 });
});

test('loops that appear meanwhile, and those that are replaced, count from 0', async () => {
  let loops = [{ pid: 11, loop: 0, requests: 500 }];
  const servers = async () => [
    { status: { pid: 10, loops } },
    { status: { pid: 20, loops: [{ pid: 21, loop: 0, requests: 7 }] } },
  ];
  const requests = new TracedRequests({ pids: [10, 11] }, false, servers);
  await requests.begin();
  loops = [{ pid: 11, loop: 0, requests: 510 }];
  await requests.poll();
  loops = [
    { pid: 11, loop: 0, requests: 3 },
    { pid: 12, loop: 0, requests: 40 },
  ];
  assert.deepEqual(await requests.end(), { count: 10 + 3 + 40 });
  const others = new TracedRequests({ pids: [30] }, false, servers);
  await others.begin();
  assert.equal(await others.end(), undefined);
});
