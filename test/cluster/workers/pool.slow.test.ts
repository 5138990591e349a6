// Pools whose workers are on other machines: processes of a node that is killed, stopped or busy, over a real
// nats-server.

import assert from 'node:assert/strict';
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { Pool, type PoolOptions, pmap } from '../../../src/public.js';
import { command } from '../../cli/serving.js';
import { runCommand } from '../../faults/child.js';
import { childrenOf, isRunning, killOne, waitFor } from '../../support/index.js';
import { eventually, joinBus, type Server, skip, startConfigured, startServer } from '../server.js';
import { notesFile, notesIn } from '../tasks/durables.js';

const secret = 'nobody else knows this';

async function startNode(
  t: TestContext,
  { url }: Pick<Server, 'url'>,
  workers: number,
  env: NodeJS.ProcessEnv = {},
): Promise<ChildProcess> {
  const args = [url, secret, String(workers)];
  const program = new URL('../apps/provider.js', import.meta.url);
  const child = fork(program, args, { env: { ...process.env, ...env } });
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

async function openPool(t: TestContext, server: Server, options: PoolOptions = {}): Promise<Pool> {
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster, ...options });
  t.after(() => pool.destroy());
  return pool;
}

test('a pool without workers warns once, and continues to wait', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const warnings: string[] = [];
  const listen = (warning: Error & { code?: string }): void => {
    if (warning.code === 'CLUSTER_NO_WORKER') warnings.push(warning.message);
  };
  process.on('warning', listen);
  t.after(() => process.off('warning', listen));
  const pool = await openPool(t, server, { size: 2 });
  const calls = [pool.run(() => 1), pool.run(() => 2)];
  await waitFor(() => warnings.length > 0);
  assert.match(
    warnings[0] ?? '',
    /^no node of cluster "manycore" .* "manycore worker --nats URL".* a clock that agrees/,
  );
  await startNode(t, server, 2);
  assert.deepEqual(await Promise.all(calls), [1, 2]);
  assert.equal(warnings.length, 1);
});

test('functions run on other machines, with their captured values', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server, 2);
  const pool = await openPool(t, server);
  const factor = 2.1;
  class Point {
    readonly x: number;
    constructor(x: number) {
      this.x = x;
    }
  }
  const { parent, point } = await pool.run(
    (n: number) => ({ parent: process.ppid, point: new Point(n * factor) }),
    20,
  );
  assert.equal(parent, node.pid);
  assert.ok(point instanceof Point);
  assert.equal(point.x, 42);
  await assert.rejects(
    pool.run(() => {
      throw new RangeError('too far');
    }),
    (error: Error) => error instanceof RangeError && error.message === 'too far',
  );
  const large = new Uint8Array(5_000_000).fill(7);
  const back = await pool.run((bytes: Uint8Array) => bytes.map((each) => each + 1), large);
  assert.deepEqual([back.byteLength, back[0], back.at(-1)], [5_000_000, 8, 8]);
  const items: number[] = [];
  const stream = await pool.run(function* () {
    for (let n = 0; n < 1000; n += 1) yield n;
  });
  for await (const item of stream) items.push(item);
  assert.equal(items.length, 1000);
});

test('arguments and results above max_payload go in pieces', { skip }, async (t) => {
  const server = await startConfigured(t, 'max_payload: 4096');
  await startNode(t, server, 1);
  const pool = await openPool(t, server);
  const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => at % 251);
  const result = await pool.run((given: Uint8Array) => given.map((each) => each + 1), bytes);
  assert.deepEqual(
    result,
    bytes.map((each) => each + 1),
  );
});

test('a map uses the workers of all machines, and no more than they lend', { skip }, async (t) => {
  const server = await startServer(t);
  const nodes = [await startNode(t, server, 1), await startNode(t, server, 2)];
  const pool = await openPool(t, server);
  const input = Array.from({ length: 300 }, (_, at) => at);
  const pids = new Set<number>();
  const file = notesFile(t);
  const mapping = pmap(
    input,
    async (n: number): Promise<readonly [number, number, number]> => {
      appendFileSync(file, `${process.ppid}\n`);
      while (!existsSync(`${file}.go`)) await new Promise((resolve) => setTimeout(resolve, 5));
      return [n * n, process.pid, process.ppid];
    },
    { pool, chunk: 1 },
  );
  await waitFor(() => new Set(notesIn(file)).size === nodes.length);
  writeFileSync(`${file}.go`, '');
  const results = await mapping;
  assert.deepEqual(
    results.map(([square]) => square),
    input.map((n) => n * n),
  );
  for (const [, pid] of results) pids.add(pid);
  assert.ok(pids.size <= 3, `${pids.size} workers`);
  const parents = new Set(results.map(([, , parent]) => parent));
  assert.deepEqual(parents, new Set(nodes.map(({ pid }) => pid)));
});

