// Signals and requests to a server of which one process answers while the other still starts.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { remoteServers } from '../../src/serve/index.js';
import { ownRuntime } from '../observe/runtime.js';
import { ask, begin } from '../serve/client.js';
import { program, skip } from '../serve/served.js';
import { childrenOf, freePort, isRunning, waitFor, withDeadline } from '../support/index.js';
import { command, deadlineMs } from './serving.js';

/** The first process listens at once, the others when there is a file `go`. `/held` waits for a file `answer`. */
const text = `
import { closeSync, existsSync, openSync } from 'node:fs';
import { createServer } from 'node:http';
const at = (name) => new URL(name, import.meta.url);
let isFirst = true;
try {
  closeSync(openSync(at('first'), 'wx'));
} catch {
  isFirst = false;
}
const word = new Int32Array(new SharedArrayBuffer(4));
while (!isFirst && !existsSync(at('go'))) Atomics.wait(word, 0, 0, 5);
createServer((request, response) => {
  if (request.url !== '/held') return response.end(String(process.pid));
  response.write('held');
  const timer = setInterval(() => {
    if (!existsSync(at('answer'))) return;
    clearInterval(timer);
    response.end(' and ended');
  }, 5);
}).listen(process.env.PORT, '127.0.0.1');
`;

interface Starting {
  readonly child: ChildProcess;
  readonly port: number;
  readonly lines: readonly string[];
  readonly errors: readonly string[];
  /** Exit code and signal. */
  readonly exit: Promise<unknown[]>;
  /** Makes a file that its processes wait for. */
  make(name: 'go' | 'answer'): void;
}

/** Returns when the first of two processes answers, and the second one has started. */
async function start(t: TestContext): Promise<Starting> {
  const app = program(t, 'app.mjs', text);
  const port = await freePort();
  const child = spawn(process.execPath, [command, 'serve', app, '-P', '2', '-L', '1'], {
    env: { ...process.env, PORT: `${port}` },
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  const errors: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  const answers = async (): Promise<boolean> => {
    const answer = await ask(port).catch(() => undefined);
    return answer?.status === 200 && childrenOf(child.pid ?? 0).length === 2;
  };
  await waitFor(answers, deadlineMs);
  assert.deepEqual(lines, []); // it has not started
  const make = (name: string): void => writeFileSync(join(dirname(app), name), '');
  return { child, port, lines, errors, exit: once(child, 'exit'), make };
}

function exitOf({ exit }: Starting): Promise<unknown[]> {
  return withDeadline(exit, deadlineMs, 'the end');
}

/** The signals reach the command before anything that is sent over its port later. */
async function serves({ port, child }: Starting): Promise<void> {
  for (let count = 0; count < 5; count += 1) assert.equal((await ask(port)).status, 200);
  assert.equal(child.exitCode ?? child.signalCode, null);
}

test('SIGHUP during the start reloads after it', { skip }, async (t) => {
  const server = await start(t);
  const { child, lines, make } = server;
  child.kill('SIGHUP');
  await serves(server);
  const before = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
  make('go');
  await waitFor(() => lines.includes('reloaded'), deadlineMs);
  assert.match(lines[0] ?? '', /^listening on /);
  await waitFor(() => !before.some((pid) => isRunning(pid)), deadlineMs);
  await serves(server);
  child.kill('SIGTERM');
  assert.deepEqual(await exitOf(server), [0, null]);
});

test('SIGUSR2 during the start replaces the server after it', { skip }, async (t) => {
  const server = await start(t);
  const { child, lines, make } = server;
  child.kill('SIGUSR2');
  await serves(server);
  const before = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
  assert.equal(before.length, 2);
  make('go');
  await waitFor(() => lines.length === 2 && lines[0] === lines[1], deadlineMs);
  await waitFor(() => !before.some((pid) => isRunning(pid)), deadlineMs);
  await serves(server);
  child.kill('SIGTERM');
  assert.deepEqual(await exitOf(server), [0, null]);
});

for (const [signal, result] of [
  ['SIGTTIN', 'serving from 3 processes'],
  ['SIGTTOU', 'serving from 1 process'],
] as const) {
  test(`${signal} during the start changes the size after it`, { skip }, async (t) => {
    const server = await start(t);
    server.child.kill(signal);
    await serves(server);
    server.make('go');
    await waitFor(() => server.lines.includes(result), deadlineMs);
  });
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} during the start ends the server after its requests`, { skip }, async (t) => {
    const server = await start(t);
    const { child, port, errors, make } = server;
    const held = await begin(port, '/held');
    const pids = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
    child.kill(signal);
    const isRefused = async (): Promise<boolean> =>
      await ask(port).then(
        () => false,
        () => true,
      );
    await waitFor(isRefused, deadlineMs);
    make('answer');
    assert.equal(await held.body, 'held and ended');
    assert.deepEqual(await exitOf(server), [0, null]);
    await waitFor(() => !pids.some((pid) => isRunning(pid)), deadlineMs);
    assert.deepEqual(errors, []);
  });
}

test('a second TERM during the start ends it at once', { skip }, async (t) => {
  const server = await start(t);
  server.child.kill('SIGTERM');
  await waitFor(
    () =>
      ask(server.port).then(
        () => false,
        () => true,
      ),
    deadlineMs,
  );
  server.child.kill('SIGTERM');
  const [exitCode] = await exitOf(server);
  assert.ok(exitCode === 1 || exitCode === 0); // 0: the first was done
});

test('`manycore reload` and `scale` during the start wait for it', { skip }, async (t) => {
  ownRuntime(t);
  const server = await start(t);
  const [remote] = await remoteServers();
  assert.ok(remote !== undefined);
  const changes = [remote.reload(), remote.scale(1)];
  await serves(server);
  server.make('go');
  await Promise.all(changes);
  await waitFor(() => childrenOf(server.child.pid ?? 0).length === 1, deadlineMs);
  await serves(server);
  assert.ok(existsSync(`/proc/${server.child.pid}`));
});
