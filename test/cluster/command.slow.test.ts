// Credentials and TLS of `manycore run --cluster` and `manycore worker`. No secret is on a command line,
// where everybody can read it.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Pool } from '../../src/public.js';
import { command } from '../cli/serving.js';
import { runCommand } from '../faults/child.js';
import { cert, key } from '../serve/apps/certificate.js';
import { childrenOf, waitFor } from '../support/index.js';
import { skip as noBinary } from '../units/loops.js';
import { makeCredentials } from './credentials.js';
import { joinBus, skip as noServer, type Server, startServer } from './server.js';

const secret = 'nobody else knows this';
const slow = fileURLToPath(new URL('../units/apps/slow.js', import.meta.url));
const names = fileURLToPath(new URL('./apps/names.js', import.meta.url));
const sums = fileURLToPath(new URL('./apps/sums.js', import.meta.url));

/** A folder with these files, gone after the test. */
function filesOf(t: TestContext, texts: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-command-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
  return folder;
}

/** Runs the command until it has joined the cluster. */
async function joined(
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [command, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MANYCORE_CLUSTER_SECRET: secret, ...env },
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines.find((line) => line.startsWith('in the cluster')));
  return child;
}

function node({ url }: Pick<Server, 'url'>, ...flags: string[]): string[] {
  return ['worker', '--nats', url, '--workers', '1', ...flags];
}

function unit({ url }: Pick<Server, 'url'>, ...flags: string[]): string[] {
  return ['run', sums, '--instances', '1', '--loops', '1', '--cluster', url, ...flags];
}

/** Ends with exit code 2 and this message in one line. */
async function fails(
  t: TestContext,
  args: readonly string[],
  pattern: RegExp,
  env: Record<string, string> = {},
): Promise<void> {
  const ended = await runCommand(t, [process.execPath, command, ...args], {
    MANYCORE_CLUSTER_SECRET: secret,
    ...env,
  });
  assert.match(ended.stderr, pattern);
  assert.equal(ended.stderr.trim().split('\n').length, 1, ended.stderr);
  assert.equal(ended.status, 2);
}

test('a node takes its password from a file, and is refused with a wrong one', {
  skip: noServer,
}, async (t) => {
  const server = await startServer(t, ['--user', 'anna', '--pass', 'open sesame']);
  const folder = filesOf(t, { right: 'open sesame\n', wrong: 'open barley\n' });
  const flags = ['--cluster-user', 'anna', '--cluster-password'];
  const refused =
    /^manycore: the NATS server at .* refuses these credentials: .*\(CLUSTER_REFUSED\)/;
  await fails(t, node(server), refused);
  await fails(t, node(server, ...flags, join(folder, 'wrong')), refused);
  const child = await joined(t, node(server, ...flags, join(folder, 'right')));
  const nats = { servers: server.url, user: 'anna', pass: 'open sesame' };
  const { cluster } = await joinBus(t, server, { nats, secret });
  await waitFor(() => cluster.nodes.some(({ pid }) => pid === child.pid));
});

test('a unit has its password from the environment, and no command line shows it', {
  skip: noServer || noBinary,
}, async (t) => {
  const server = await startServer(t, ['--user', 'anna', '--pass', 'open-sesame']);
  const env = { MANYCORE_CLUSTER_PASSWORD: 'open-sesame' };
  const child = await joined(t, unit(server, '--cluster-user', 'anna'), env);
  const nats = { servers: server.url, user: 'anna', pass: 'open-sesame' };
  const { bus } = await joinBus(t, server, { nats, secret });
  await bus.request('sum', 0); // its loop has joined, too
  const pids = [child.pid ?? 0, ...childrenOf(child.pid ?? 0).map(({ pid }) => pid)];
  assert.ok(pids.length > 1);
  for (const pid of pids) {
    assert.doesNotMatch(readFileSync(`/proc/${pid}/cmdline`, 'latin1'), /sesame/);
  }
});

test('secrets in the environment stay in the command: workers and loops do not inherit them', {
  skip: noServer || noBinary,
}, async (t) => {
  const server = await startServer(t, ['-js']);
  const env = { MANYCORE_CLUSTER_PASSWORD: 'open sesame', MANYCORE_CLUSTER_TOKEN: 'let-me-in' };
  const user = ['--cluster-user', 'anna'];
  await joined(t, node(server, '--durable', ...user), env);
  await joined(t, ['run', names, ...unit(server, ...user).slice(2)], env);
  const { bus, cluster } = await joinBus(t, server, { secret });
  await using pool = new Pool({ cluster });
  const find = () => Object.keys(process.env).filter((name) => name.startsWith('MANYCORE_CLUSTER'));
  assert.deepEqual(await pool.run(find), []);
  await pool.close(); // its node has one worker
  await using durable = new Pool({ cluster });
  assert.deepEqual(await durable.with({ durable: true }).run(find), []);
  assert.deepEqual((await bus.request('names', 0)).body, []);
});

