// Requests of traced commands: counted inside every Node process and thread that they start, without any
// harm to the program.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RequestCounts, withPreload } from '../../src/syscalls/request-counts.js';
import { runCommand } from '../faults/child.js';
import { command, notLinux, notRoot, scratch, type Traced, trace } from './tracing.js';

const created = RequestCounts.create(['node']);
if (typeof created === 'object') created.close();
const skip = notLinux || (typeof created === 'string' && created);

/** A server that sends itself that many requests, 5 at once; one connection each. */
const asking = `
const { createServer, get } = require('node:http');
const listen = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
async function ask(server, count) {
  let left = count;
  const one = () => new Promise((resolve, reject) => {
    const options = { port: server.address().port, host: '127.0.0.1', agent: false };
    get(options, (response) => response.resume().on('end', resolve)).on('error', reject);
  });
  await Promise.all([1, 2, 3, 4, 5].map(async () => { while (left-- > 0) await one(); }));
}
async function serve(count) {
  const server = createServer((request, response) => response.end('x'));
  await listen(server);
  await ask(server, count);
  return server;
}
`;

/** Traces a program of that text, and checks that the trace leaves nothing behind. */
async function traceProgram(
  t: TestContext,
  text: string,
  { flags = [], env = {} }: { flags?: string[]; env?: Record<string, string> } = {},
): Promise<Traced> {
  const [folder, temporary] = [scratch(t), scratch(t)];
  const program = join(folder, 'program.cjs');
  writeFileSync(program, asking + text);
  const args = ['--method', 'counters', ...flags, '--', process.execPath, program];
  const traced = await trace(t, args, { env: { ...env, TMPDIR: temporary } });
  const left = readdirSync(temporary).filter((name) => name.startsWith('manycore-requests'));
  assert.deepEqual(left, []);
  return traced;
}

test('a command that serves HTTP has all requests that it answered in its report', {
  skip,
}, async (t) => {
  const { report, status } = await traceProgram(t, 'serve(250).then((server) => server.close());');
  assert.equal(status, 0);
  assert.deepEqual(report.requests, { count: 250 });
});

test('the text of a report has the cost of a request of a command', { skip }, async (t) => {
  const program = join(scratch(t), 'program.cjs');
  writeFileSync(program, `${asking} serve(40).then((server) => server.close());`);
  const line = [command, 'trace', '--method', 'counters', '--', process.execPath, program];
  const { stderr } = await runCommand(t, [process.execPath, ...line]);
  assert.match(stderr, /^requests {2}40/m);
});

test('requests of all processes of a cluster are one sum', { skip }, async (t) => {
  const { report } = await traceProgram(
    t,
    `const cluster = require('node:cluster');
    let asking = 2;
    if (cluster.isPrimary) {
      for (const count of [30, 50]) {
        const worker = cluster.fork({ COUNT: count });
        // Both share a port: a finished one has to answer the other's requests.
        worker.on('message', () => { asking -= 1; if (asking === 0) cluster.disconnect(); });
      }
    } else serve(Number(process.env.COUNT)).then(() => process.send('done'));`,
  );
  assert.deepEqual(report.requests, { count: 80 });
});

test('requests of worker threads count with those of the main thread', { skip }, async (t) => {
  const { report } = await traceProgram(
    t,
    `const { isMainThread, Worker } = require('node:worker_threads');
    if (isMainThread) new Worker(__filename);
    serve(isMainThread ? 30 : 70).then((server) => server.close());`,
  );
  assert.deepEqual(report.requests, { count: 100 });
});

/** Answers 60 requests, and resolves once they are in the counts. */
const serveCounted = `
const { readdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const folder = process.env.MANYCORE_TRACE_REQUESTS;
const counts = () => readdirSync(folder).map((name) => Number(readFileSync(join(folder, name))));
const serveCounted = async () => {
  const server = await serve(60);
  while (counts()[0] !== 60) await new Promise((resolve) => setTimeout(resolve, 5));
  return server;
};
`;

test('a program that is killed loses no more than its last moment', { skip }, async (t) => {
  const { report, status } = await traceProgram(
    t,
    `${serveCounted} serveCounted().then((server) => ask(server, 10)).then(() => process.kill(process.pid, 'SIGKILL'));`,
  );
  assert.equal(status, 128 + 9);
  const { count = 0 } = report.requests ?? {};
  assert.ok(count >= 60 && count <= 70, `${count}`);
});

test('a server that is ended by the trace has what it answered before', { skip }, async (t) => {
  const text = `${serveCounted} serveCounted().then(() => console.log('counted'));`;
  let traced = await traceProgram(t, text, { flags: ['--seconds', '3'] });
  // Requests may take longer on a busy machine.
  if (traced.stdout === '') traced = await traceProgram(t, text, { flags: ['--seconds', '30'] });
  assert.equal(traced.stdout, 'counted\n');
  assert.deepEqual(traced.report.requests, { count: 60 });
});

test('a single request is counted at once, not after an interval', { skip }, async (t) => {
  const { report } = await traceProgram(
    t,
    `serve(1).then(() => process.kill(process.pid, 'SIGKILL'));`,
  );
  assert.deepEqual(report.requests, { count: 1 });
});

test('counting keeps no program running', { skip }, async (t) => {
  const { stdout, report } = await traceProgram(
    t,
    `serve(5).then((server) => {
      server.close();
      console.log(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length);
    });`,
  );
  assert.equal(stdout, '0\n');
  assert.deepEqual(report.requests, { count: 5 });
});

