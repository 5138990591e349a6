// Deploying units: their forms, how instances are spread, how their number changes, and how they end.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Deployment, UnitContext } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { appUrl, startLoops } from './loops.js';

interface Greeting {
  readonly text: string;
  readonly instance: number;
  readonly loop: number;
  readonly pid: number;
  readonly instances: number;
}

async function loopsOf(deployment: Deployment): Promise<(number | undefined)[]> {
  return (await deployment.status()).map(({ loop }) => loop);
}

test('a class of a module runs in as many instances as asked for, evenly', async (t) => {
  const loops = startLoops(t, { loops: 2 });
  const deployment = await loops.deploy(appUrl('module'), {
    instances: 8,
    config: { greeting: 'hello' },
  });
  assert.equal(deployment.name, 'module');
  const answers: Greeting[] = [];
  for (let at = 0; at < 16; at += 1) {
    answers.push((await loops.bus.request<Greeting>('greet', 'you')).body);
  }
  assert.deepEqual(new Set(answers.map(({ text }) => text)), new Set(['hello you']));
  assert.deepEqual(new Set(answers.map(({ instances }) => instances)), new Set([2]));
  assert.equal(new Set(answers.map(({ instance }) => instance)).size, 8);
  assert.equal(new Set(answers.map(({ loop }) => loop)).size, 4);
  assert.equal(new Set(answers.map(({ pid }) => pid)).size, 2);
  const health = await deployment.health();
  assert.deepEqual(
    health.map(({ detail }) => detail),
    new Array(8).fill('2 here'),
  );
});