test('a token from a file, or from the environment', { skip: noServer }, async (t) => {
  const server = await startServer(t, ['--auth', 'let-me-in']);
  const folder = filesOf(t, { token: 'let-me-in\n' });
  await fails(t, node(server), /refuses these credentials/);
  await joined(t, node(server, '--cluster-token', join(folder, 'token')));
  await joined(t, node(server), { MANYCORE_CLUSTER_TOKEN: 'let-me-in' });
});

test('credentials as nsc writes them', { skip: noServer }, async (t) => {
  const { config, right, wrong } = await makeCredentials();
  const folder = filesOf(t, { config, right, wrong });
  const server = await startServer(t, ['-c', join(folder, 'config')]);
  await fails(
    t,
    node(server, '--cluster-creds', join(folder, 'wrong')),
    /refuses these credentials: .*\(CLUSTER_REFUSED\)/,
  );
  await joined(t, node(server, '--cluster-creds', join(folder, 'right')));
});

test('TLS with an authority of its own, and with a certificate of the client', {
  skip: noServer || noBinary,
}, async (t) => {
  const folder = filesOf(t, { 'cert.pem': cert, 'key.pem': key });
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const tls = ['--tls', '--tlscert', certFile, '--tlskey', keyFile];
  const [open, strict] = [
    await startServer(t, tls),
    await startServer(t, [...tls, '--tlsverify', '--tlscacert', certFile]),
  ];
  const [url, strictUrl] = [open, strict].map(({ port }) => ({ url: `tls://localhost:${port}` }));
  assert.ok(url !== undefined && strictUrl !== undefined);
  const unknown = /^manycore: .*certificate.*--cluster-tls-ca.*\(CLUSTER_UNREACHABLE\)/;
  await fails(t, node(url), unknown);
  const authority = ['--cluster-tls-ca', certFile];
  await joined(t, node(url, ...authority));
  await joined(t, unit(url, ...authority));
  await fails(
    t,
    node(strictUrl, ...authority),
    /requires a client certificate: .*\(CLUSTER_REFUSED\)/,
  );
  const own = ['--cluster-tls-cert', certFile, '--cluster-tls-key', keyFile];
  await joined(t, node(strictUrl, ...authority, ...own));
});

test('tls:// requires TLS', { skip: noServer }, async (t) => {
  const server = await startServer(t); // a server without TLS
  const url = `tls://127.0.0.1:${server.port}`;
  await fails(t, node({ url }), /has no TLS.*\(CLUSTER_UNREACHABLE\)/);
});

test('requests that a unit has at SIGTERM are answered over the cluster', {
  skip: noServer || noBinary,
}, async (t) => {
  const server = await startServer(t);
  const child = await joined(t, ['run', slow, ...unit(server).slice(2)]);
  const { bus } = await joinBus(t, server, { secret });
  const asked = Array.from({ length: 8 }, () => bus.request('slow', 0));
  await waitFor(async () => (await bus.request('begun', 0)).body === 8);
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  for (const each of asked) assert.equal((await each).body, 'at last');
  assert.deepEqual(await exit, [0, null]);
});

test('inconsistent cluster flags are one sentence', async (t) => {
  const nowhere = { url: 'nats://127.0.0.1:1' };
  const folder = filesOf(t, { some: 'text' });
  const some = join(folder, 'some');
  const wrong: [args: string[], pattern: RegExp][] = [
    [
      ['--cluster-user', 'anna'],
      /--cluster-user anna has no password: .*MANYCORE_CLUSTER_PASSWORD/,
    ],
    [['--cluster-password', some], /--cluster-password needs --cluster-user/],
    [
      ['--cluster-user', 'anna', '--cluster-password', '/nowhere'],
      /--cluster-password must be a file that holds it: .*ENOENT/,
    ],
    [['--cluster-token', '/nowhere'], /--cluster-token must be a file that holds it/],
    [['--cluster-creds', '/nowhere'], /--cluster-creds must be a file that can be read/],
    [['--cluster-nkey', '/nowhere'], /--cluster-nkey must be a file that can be read/],
    [['--cluster-nkey', some], /nats\.nkeyFile .* it holds no seed/],
    [['--cluster-tls-ca', '/nowhere'], /--cluster-tls-ca must be a file that can be read/],
    [['--cluster-tls-cert', some], /--cluster-tls-cert needs --cluster-tls-key/],
    [['--cluster-tls-key', some], /--cluster-tls-key needs --cluster-tls-cert/],
  ];
  for (const [flags, pattern] of wrong) {
    await fails(t, node(nowhere, ...flags), new RegExp(`${pattern.source}.*\\(OPTION_INVALID\\)`));
  }
  await fails(
    t,
    ['run', sums, '--instances', '1', '--cluster-token', some],
    /--cluster-token is for a cluster: .*--cluster URL.*\(OPTION_INVALID\)/,
  );
});
