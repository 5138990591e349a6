// Programs of one machine on a bus: killed, stopped, started again and again, and with loops whose units move.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '../../../src/errors.js';
import { command } from '../../cli/serving.js';
import { runCommand } from '../../faults/child.js';
import { waitFor } from '../../support/index.js';
import { skip, startLoops } from '../../units/loops.js';
import { joinHere, useFolder } from './buses.js';

const folder = useFolder();
const program = fileURLToPath(new URL('./apps/program.js', import.meta.url));
const sums = new URL('../apps/sums.js', import.meta.url);

/** Starts a program on the bus `name`; resolves when it has joined. */
async function start(t: TestContext, name: string, number: number): Promise<ChildProcess> {
  const child = fork(program, [name, String(number)]);
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

test('a killed program is lost at once, a stopped one when its messages are full', async (t) => {
  const { bus, cluster } = await joinHere(t, 'lost');
  const [killed, stopped] = [await start(t, 'lost', 1), await start(t, 'lost', 2)];
  assert.equal((await bus.request('who 1', 0)).body, killed.pid);
  const left = once(cluster, 'leave');
  const hanging = [1, 2].map(() => bus.request('hang', 0, { timeoutMs: 60_000 }));
  await bus.request('who 1', 0); // the requests before it have arrived there
  killed.kill('SIGKILL');
  assert.equal((await left)[0].pid, killed.pid);
  await assert.rejects(Promise.race(hanging), { code: 'BUS_CONSUMER_LOST' });
  await assert.rejects(bus.request('who 1', 0), { code: 'BUS_NO_HANDLERS' });

  stopped.kill('SIGSTOP');
  const text = 'x'.repeat(1000);
  let sent = 0;
  const fill = (): void => {
    for (;;) {
      bus.send('who 2', text);
      sent += 1;
    }
  };
  assert.throws(fill, { code: 'BUS_FULL' });
  assert.ok(sent > 1000);
  const waiting = Promise.allSettled(hanging);
  stopped.kill('SIGCONT');
  await bus.drained();
  assert.equal((await bus.request('who 2', 0)).body, stopped.pid);
  stopped.kill('SIGKILL');
  const ends = (await waiting).map(
    (end) => end.status === 'rejected' && hasCode(end.reason, 'BUS_CONSUMER_LOST'),
  );
  assert.deepEqual(ends, [true, true]);
});

const fds = '/proc/self/fd';
const countFds = (): number => (existsSync(fds) ? readdirSync(fds).length : 0);

test('50 starts and kills leave no socket, node or descriptor', async (t) => {
  const { bus, cluster } = await joinHere(t, 'churn');
  const numbers = [0, 1, 2, 3, 4];
  const round = async (): Promise<void> => {
    const children = await Promise.all(numbers.map((at) => start(t, 'churn', at)));
    for (const at of numbers) {
      assert.equal((await bus.request(`who ${at}`, 0)).body, children[at]?.pid);
    }
    for (const child of children) child.kill('SIGKILL');
    await waitFor(() => cluster.nodes.length === 0);
  };
  await round(); // Node and libuv open some descriptors once, and the agent of this program its socket
  if (countFds() > 0) await waitFor(() => existsSync(join(folder, `agent-${process.pid}.0.sock`)));
  const before = countFds();
  for (let count = 1; count < 10; count += 1) await round();
  await waitFor(() => readdirSync(join(folder, 'bus-churn')).length === 1);
  await waitFor(() => countFds() <= before);
  await assert.rejects(bus.request('who', 0), { code: 'BUS_NO_HANDLERS' });
});

test('loops join the bus of their program, and a moving unit loses no message of another one', {
  skip,
}, async (t) => {
  const local = { transport: 'local', name: 'moves' } as const;
  const { bus, cluster } = await joinHere(t, 'moves');
  const loops = startLoops(t, { cluster: local });
  const deployment = await loops.deploy(sums);
  assert.equal(cluster.nodes.length, 1);
  let [sent, isMoving] = [0, true];
  const sending = (async () => {
    while (isMoving) {
      for (let at = 0; at < 10; at += 1) bus.send('add', 1);
      sent += 10;
      await bus.request('sum', 0);
    }
  })();
  const numbers = loops.loops.map(({ loop }) => loop);
  for (let at = 0; at < 6; at += 1) await deployment.move(0, numbers[at % numbers.length] ?? 0);
  isMoving = false;
  await sending;
  assert.equal((await bus.request<[string, number]>('sum', 0)).body[1], sent);
  // A loop that was lost is replaced, and joins again.
  const [lost] = await loops.status();
  process.kill(lost?.pid ?? assert.fail('no loop'), 'SIGKILL');
  await waitFor(() => bus.request('sum', 0).catch(() => undefined));
  await loops.close();
  await waitFor(() => cluster.nodes.length === 0);
  await assert.rejects(bus.request('sum', 0), { code: 'BUS_NO_HANDLERS' });
});

test('verticles: server, load client and counter in three commands need no server', {
  skip,
}, async (t) => {
  const verticles = [process.execPath, 'examples/verticles/main.js'];
  const run = await runCommand(t, [...verticles, '--cluster', 'local', '0.5', '2']);
  assert.equal(run.stderr, '');
  assert.match(run.stdout, /^instances .* clustered .*\n +2( +[1-9]\d*){3}\n$/);
  assert.equal(run.status, 0);
});

test('flags of NATS are refused with --cluster local', async (t) => {
  const refused = await runCommand(t, [
    ...[process.execPath, command, 'run', 'unit.js', '--cluster', 'local'],
    ...['--cluster-user', 'me'],
  ]);
  assert.match(refused.stderr, /--cluster-user is for NATS: leave it out with --cluster local/);
});