test('a unit may be a function, an object, a class, or a module with start', async (t) => {
  const loops = startLoops(t);
  const word = 'captured';
  await loops.deploy(({ bus }: UnitContext) => {
    bus.consumer('function', (message) => message.reply(word));
  });
  const object = {
    words: ['own'],
    start({ bus, instance }: UnitContext) {
      this.words.push(String(instance));
      bus.consumer('object', (message) => message.reply(this.words));
    },
  };
  await loops.deploy(object, { instances: 4 });
  class Unit {
    #word = 'private';
    start({ bus }: UnitContext) {
      bus.consumer('class', (message) => message.reply(this.#word));
    }
  }
  const ofClass = await loops.deploy(Unit);
  await loops.deploy(fileURLToPath(appUrl('functions')), { name: 'by name' });
  assert.equal((await loops.bus.request('function', 0)).body, word);
  for (let at = 0; at < 4; at += 1) {
    const { body } = await loops.bus.request<string[]>('object', 0);
    assert.equal(body.length, 2, 'each instance has a copy');
  }
  assert.equal((await loops.bus.request('class', 0)).body, 'private');
  assert.equal((await loops.bus.request('name', 0)).body, 'by name');
  assert.equal(ofClass.name, 'Unit');
});

test('the return value of the start of a module is its stop', async (t) => {
  const loops = startLoops(t);
  const gone: unknown[] = [];
  loops.bus.consumer('gone', ({ body }) => {
    gone.push(body);
  });
  const deployment = await loops.deploy(appUrl('functions'));
  await deployment.undeploy();
  await waitFor(() => gone.length > 0);
  assert.deepEqual(gone, ['functions']);
});

test('more instances go where the fewest of their deployment are, fewer leave from the end', async (t) => {
  const loops = startLoops(t, { loops: 2 });
  const other = await loops.deploy(() => {}, { instances: 1 });
  const deployment = await loops.deploy(() => {}, { instances: 3 });
  const [busy] = await loopsOf(other);
  assert.equal((await loopsOf(deployment)).includes(busy), false);
  await deployment.scale(4);
  assert.equal(new Set(await loopsOf(deployment)).size, 4);
  await deployment.scale(9);
  const counts = new Map<unknown, number>();
  for (const loop of await loopsOf(deployment)) counts.set(loop, (counts.get(loop) ?? 0) + 1);
  assert.deepEqual([...counts.values()].sort(), [2, 2, 2, 3]);
  await deployment.scale(1);
  const status = await deployment.status();
  assert.deepEqual(
    status.map(({ instance }) => instance),
    [0],
  );
  await deployment.scale(0);
  assert.deepEqual(await deployment.status(), []);
});

test('processes limits where instances are', async (t) => {
  const loops = startLoops(t, { loops: 2 });
  const deployment = await loops.deploy(() => {}, { instances: 4, processes: 1 });
  assert.equal(new Set((await deployment.status()).map(({ pid }) => pid)).size, 1);
  await deployment.scale(6);
  assert.equal(new Set((await deployment.status()).map(({ pid }) => pid)).size, 1);
});

test('undeploy lets handlers end, then calls stop, then removes the instances', async (t) => {
  const loops = startLoops(t);
  const events: unknown[] = [];
  loops.bus.consumer('events', (message) => events.push(message.body));
  const held: (() => void)[] = [];
  loops.bus.consumer('hold', (message) => held.push(() => message.reply(0)));
  const deployment = await loops.deploy(({ bus, signal }: UnitContext) => {
    signal.addEventListener('abort', () => bus.send('events', 'abort'));
    bus.consumer('slow', async (message) => {
      await bus.request('hold', 0);
      bus.send('events', 'handled');
      message.reply('done');
    });
    return () => bus.send('events', 'stop');
  });
  const asked = [0, 1].map((body) => loops.bus.request('slow', body));
  await waitFor(() => held.length === 2);
  const undeployed = deployment.undeploy();
  await waitFor(() => events.length > 0);
  assert.deepEqual(events, ['abort'], 'both are at work');
  for (const release of held) release();
  for (const each of asked) assert.equal((await each).body, 'done');
  await undeployed;
  await waitFor(() => events.length === 4);
  assert.deepEqual(events, ['abort', 'handled', 'handled', 'stop']);
  await assert.rejects(loops.bus.request('slow', 2), { code: 'BUS_NO_HANDLERS' });
  await deployment.undeploy();
  await assert.rejects(deployment.scale(2), { code: 'UNIT_UNDEPLOYED' });
});

test('deployments of a unit end with it', async (t) => {
  const loops = startLoops(t);
  const parent = await loops.deploy(async ({ deploy }: UnitContext) => {
    const child = await deploy(
      ({ bus }: UnitContext) => {
        bus.consumer('child', (message) => message.reply('there'));
      },
      { instances: 2 },
    );
    await child.scale(3);
  });
  assert.equal((await loops.bus.request('child', 0)).body, 'there');
  assert.deepEqual(loops.deployments.length, 2);
  await parent.undeploy();
  assert.deepEqual(loops.deployments, []);
  await assert.rejects(loops.bus.request('child', 0), { code: 'BUS_NO_HANDLERS' });
});

test('units talk to units in other loops, and to the program', async (t) => {
  const loops = startLoops(t, { loops: 2 });
  await loops.deploy(appUrl('module'), { instances: 4, config: { greeting: 'hi' } });
  loops.bus.consumer('who', (message) => message.reply(process.pid));
  await loops.deploy(({ bus }: UnitContext) => {
    bus.consumer('ask all', async (message) => {
      const seen = new Set<number>();
      for (let at = 0; at < 8; at += 1) {
        seen.add((await bus.request<{ loop: number }>('greet', 'all')).body.loop);
      }
      message.reply({ loops: seen.size, program: (await bus.request('who', 0)).body });
    });
  });
  const { body } = await loops.bus.request('ask all', 0);
  assert.deepEqual(body, { loops: 4, program: process.pid });
});

test('a thousand units are deployed', async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(
    ({ bus, instance }: UnitContext) => {
      bus.consumer(`unit ${instance}`, (message) => message.reply(instance));
    },
    { instances: 1000 },
  );
  assert.equal((await loops.bus.request('unit 999', 0)).body, 999);
  await deployment.undeploy();
  await assert.rejects(loops.bus.request('unit 999', 0), { code: 'BUS_NO_HANDLERS' });
});

test('the configuration is that of the call, whatever its owner changes later', async (t) => {
  const loops = startLoops(t);
  const config = { list: [1] };
  const unit = ({ bus, config, instance }: UnitContext<{ list: number[] }>) => {
    bus.consumer(`config ${instance}`, (message) => message.reply(config));
  };
  const deploying = loops.deploy(unit, { config });
  config.list.push(2); // while the loops start
  const deployment = await deploying;
  config.list.push(3);
  await deployment.scale(2);
  for (const address of ['config 0', 'config 1']) {
    assert.deepEqual((await loops.bus.request(address, 0)).body, { list: [1] });
  }
});

test('an error of a handler that no requester gets is announced with the name of its unit', async (t) => {
  const loops = startLoops(t, { processes: 1, loops: 1 });
  const announced = new Promise((resolve) => {
    loops.bus.consumer('announced', ({ body }) => resolve(body));
  });
  await loops.deploy(
    async ({ bus }: UnitContext) => {
      const { subscribe } = await import('node:diagnostics_channel');
      subscribe('manycore:bus:handler-failed', (failure) => {
        const { address, unit, error } = Object(failure);
        bus.send('announced', [address, unit, error.code]);
      });
      bus.consumer('fails', () => {
        throw new Error('bad');
      });
    },
    { name: 'fragile' },
  );
  loops.bus.send('fails', 1);
  assert.deepEqual(await announced, ['fails', 'fragile', 'BUS_HANDLER_ERROR']);
});

test('a deployment that was undeployed has no status and no health', async (t) => {
  const loops = startLoops(t, { processes: 1, loops: 1 });
  const deployment = await loops.deploy(() => {});
  assert.equal((await deployment.health()).length, 1);
  await deployment.undeploy();
  assert.deepEqual([await deployment.status(), await deployment.health()], [[], []]);
});

test('a reply that came while the loop of its requester was blocked is in time', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-late-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const replied = join(folder, 'replied');
  const loops = startLoops(t, { processes: 1, loops: 1 });
  await loops.deploy(({ bus }: UnitContext) => {
    bus.consumer<string>('slow', (message) => {
      message.reply('in time');
      setTimeout(() => writeFileSync(message.body, ''), 5); // after the reply
    });
  });
  await loops.bus.request('slow', join(folder, 'first')); // the way is known
  const timeoutMs = 100;
  const answer = loops.bus.request('slow', replied, { timeoutMs });
  await new Promise((resolve) => setImmediate(resolve)); // the request is sent
  const [word, endMs] = [new Int32Array(new SharedArrayBuffer(4)), performance.now() + 30_000];
  Atomics.wait(word, 0, 0, 2 * timeoutMs);
  while (!existsSync(replied) && performance.now() < endMs) Atomics.wait(word, 0, 0, 1);
  assert.equal((await answer).body, 'in time');
});