test('a pool waits until a machine has a free worker', { skip }, async (t) => {
  const server = await startServer(t);
  const first = await openPool(t, server, { idleTimeMs: 100 });
  const waiting = first.run(() => process.ppid); // no node lends workers yet
  const node = await startNode(t, server, 1);
  assert.equal(await waiting, node.pid);
  const second = await openPool(t, server, { idleTimeMs: 100 });
  const blocked = first.run(() => new Promise((resolve) => setTimeout(resolve, 300, 'first')));
  assert.equal(await second.run(() => 'second'), 'second'); // once the first has returned it
  assert.equal(await blocked, 'first');
  await eventually(async () => {
    assert.equal((await childrenOf(Number(node.pid))).length, 0); // idle workers end
  });
});

test('a blocking task is killed on its machine, at its deadline', { skip }, async (t) => {
  const server = await startServer(t);
  await startNode(t, server, 1);
  const pool = await openPool(t, server, { graceMs: 50 });
  await pool.run(() => 1);
  const stuck = pool.with({ timeoutMs: 100 }).run(() => {
    for (;;);
  });
  await assert.rejects(stuck, { code: 'TASK_TIMED_OUT' });
  assert.equal(await pool.run(() => 2), 2);
});

test('a stopped worker: its call goes on with it, others do at once, and a time limit ends it', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server, 2);
  const pool = await openPool(t, server, { size: 2, graceMs: 50 });
  const file = notesFile(t);
  const hold = async (notes: string): Promise<number> => {
    appendFileSync(notes, `${process.pid}\n`);
    while (!existsSync(`${notes}.go`)) await new Promise((resolve) => setTimeout(resolve, 5));
    return process.pid;
  };
  const held = pool.run(hold, file);
  await waitFor(() => notesIn(file).length === 1);
  const [stopped = 0] = notesIn(file).map(Number);
  killOne(stopped, 'SIGSTOP');
  writeFileSync(`${file}.go`, '');
  for (let call = 0; call < 10; call += 1) {
    assert.notEqual(await pool.run(() => process.pid), stopped);
  }
  killOne(stopped, 'SIGCONT');
  assert.equal(await held, stopped);

  await pool.destroy();
  const single = await openPool(t, server, { size: 1, graceMs: 50 });
  const pid = await single.run(() => process.pid);
  killOne(pid, 'SIGSTOP');
  await assert.rejects(
    single.with({ timeoutMs: 200 }).run(() => 1),
    { code: 'TASK_TIMED_OUT' },
  );
  assert.notEqual(await single.run(() => process.pid), pid);
  await eventually(() => assert.equal(isRunning(pid), false));
  const last = await single.run(() => process.pid);
  killOne(last, 'SIGSTOP');
  await single.close(); // ends it after the grace time
  await eventually(() => assert.equal(childrenOf(Number(node.pid)).length, 0));
});

test('nodes that are killed one after the other: every task settles once', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const nodes = [];
  for (let at = 0; at < 3; at += 1) nodes.push(await startNode(t, server, 1));
  const pool = await openPool(t, server);
  const settled: number[] = [];
  const tasks = Array.from({ length: 400 }, async (_, at) => {
    const run = pool.with({ retry: 20 }).run(async (n: number) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return n;
    }, at);
    assert.equal(await run, at);
    settled.push(at);
  });
  let killed = 0;
  const done = Promise.all(tasks).then(() => true);
  while (killed < 4) {
    const isDone = await Promise.race([done, waitFor(() => settled.length > (killed + 1) * 60)]);
    if (isDone && settled.length === 400) break;
    const victim = nodes.shift();
    victim?.kill('SIGKILL');
    killed += 1;
    nodes.push(await startNode(t, server, 1));
  }
  await done;
  assert.ok(killed > 1);
  assert.equal(new Set(settled).size, 400);
  assert.equal(settled.length, 400);
});

test('a task of a node that is killed is rejected, and its workers end', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server, 1);
  const pool = await openPool(t, server);
  const pid = await pool.run(() => process.pid);
  const running = pool.run(() => new Promise((resolve) => setTimeout(resolve, 60_000)));
  await eventually(() => assert.equal(pool.stats().runningTasks, 1));
  node.kill('SIGKILL');
  await assert.rejects(running, { code: 'WORKER_EXITED' });
  await eventually(() => assert.equal(isRunning(pid), false));
});