const major = Number(process.versions.node.split('.')[0]);

test('streams of HTTP/2 are requests where Node reports them', {
  skip: skip || (major < 24 && 'Node 20 does not report them'),
}, async (t) => {
  const { report } = await traceProgram(
    t,
    `const http2 = require('node:http2');
    const server = http2.createServer((request, response) => response.end('x'));
    listen(server).then(() => {
      const client = http2.connect('http://127.0.0.1:' + server.address().port);
      const one = () => new Promise((resolve) => client.request().resume().on('close', resolve));
      return one().then(one).then(one).then(() => { client.close(); server.close(); });
    });`,
  );
  assert.deepEqual(report.requests, { count: 3 });
});

test('a program without HTTP has no requests, and keeps its exit code', { skip }, async (t) => {
  const { report, status, stdout } = await traceProgram(
    t,
    `console.log(process.listenerCount('exit')); process.exitCode = 7;`,
  );
  assert.equal(report.requests, null);
  assert.equal(status, 7);
  assert.equal(stdout, '0\n');
});

test('the earlier value of NODE_OPTIONS is kept', { skip }, async (t) => {
  const options = '--stack-trace-limit=3 --title="kept as it is"';
  const { report, stdout } = await traceProgram(
    t,
    `console.log(Error.stackTraceLimit, process.title);
    serve(5).then((server) => server.close());`,
    { env: { NODE_OPTIONS: options } },
  );
  assert.equal(stdout, '3 kept as it is\n');
  assert.deepEqual(report.requests, { count: 5 });
});

test('a file is loaded although Node would split its path', { skip: notLinux }, (t) => {
  for (const name of ['plain', 'with space', 'quoted " twice "', 'back\\slash \\" all']) {
    const folder = join(scratch(t), name);
    mkdirSync(folder);
    const file = join(folder, 'loaded.cjs');
    writeFileSync(file, 'console.log(__filename)');
    const env = { ...process.env, NODE_OPTIONS: withPreload('--no-warnings', file) };
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', '0'], { env, encoding: 'utf8' });
    assert.equal(stdout, `${file}\n`, stderr);
  }
});

test('options that Node refuses are refused as without a trace', { skip }, async (t) => {
  const env = { NODE_OPTIONS: '--title="never ended' };
  const { status } = spawnSync(process.execPath, ['-e', '0'], { env });
  // The trace is a Node program itself: only the command has the variables.
  const line = ['sh', '-c', 'NODE_OPTIONS="$NODE_OPTIONS $0" exec "$@"', env.NODE_OPTIONS];
  const args = ['--method', 'counters', '--', ...line, process.execPath, '-e', '0'];
  assert.equal((await trace(t, args)).status, status);
});

test('a program that may read few files runs as without a trace', { skip }, async (t) => {
  const { allowedNodeEnvironmentFlags: known } = process;
  const flag = known.has('--permission') ? '--permission' : '--experimental-permission';
  const text = [process.execPath, flag, '-e', 'console.log("ran")'];
  const { status, stdout, stderr } = await trace(t, ['--method', 'counters', '--', ...text]);
  assert.equal(status, 0, stderr);
  assert.equal(stdout, 'ran\n');
});

test('a missing folder for counts is reported, and the server runs without counts', {
  skip,
}, async (t) => {
  const env = { TMPDIR: `${scratch(t)}/none` };
  const text = `${asking} serve(9).then((server) => server.close());`;
  const args = ['--method', 'counters', '--', process.execPath, '-e', text];
  const { report, status } = await trace(t, args, { env });
  assert.equal(status, 0);
  assert.equal(report.requests, null);
  assert.match(report.notes.join(), /Requests are not counted: ENOENT.* TMPDIR/);
});

const noMount =
  notRoot ||
  (spawnSync('unshare', ['--mount', 'true']).status !== 0 && 'mounts cannot be made here');

for (const [what, prepare] of [
  ['fills up', 'head -c 1M /dev/zero > "$0/full" 2> /dev/null'],
  ['can only be read', 'mount -o remount,ro "$0"'],
] as const) {
  test(`a server whose folder for counts ${what} goes on, and has no figure`, {
    skip: skip || noMount,
  }, async (t) => {
    const folder = scratch(t);
    // The program does it, before its first answer: the trace has created its folder by then.
    const text = `${asking}
    require('node:child_process').spawnSync('sh', ['-c', ${JSON.stringify(prepare)}, '${folder}']);
    serve(9).then((server) => { server.close(); console.log('ran'); });`;
    const mount = 'mount -t tmpfs -o size=64k small "$0" && exec "$@"';
    const before = ['unshare', '--mount', 'sh', '-c', mount, folder];
    const args = ['--method', 'counters', '--', process.execPath, '-e', text];
    const { report, status, stdout } = await trace(t, args, { before, env: { TMPDIR: folder } });
    assert.equal(status, 0);
    assert.match(stdout, /^ran$/m);
    assert.equal(report.requests, null);
  });
}

test('a file that others may not read is not loaded into what root starts', {
  skip: notLinux || notRoot,
}, (t) => {
  const folder = scratch(t); // readable by its owner only
  const file = join(folder, 'count.cjs');
  writeFileSync(file, '');
  const refused = RequestCounts.create(['node'], file);
  assert.equal(typeof refused, 'string');
  assert.match(`${refused}`, /may not be read by all/);
  chmodSync(folder, 0o711);
  const counts = RequestCounts.create(['node'], file);
  assert.ok(typeof counts === 'object', `${counts}`);
  counts.close();
});
