// Instances that may block, each in a thread of its own beside its loop.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { UnitContext } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { appUrl, startLoops } from './loops.js';

/** Blocks its thread for as long as it is asked to, or until a file exists, and counts. */
function blocker({ bus, instance, loop, config }: UnitContext<string>) {
  let count = 0;
  const block = (ms: number): void => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  };
  bus.consumer<string>(`block until ${instance}`, (message) => {
    while (!existsSync(message.body)) block(5);
    message.reply('blocked');
  });
  bus.consumer<number>(`block ${instance}`, (message) => {
    bus.send('blocks', instance);
    block(message.body);
    message.reply('blocked');
  });
  bus.consumer(`count ${instance}`, (message) => {
    count += 1;
    message.reply({ count, loop, config, pid: process.pid });
  });
  bus.consumer(`throw ${instance}`, () => {
    setImmediate(() => {
      throw new Error('nobody catches this'); // outside of the handler
    });
  });
  return {
    health: () => `${count} counted`,
    save: () => count,
    restore: (saved: number) => {
      count = saved;
    },
    stop: () => bus.send('stopped', instance),
  };
}

interface Loss {
  readonly unit: string;
  readonly deployment: number;
  readonly instances: readonly number[];
  readonly stack: string;
  readonly delayMs: number;
  readonly why: string;
  readonly next: string;
}

function noteLosses(t: TestContext): Loss[] {
  const losses: Loss[] = [];
  const note = (message: unknown): void => void losses.push(Object(message));
  subscribe('manycore:unit:lost', note);
  t.after(() => unsubscribe('manycore:unit:lost', note));
  return losses;
}

/** Returns a folder that the test removes. */
function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-side-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('instances block without holding up their loop or each other', async (t) => {
  const loops = startLoops(t);
  const stopped: unknown[] = [];
  loops.bus.consumer('stopped', (message) => stopped.push(message.body));
  const deployment = await loops.deploy(blocker, {
    instances: 4,
    on: 'blocking',
    config: 'given',
    name: 'blocker',
  });
  await loops.deploy(
    ({ bus, instance }: UnitContext) => {
      bus.consumer(`awake ${instance}`, (message) => message.reply('yes'));
    },
    { instances: 2 },
  );
  let isDone = false;
  const folder = folderOf(t);
  const blocked = loops.bus.request('block until 0', join(folder, 'end')).finally(() => {
    isDone = true;
  });
  const status = await deployment.status();
  for (let round = 0; round < 5; round += 1) {
    for (const at of [0, 1]) assert.equal((await loops.bus.request(`awake ${at}`, 0)).body, 'yes');
    for (const at of [1, 2, 3]) {
      const { body } = await loops.bus.request(`count ${at}`, 0);
      const { loop, pid } = status[at] ?? assert.fail();
      assert.deepEqual(body, { count: round + 1, loop, config: 'given', pid });
    }
  }
  assert.equal(isDone, false);
  const health = await deployment.health({ timeoutMs: 1000 });
  assert.deepEqual(
    health.map(({ isWell }) => isWell),
    [false, true, true, true],
  );
  writeFileSync(join(folder, 'end'), '');
  assert.equal((await blocked).body, 'blocked');
  await deployment.scale(2);
  await waitFor(() => stopped.length === 2);
  await assert.rejects(loops.bus.request('count 3', 0), { code: 'BUS_NO_HANDLERS' });
  await deployment.undeploy();
  await waitFor(() => stopped.length === 4);
  await assert.rejects(loops.bus.request('count 0', 0), { code: 'BUS_NO_HANDLERS' });
});

