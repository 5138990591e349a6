// Units on loops of two programs, in one cluster.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Bus, Loops, UnitContext } from '../../src/public.js';
import { command } from '../cli/serving.js';
import { runCommand } from '../faults/child.js';
import { waitFor } from '../support/index.js';
import { skip as noBinary, startLoops } from '../units/loops.js';
import {
  answersOf,
  eventually,
  joinBus,
  skip as noServer,
  startServer,
  stranger,
} from './server.js';

const skip = noServer || noBinary;
const sums = fileURLToPath(new URL('./apps/sums.js', import.meta.url));
const secret = 'nobody else knows this';

/** Runs `manycore run sums.js` until it has joined the cluster. */
async function runSums(t: TestContext, flags: readonly string[]) {
  const args = [command, 'run', sums, '--instances', '2', '--loops', '1', ...flags];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MANYCORE_CLUSTER_SECRET: secret },
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines.find((line) => line.startsWith('in the cluster')));
  return { child, lines };
}

/** Waits until there are two loops, without that of a killed process. */
async function replaced(loops: Loops, killed: number): Promise<void> {
  await eventually(() => {
    const pids = loops.loops.map(({ pid }) => pid);
    assert.equal(pids.length, 2);
    assert.equal(pids.includes(killed), false);
  });
}

/** Deploys a unit on each of two loops; waits until both answer on `bus`. A lost instance may start on either. */
async function bothAnswer(loops: Loops, bus: Bus): Promise<void> {
  const unit = (context: UnitContext): void => {
    context.bus.consumer('which loop', (message) => message.reply(context.loop));
  };
  await loops.deploy(unit, { instances: 2 });
  const asked = new Set<unknown>();
  await eventually(async () => {
    asked.add((await bus.request('which loop', 0, { timeoutMs: 1000 })).body);
    assert.equal(asked.size, 2);
  });
}

test('loops that could not start are started later', { skip }, async (t) => {
  const server = await startServer(t);
  await server.kill();
  const loops = startLoops(t, { cluster: { nats: server.url, secret } });
  await assert.rejects(loops.deploy(sums), { code: 'CLUSTER_UNREACHABLE' });
  await server.restart();
  const deployment = await loops.deploy(sums);
  assert.equal((await deployment.status()).length, 1);
});

test('units of several programs share one bus', { skip }, async (t) => {
  const server = await startServer(t);
  const first = await runSums(t, ['--cluster', server.url]);
  assert.match(first.lines.join(), /in the cluster, with 0 other nodes/);
  const loops = startLoops(t, { cluster: { nats: server.url, secret } });
  await loops.deploy(sums, { instances: 2 });
  await eventually(() => assert.equal(loops.cluster?.nodes.length, 1));
  const { bus } = await joinBus(t, server, { secret });
  // Every loop of both programs gets requests in turn, from outside and from within.
  const asked = new Set<unknown>();
  await eventually(async () => {
    asked.add(String((await bus.request<[string, number]>('sum', 0)).body[0]));
    assert.equal(asked.size, 4);
  });
  await eventually(async () => {
    const { body } = await loops.bus.request<string[]>('ask others', 40);
    assert.deepEqual([...body].sort(), [...asked].sort());
  });
  // Each unit is an instance of its service for tools of NATS.
  const tool = await stranger(t, server.url);
  const shown = new Set<unknown>();
  await eventually(async () => {
    for (const each of await answersOf(tool, '$SRV.PING.sums')) shown.add(Reflect.get(each, 'id'));
    assert.equal(shown.size, 4);
  });
  bus.publish('add', 5);
  loops.bus.publish('add', 2);
  await eventually(async () => {
    const sum = (await bus.request<[string, number]>('sum', 0)).body[1];
    assert.equal(sum, 7);
  });
  // An undeployed unit gets no more requests, and none is lost meanwhile.
  const asking = Array.from({ length: 200 }, () => bus.request('sum', 0));
  await loops.close();
  await Promise.all(asking);
  await waitFor(() => first.lines.find((line) => line.startsWith('left: ')));
  first.child.kill('SIGTERM');
  await once(first.child, 'exit');
  await assert.rejects(bus.request('sum', 0), { code: 'BUS_NO_HANDLERS' });
});

test('a killed loop joins the cluster again', { skip }, async (t) => {
  const server = await startServer(t);
  const loops = startLoops(t, { cluster: { nats: server.url } });
  await loops.deploy(sums, { instances: 2 });
  const { bus } = await joinBus(t, server);
  const [lost] = await loops.status();
  const pid = lost?.pid ?? assert.fail('no loop');
  process.kill(pid, 'SIGKILL');
  await replaced(loops, pid);
  await bothAnswer(loops, bus);
  const { body } = await bus.request<[string, number]>('sum', 0);
  assert.equal(body[0].startsWith(`${pid} `), false);
});