test('a pool that is gone releases its workers', { skip }, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server, 1);
  const { cluster } = await joinBus(t, server, { secret });
  const pool = new Pool({ cluster });
  await pool.run(() => 1);
  await cluster.close(); // as if it had been killed, without a notice
  await eventually(async () => {
    assert.equal((await childrenOf(Number(node.pid))).length, 0);
  });
  await pool.destroy();
  const other = await openPool(t, server);
  assert.equal(await other.run(() => 2), 2);
});

test('the server is restarted while tasks run', { skip }, async (t) => {
  const server = await startServer(t);
  await startNode(t, server, 2);
  const pool = await openPool(t, server);
  await pool.run(() => 1);
  const bytes = new Uint8Array(300_000);
  const tasks = Array.from({ length: 60 }, (_, at) =>
    pool.run(
      async (given: Uint8Array, n: number) => {
        await new Promise((resolve) => setTimeout(resolve, 10));
        return [given.fill(n), n] as const;
      },
      bytes,
      at,
    ),
  );
  await tasks[5];
  await server.restart();
  const results = await Promise.all(tasks);
  for (const [at, [filled, n]] of results.entries()) {
    assert.deepEqual([n, filled.byteLength, filled[0]], [at, 300_000, at]);
  }
});

test('variables that a pool sets for its workers, and those that it removes', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const node = await startNode(t, server, 1, { MC_TAKEN: 'by the node', MC_KEPT: 'too' });
  const pool = await openPool(t, server, { env: { MC_TAKEN: undefined, MC_SET: 'by the pool' } });
  const found = await pool.run(() => {
    const { MC_TAKEN, MC_KEPT, MC_SET } = process.env;
    return [process.ppid, MC_TAKEN, MC_KEPT, MC_SET];
  });
  assert.deepEqual(found, [node.pid, undefined, 'too', 'by the pool']);
});

test('the command lends workers until a signal ends it', { skip }, async (t) => {
  const server = await startServer(t);
  const args = ['worker', '--nats', server.url, '--workers', '1'];
  const env = { ...process.env, MANYCORE_CLUSTER_SECRET: secret };
  const node = spawn(process.execPath, [command, ...args], { env, stdio: 'pipe' });
  t.after(() => node.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: node.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines.includes('lends 1 worker'));
  const pool = await openPool(t, server);
  assert.equal(await pool.run(() => process.ppid), node.pid);
  await waitFor(() => lines.some((line) => line.startsWith('joined: ')));
  node.kill('SIGTERM');
  assert.deepEqual(await once(node, 'exit'), [0, null]);
  const unsigned = await runCommand(t, [
    process.execPath,
    command,
    ...args,
    '--cluster-name',
    'other',
  ]);
  assert.match(
    unsigned.stderr,
    /a node takes functions, .*--cluster-secret FILE .*\(CLUSTER_UNSIGNED\)/,
  );
  assert.equal(unsigned.status, 2);
});

test('limits of a pool on a cluster', { skip }, async (t) => {
  const server = await startServer(t);
  const { cluster } = await joinBus(t, server, { secret });
  const invalid = { code: 'OPTION_INVALID' };
  assert.throws(() => new Pool({ cluster, worker: 'thread' }), invalid);
  assert.throws(() => new Pool({ cluster, channel: 'shm' }), invalid);
  assert.throws(() => new Pool({ cluster, affinity: 'spread' }), {
    ...invalid,
    message: /affinity is "spread": it must be "none" for a pool with a cluster/,
  });
  assert.throws(() => new Pool({ cluster, niceIncrement: 5 }), {
    ...invalid,
    message: /niceIncrement is 5: it must be left out for a pool with a cluster/,
  });
  assert.throws(() => Reflect.construct(Pool, [{ cluster: {} }]), invalid);
  await assert.rejects(cluster.lendWorkers(0), invalid);
  const other = await startServer(t);
  const unsigned = (await joinBus(t, other)).cluster;
  await using pool = new Pool({ cluster: unsigned });
  await assert.rejects(
    pool.run(() => 1),
    { code: 'CLUSTER_UNSIGNED' },
  );
  await assert.rejects(
    pmap([1], (n) => n, { pool }),
    { code: 'CLUSTER_UNSIGNED' },
  );
  await assert.rejects(unsigned.lendWorkers(1), { code: 'CLUSTER_UNSIGNED' });
});