test('a module, a class and nested deploys work in threads as on loops', async (t) => {
  const loops = startLoops(t);
  await loops.deploy(appUrl('module'), { config: { greeting: 'hi' }, on: 'blocking' });
  assert.equal((await loops.bus.request<{ text: string }>('greet', 'you')).body.text, 'hi you');
  class Parent {
    async start({ bus, deploy }: UnitContext): Promise<void> {
      await deploy(
        (context: UnitContext) => {
          context.bus.consumer('child', (message) => message.reply('there'));
        },
        { on: 'blocking' },
      );
      bus.consumer('parent', async (message) => {
        message.reply((await bus.request('child', 0)).body);
      });
    }
  }
  const parent = await loops.deploy(Parent, { on: 'blocking' });
  assert.equal((await loops.bus.request('parent', 0)).body, 'there');
  await parent.undeploy();
  assert.equal(loops.deployments.length, 1);
  await assert.rejects(loops.bus.request('child', 0), { code: 'BUS_NO_HANDLERS' });
});

test('a failed start in a thread is reported, also that it would listen', async (t) => {
  const loops = startLoops(t);
  const where: object = { on: 'moon' };
  await assert.rejects(
    loops.deploy(() => {}, where),
    { code: 'OPTION_INVALID' },
  );
  await assert.rejects(loops.deploy(appUrl('hello'), { config: { port: 0 }, on: 'blocking' }), {
    code: 'UNIT_START_FAILED',
    message: /on: 'blocking' cannot listen/,
  });
  const exits = (): never => process.exit(3);
  await assert.rejects(loops.deploy(exits, { on: 'blocking', name: 'exits' }), {
    code: 'UNIT_START_FAILED',
    message: /instance 0 of exits could not start: its thread has ended/,
  });
  const hangs = (): void => {
    for (;;);
  };
  await assert.rejects(loops.deploy(hangs, { on: 'blocking', startTimeoutMs: 300 }), {
    code: 'UNIT_START_FAILED',
  });
  assert.deepEqual(loops.deployments, []);
});

test('a thread that never comes back is ended at the deadline of its stop', async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(blocker, {
    on: 'blocking',
    stopTimeoutMs: 1000, // the other instance stops within it
    instances: 2,
  });
  const begun = new Promise((resolve) => loops.bus.consumer('blocks', resolve));
  loops.bus.send('block 0', Infinity);
  await begun;
  await assert.rejects(deployment.undeploy(), {
    code: 'UNIT_STOP_FAILED',
    message: /instance 0 did not stop within 1000 ms: its thread was ended/,
  });
  await assert.rejects(loops.bus.request('count 0', 0), { code: 'BUS_NO_HANDLERS' });
  assert.deepEqual(loops.deployments, []);
});

test('a blocked thread is not announced, and its process stays', async (t) => {
  const announced: unknown[] = [];
  const note = (message: unknown): void => void announced.push(message);
  for (const name of ['manycore:unit:blocked', 'manycore:server:blocked', 'manycore:server:lost']) {
    subscribe(name, note);
    t.after(() => unsubscribe(name, note));
  }
  const loops = startLoops(t, { blockedTimeoutMs: 5000 });
  await loops.deploy(blocker, { on: 'blocking' });
  const before = (await loops.bus.request<{ pid: number }>('count 0', 0)).body.pid;
  await loops.bus.request('block 0', 9000);
  assert.equal((await loops.bus.request<{ pid: number }>('count 0', 0)).body.pid, before);
  assert.deepEqual(announced, []);
});

test('an instance whose thread dies is started again, its process goes on', async (t) => {
  const losses = noteLosses(t);
  const loops = startLoops(t);
  const deployment = await loops.deploy(blocker, { on: 'blocking', instances: 2, name: 'fragile' });
  const pids = (await deployment.status()).map(({ pid }) => pid).sort();
  await loops.bus.request('count 0', 0);
  await loops.bus.request('count 1', 0);
  loops.bus.send('throw 0', 0);
  await waitFor(() => losses.length > 0);
  assert.equal(losses[0]?.next, 'again');
  assert.match(losses[0].why, /the thread of instance 0 of fragile has ended: nobody catches/);
  const { unit, deployment: id, instances, delayMs, stack } = losses[0];
  assert.deepEqual([unit, id, instances, delayMs], ['fragile', deployment.id, [0], 50]);
  assert.match(stack, /^Error: nobody catches this\n +at .*side\.slow\.test\.js/);
  const again = await waitFor(() => loops.bus.request<{ count: number }>('count 0', 0));
  assert.equal(again.body.count, 1);
  assert.equal((await loops.bus.request<{ count: number }>('count 1', 0)).body.count, 2);
  await waitFor(async () => (await deployment.status()).every(({ state }) => state === 'running'));
  assert.deepEqual((await deployment.status()).map(({ pid }) => pid).sort(), pids);
});