test('a moving unit stays reachable from other machines', { skip }, async (t) => {
  const server = await startServer(t);
  const loops = startLoops(t, { cluster: { nats: server.url, secret } });
  const deployment = await loops.deploy(sums);
  const { bus } = await joinBus(t, server, { secret });
  let [sent, isMoving] = [0, true];
  const sending = (async () => {
    while (isMoving) {
      const asked = Array.from({ length: 10 }, () => bus.request<[string, number]>('sum', 0));
      for (let at = 0; at < 10; at += 1) bus.send('add', 1);
      sent += 10;
      await Promise.all(asked);
    }
  })();
  const numbers = loops.loops.map(({ loop }) => loop);
  for (let move = 0; move < 6; move += 1) {
    const [{ loop } = { loop: 0 }] = await deployment.status();
    await deployment.move(0, numbers.find((each) => each !== loop) ?? 0);
  }
  isMoving = false;
  await sending;
  await eventually(async () => {
    assert.equal((await bus.request<[string, number]>('sum', 0)).body[1], sent);
  });
  assert.equal(bus.stats.undelivered, 0);
});

test('a moving unit gets each publication once, from its own and from other machines', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const loops = startLoops(t, { cluster: { nats: server.url, secret } });
  const deployment = await loops.deploy(sums);
  const { bus } = await joinBus(t, server, { secret });
  let [published, isMoving] = [0, true];
  const publishing = (async () => {
    while (isMoving) {
      for (const each of [bus, loops.bus]) each.publish('add', 1);
      published += 2;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  const numbers = loops.loops.map(({ loop }) => loop);
  for (let move = 0; move < 10; move += 1) {
    const [{ loop } = { loop: 0 }] = await deployment.status();
    await deployment.move(0, numbers.find((each) => each !== loop) ?? 0);
  }
  isMoving = false;
  await publishing;
  for (const each of [bus, loops.bus]) each.publish('last', 0);
  await eventually(async () => {
    const [, sum, last] = (await bus.request<[string, number, number]>('sum', 0)).body;
    assert.equal(last, 2, 'all that was published before has come');
    assert.equal(sum, published);
  });
});

test('a blocking unit is in the cluster as well', { skip }, async (t) => {
  const server = await startServer(t);
  const loops = startLoops(t, { cluster: { nats: server.url, secret } });
  const deployment = await loops.deploy(sums, { on: 'blocking' });
  const { bus } = await joinBus(t, server, { secret });
  bus.send('add', 3);
  await eventually(async () => {
    assert.equal((await bus.request<[string, number]>('sum', 0)).body[1], 3);
  });
  await deployment.undeploy();
  await assert.rejects(bus.request('sum', 0), { code: 'BUS_NO_HANDLERS' });
});

test('a loop that is replaced while the server is away joins when it is back', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const loops = startLoops(t, { cluster: { nats: server.url, timeoutMs: 3000 } });
  await loops.deploy(sums, { instances: 2 });
  const { bus } = await joinBus(t, server);
  await server.kill();
  const [lost] = await loops.status();
  const pid = lost?.pid ?? assert.fail('no loop');
  process.kill(pid, 'SIGKILL');
  await replaced(loops, pid);
  await server.restart();
  await bothAnswer(loops, bus);
  await eventually(() => bus.request('sum', 0, { timeoutMs: 1000 }));
});

test('a program leaves with its loops, and may join again', { skip }, async (t) => {
  const server = await startServer(t);
  const loops = startLoops(t, { cluster: { nats: server.url } });
  await loops.deploy(sums);
  const { bus } = await joinBus(t, server);
  await bus.request('sum', 0);
  await loops.cluster?.close();
  await eventually(() =>
    assert.rejects(bus.request('sum', 0, { timeoutMs: 500 }), { code: 'BUS_NO_HANDLERS' }),
  );
  await loops.bus.request('sum', 0); // limited to one machine again
  assert.equal(loops.cluster, undefined);
});

test('a failed join rejects before anything starts', { skip }, async (t) => {
  const loops = startLoops(t, { cluster: { nats: 'nats://127.0.0.1:1', timeoutMs: 2000 } });
  await assert.rejects(loops.deploy(sums), { code: 'CLUSTER_UNREACHABLE' });
  assert.deepEqual(await loops.status().catch(() => []), []);
  const run = (...flags: string[]) =>
    runCommand(t, [process.execPath, command, 'run', sums, '--instances', '1', ...flags]);
  const unreachable = await run('--cluster', 'nats://127.0.0.1:1');
  assert.match(unreachable.stderr, /no NATS server answers at .*\(CLUSTER_UNREACHABLE\)/);
  assert.equal(unreachable.status, 2);
  const short = join(tmpdir(), `manycore-secret-${process.pid}`);
  writeFileSync(short, 'short\n');
  const refused = await run('--cluster', 'nats://127.0.0.1:1', '--cluster-secret', short);
  assert.match(refused.stderr, /secret is .*: it must be 16 characters or more/);
  const missing = await run('--cluster', 'nats://127.0.0.1:1', '--cluster-secret', '/nowhere');
  assert.match(missing.stderr, /--cluster-secret must be a file that holds it/);
});
