// Hostile code in partitions: each attempt has the answer of its table, the program goes on, nothing outside has
// changed, and nothing of the partition is left. In a sandbox each attempt is a test; guests start slowly, and make
// all attempts in one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { getPriority, hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { SandboxOptions } from '../../src/public.js';
import { isRunning, waitFor } from '../support/index.js';
import { attempts } from './attempts.js';
import {
  assertWell,
  emptyTmp,
  folder,
  requirePartition,
  skipWall,
  type Wall,
  wallPool,
} from './hostile.js';
import { codeOf, outcome, sandboxPool, skip } from './support.js';

/** Everything that an attempt would have changed outside of its partition. */
function outside(): unknown {
  const program = fileURLToPath(new URL('../../src/worker/inside/entry.js', import.meta.url));
  const files = ['/x', '/dev/shm/x', '/tmp/x', '/tmp/x.node', '/tmp/1', '/tmp/etc', '/tmp/node'];
  return {
    made: files.filter((path) => existsSync(path)),
    files: [program, process.execPath].map((path) => {
      const { mode, size, mtimeMs } = statSync(path);
      return [mode, size, mtimeMs];
    }),
    score: readFileSync('/proc/self/oom_score_adj', 'utf8'),
    rest: [hostname(), getPriority(), process.getuid?.()],
  };
}

for (const { name, run, seen, limits } of attempts) {
  test(`a sandbox has the answer of its table: ${name}`, { skip }, async (t) => {
    const before = outside();
    const pool = sandboxPool(t, limits);
    assert.deepEqual(await pool.run(run), seen);
    assert.deepEqual(outside(), before);
    await assertWell(pool);
  });
}

for (const wall of ['uml', 'gvisor'] as const) {
  test(`${wall}: each attempt has the answer of its table`, { skip: skipWall(wall) }, async (t) => {
    const before = outside();
    const pool = wallPool(t, wall, { fileMb: 1, env: { GIVEN: 'x', TZ: 'Asia/Tokyo' } });
    const calls = pool.with({ timeoutMs: 20_000 });
    for (const attempt of attempts) {
      if (attempt.isOfSandbox === true) continue;
      await calls.run(emptyTmp);
      const expected = wall in attempt ? attempt[wall] : attempt.seen;
      const seen = await calls.run(attempt.run).catch(codeOf);
      if (expected instanceof RegExp) assert.match(String(seen), expected, attempt.name);
      else assert.deepEqual(seen, expected, attempt.name);
      assert.deepEqual(outside(), before, attempt.name);
    }
    await assertWell(pool);
  });
}

/** Servers of this program, which count their connections. */
async function servers(t: TestContext): Promise<{ port: number; paths: string[]; met: number[] }> {
  const met: number[] = [];
  const paths = [`\0manycore-${process.pid}`, join(folder(t), 'socket')];
  const listening: Server[] = [];
  for (const [at, place] of [
    { port: 0, host: '127.0.0.1' },
    ...paths.map((path) => ({ path })),
  ].entries()) {
    met.push(0);
    const server = createServer((socket) => {
      met[at] = (met[at] ?? 0) + 1;
      socket.end();
    });
    server.listen(place);
    t.after(() => server.close());
    await waitFor(() => server.listening);
    listening.push(server);
  }
  const address = listening[0]?.address();
  return { port: typeof address === 'object' ? (address?.port ?? 0) : 0, paths, met };
}

function connection(to: number | string): Promise<unknown> {
  return new Promise((resolve) => {
    const done = (): void => resolve('connected');
    const socket = typeof to === 'number' ? connect(to, '127.0.0.1', done) : connect(to, done);
    socket.once('error', (error) => resolve('code' in error ? error.code : String(error)));
  });
}

/** Answers to connections: TCP, an abstract unix socket, one with a path that it may write. */
const reached: readonly (readonly [Wall, Omit<SandboxOptions, 'kind'>, readonly RegExp[]])[] = [
  ['sandbox', {}, [/EPERM/, /EPERM/, /EPERM/]],
  // Without seccomp the namespace alone refuses; files of sockets are files, and `write` shows them.
  ['sandbox', { allow: ['no-seccomp'] }, [/ECONNREFUSED/, /ECONNREFUSED/, /connected/]],
  ['sandbox', { network: 'host' }, [/connected/, /EPERM/, /EPERM/]],
  // Our kernel has no sockets, that of Debian has some of its own.
  ['uml', {}, [/ENOSYS|ENETUNREACH/, /ENOSYS|ECONNREFUSED/, /ENOSYS|ECONNREFUSED/]],
  ['gvisor', {}, [/ECONNREFUSED/, /ECONNREFUSED/, /EPERM|ECONNREFUSED/]],
];
for (const [wall, limits, expected] of reached) {
  const options = Object.keys(limits).join();
  test(`${wall} ${options}: servers and processes of this program are out of reach`, {
    skip: skipWall(wall),
  }, async (t) => {
    const { port, paths, met } = await servers(t);
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    t.after(() => child.kill('SIGKILL'));
    const write = paths.slice(1).map((path) => join(path, '..'));
    const pool = wallPool(t, wall, { ...limits, write });
    for (const [at, to] of [port, ...paths].entries()) {
      const seen = String(await pool.run(connection, to));
      assert.match(seen, expected[at] ?? /none/, `${to}`);
      // The kernel connects before the server accepts.
      if (seen === 'connected') await waitFor(() => met[at] === 1);
      else assert.equal(met[at], 0, `${to}`);
    }
    // It may be the number of a process inside, too.
    await pool.run((pid) => outcome(() => killOne(pid)), child.pid ?? 0).catch(codeOf);
    assert.ok(isRunning(child.pid ?? 0));
    await assertWell(pool);
  });
}

function killOne(pid: number): void {
  requirePartition();
  process.kill(pid, 'SIGKILL');
}