test('an instance whose thread is just started again can be undeployed', async (t) => {
  const loops = startLoops(t);
  for (let round = 0; round < 5; round += 1) {
    const losses = noteLosses(t);
    const deployment = await loops.deploy(
      ({ bus }: UnitContext) => {
        bus.consumer('die', () => process.exit());
      },
      { on: 'blocking' },
    );
    loops.bus.send('die', undefined);
    await waitFor(() => losses.length > 0);
    // It starts for a moment only, which a busy machine may miss.
    await waitFor(async () => (await deployment.status())[0]?.state !== 'lost');
    await deployment.undeploy(); // no instance has anything to end
  }
});

test('an instance whose threads die again and again is given up', async (t) => {
  const losses = noteLosses(t);
  const loops = startLoops(t);
  const deployment = await loops.deploy(
    ({ bus }: UnitContext) => {
      bus.consumer('die', () => {
        setImmediate(() => {
          throw new Error('again');
        });
      });
    },
    { on: 'blocking' },
  );
  await waitFor(() => {
    loops.bus.send('die', 0);
    return losses.length >= 6;
  });
  assert.deepEqual(
    losses.map(({ next }) => next),
    ['again', 'again', 'again', 'again', 'again', 'never'],
  );
  assert.deepEqual(
    (await deployment.status()).map(({ state }) => state),
    ['failed'],
  );
  await deployment.undeploy();
});

test('an instance that cannot start again on the next loop is tried again later', async (t) => {
  const losses = noteLosses(t);
  const loops = startLoops(t, { processes: 1 });
  const folder = folderOf(t);
  const deployment = await loops.deploy(
    async ({ bus, config }: UnitContext<string>) => {
      const { existsSync } = await import('node:fs');
      if (existsSync(config)) throw new Error('not today');
      bus.consumer('back', (message) => message.reply('yes'));
    },
    { config: join(folder, 'not-today'), name: 'picky' },
  );
  writeFileSync(join(folder, 'not-today'), '');
  const [{ pid } = { pid: undefined }] = await deployment.status();
  process.kill(pid ?? assert.fail(), 'SIGKILL');
  await waitFor(() => losses.length > 0);
  rmSync(join(folder, 'not-today'));
  assert.equal(losses[0]?.next, 'again');
  assert.match(losses[0].why, /picky could not start.*not today/);
  assert.equal((await waitFor(() => loops.bus.request('back', 0))).body, 'yes');
});

test('a process that is killed comes back with its threads', async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(blocker, { on: 'blocking', instances: 2 });
  const [{ pid } = { pid: undefined }] = await deployment.status();
  process.kill(pid ?? assert.fail(), 'SIGKILL');
  await waitFor(async () => {
    const status = await deployment.status();
    return status.every((each) => each.state === 'running' && each.pid !== pid);
  });
  await waitFor(() => loops.bus.request('count 0', 0));
  await loops.bus.request('count 1', 0);
});

test('an instance in a thread moves with its state', async (t) => {
  const loops = startLoops(t, { loops: 2 });
  const deployment = await loops.deploy(blocker, { on: 'blocking' });
  let count = 0;
  for (const { loop } of [...loops.loops, ...loops.loops]) {
    await deployment.move(0, loop);
    count += 1;
    const { body } = await loops.bus.request<{ count: number; loop: number }>('count 0', 0);
    assert.deepEqual([body.count, body.loop], [count, loop]);
  }
});
