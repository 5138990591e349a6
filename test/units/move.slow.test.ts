// Instances that move to other loops: with their state, all messages in order, and faults.
// Long (over 400 lines), because nearly all cases move the same unit.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Deployment, Loops, UnitContext } from '../../src/public.js';
import { killOne, waitFor } from '../support/index.js';
import { appUrl, startLoops } from './loops.js';

/** Limit of calls that hang here; all others have to end within it. */
const limitMs = 1000;

/** Counts, reports its calls, and fails where it is configured to. */
class Counter {
  count = 0;
  context: UnitContext<string> | undefined;

  async start(context: UnitContext<string>): Promise<void> {
    this.context = context;
    const { bus, instance, loop } = context;
    await bus.request('log', `start ${loop}`);
    if (context.config.includes('start')) await this.failLater('start');
    bus.consumer('count', (message) => {
      this.count += 1;
      message.reply({ count: this.count, loop, instance });
    });
    bus.consumer<string>('die', () => process.kill(process.pid, 'SIGKILL'));
    bus.consumer('slow', async (message) => {
      this.count += 1;
      await bus.request('hold', 0);
      message.reply(loop);
    });
  }

  /** Fails once, at a message of the program. */
  async failLater(what: string): Promise<void> {
    const { bus, config } = this.context ?? assert.fail();
    if ((await bus.request(`fails ${what}`, 0)).body !== true) return;
    const [, how] = config.split(' ');
    if (how === 'throws') throw new Error(`${what} does not want to`);
    if (how === 'hangs') await new Promise(() => {});
    if (how === 'dies') process.kill(process.pid, 'SIGKILL');
  }

  async save(): Promise<unknown> {
    const { bus, config, loop } = this.context ?? assert.fail();
    await bus.request('log', `save ${loop}`);
    if (config.includes('save')) await this.failLater('save');
    return config === 'state' ? new WeakMap() : { count: this.count };
  }

  async restore({ count }: { count: number }): Promise<void> {
    const { bus, config, loop } = this.context ?? assert.fail();
    await bus.request('log', `restore ${loop}`);
    if (config.includes('restore')) await this.failLater('restore');
    this.count = count;
  }

  async stop(): Promise<void> {
    const { bus, loop } = this.context ?? assert.fail();
    await bus.request('log', `stop ${loop}`);
  }
}

async function deployCounter(t: TestContext, config = '', options = {}) {
  const loops = startLoops(t);
  const log: unknown[] = [];
  loops.bus.consumer('log', (message) => {
    log.push(message.body);
    message.reply(0);
  });
  for (const what of ['start', 'save', 'restore']) {
    let calls = 0;
    loops.bus.consumer(`fails ${what}`, (message) => {
      calls += 1;
      message.reply(calls === (what === 'start' ? 2 : 1));
    });
  }
  const held: (() => void)[] = [];
  loops.bus.consumer('hold', (message) => held.push(() => message.reply(0)));
  /** Lets the handlers of `slow` end. */
  const release = (): void => {
    for (const each of held.splice(0)) each();
  };
  const deployment = await loops.deploy(Counter, { config, name: 'counter', ...options });
  const [{ loop: from = -1 } = {}] = await deployment.status();
  const to = loops.loops.find(({ loop }) => loop !== from)?.loop ?? -1;
  return { loops, deployment, log, held, release, from, to };
}

interface Counted {
  readonly count: number;
  readonly loop: number;
}

async function counted(loops: Loops): Promise<Counted> {
  return (await loops.bus.request<Counted>('count', 0)).body;
}

async function isWhere(deployment: Deployment): Promise<unknown> {
  const [{ loop, state } = { loop: -1, state: 'none' }] = await deployment.status();
  return [loop, state];
}

test('an instance goes to another loop with its state, and the old one stops', async (t) => {
  const { loops, deployment, log, from, to } = await deployCounter(t);
  assert.deepEqual(await counted(loops), { count: 1, loop: from, instance: 0 });
  await deployment.move(0, to);
  assert.deepEqual(await isWhere(deployment), [to, 'running']);
  assert.deepEqual(await counted(loops), { count: 2, loop: to, instance: 0 });
  const expected = [
    `start ${from}`,
    `start ${to}`,
    `save ${from}`,
    `restore ${to}`,
    `stop ${from}`,
  ];
  assert.deepEqual(log, expected);
  await deployment.move(0, to);
  assert.equal(log.length, 5, 'it is there already');
  await deployment.move(0, from);
  assert.deepEqual(await counted(loops), { count: 3, loop: from, instance: 0 });
  await deployment.undeploy();
  await assert.rejects(counted(loops), { code: 'BUS_NO_HANDLERS' });
});

test('handlers at work end before the state is saved', async (t) => {
  const { loops, deployment, log, held, release, from, to } = await deployCounter(t);
  const ping = ({ bus }: UnitContext): void => void bus.consumer('ping', (each) => each.reply(0));
  await loops.deploy(ping, { instances: 2 });
  const slow = loops.bus.request('slow', 0);
  await waitFor(() => held.length === 1);
  await counted(loops);
  const moved = deployment.move(0, to);
  await waitFor(() => log.includes(`start ${to}`));
  for (let at = 0; at < 20; at += 1) await loops.bus.request('ping', at); // a wrong save would come
  assert.equal(log.includes(`save ${from}`), false);
  release();
  await moved;
  assert.equal((await slow).body, from);
  assert.deepEqual(await counted(loops), { count: 3, loop: to, instance: 0 });
});

test('a handler that does not end in time keeps the instance where it is', async (t) => {
  const options = { stopTimeoutMs: limitMs };
  const { loops, deployment, log, release, from, to } = await deployCounter(t, '', options);
  const slow = loops.bus.request('slow', 0);
  await counted(loops);
  await assert.rejects(deployment.move(0, to), {
    code: 'UNIT_MOVE_FAILED',
    message: new RegExp(`its handlers and save\\(\\) have not ended within ${limitMs} ms`),
  });
  assert.deepEqual(await counted(loops), { count: 3, loop: from, instance: 0 });
  release();
  assert.equal((await slow).body, from);
  await counted(loops);
  assert.equal(
    log.includes(`save ${from}`),
    false,
    'nothing is saved for a move that was given up',
  );
  await deployment.move(0, to);
  assert.deepEqual(await counted(loops), { count: 5, loop: to, instance: 0 });
});

test('numbers that are none are refused, and a deployment that has ended', async (t) => {
  const { deployment, from, to } = await deployCounter(t);
  const wrong = (pattern: RegExp) => ({ code: 'OPTION_INVALID', message: pattern });
  await assert.rejects(deployment.move(1, to), wrong(/instance is 1: .* of counter, from 0 to 0/));
  await assert.rejects(deployment.move(0, 99), wrong(/loop is 99: .* a loop that is there: \d/));
  await assert.rejects(deployment.move(0, Number.NaN), wrong(/loop is NaN/));
  assert.deepEqual(await isWhere(deployment), [from, 'running']);
  await deployment.undeploy();
  await assert.rejects(deployment.move(0, to), { code: 'UNIT_UNDEPLOYED' });
});

for (const [config, pattern] of [
  ['start throws', /start does not want to/],
  ['save throws', /save does not want to/],
  ['restore throws', /restore does not want to/],
  ['state', /WeakMap/],
  ['start hangs', /start\(\) has not ended within/],
  ['save hangs', /its handlers and save\(\) have not ended within/],
  ['restore hangs', /restore\(\) has not ended within/],
] as const) {
  test(`${config}: the instance goes on where it was, with all messages`, async (t) => {
    const limits = { startTimeoutMs: limitMs, stopTimeoutMs: limitMs };
    const options = config.endsWith('hangs') ? limits : {};
    const { loops, deployment, from, to } = await deployCounter(t, config, options);
    await counted(loops);
    const moved = deployment.move(0, to);
    const failed = assert.rejects(moved, { code: 'UNIT_MOVE_FAILED', message: pattern });
    const answers: Promise<Counted>[] = [];
    let isOver = false;
    void failed.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      answers.push(counted(loops));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await failed;
    const seen = await Promise.all(answers);
    assert.deepEqual(
      seen.map(({ count }) => count),
      seen.map((_, at) => at + 2),
    );
    assert.deepEqual(new Set(seen.map(({ loop }) => loop)), new Set([from]));
    assert.deepEqual(await isWhere(deployment), [from, 'running']);
    if (config !== 'state') await deployment.move(0, to);
  });
}

for (const what of ['start', 'restore']) {
  test(`${what} dies: the instance goes on where it was`, async (t) => {
    const { loops, deployment, from, to } = await deployCounter(t, `${what} dies`);
    await counted(loops);
    const moved = deployment.move(0, to);
    const waiting = counted(loops);
    await assert.rejects(moved, { code: 'UNIT_MOVE_FAILED' });
    assert.equal((await waiting).count, 2);
    assert.deepEqual(await counted(loops), { count: 3, loop: from, instance: 0 });
    assert.deepEqual(await isWhere(deployment), [from, 'running']);
  });
}

test('save dies: the instance is started again, without its state', async (t) => {
  const { loops, deployment, from, to } = await deployCounter(t, 'save dies');
  await counted(loops);
  await assert.rejects(deployment.move(0, to), {
    code: 'UNIT_MOVE_FAILED',
    message: /its loop has ended, and it is started again/,
  });
  const again = await waitFor(() => counted(loops));
  assert.equal(again.count, 1);
  assert.notEqual(again.loop, from);
  await waitFor(async () => (await deployment.status())[0]?.state === 'running');
});

test('the old loop dies when the new one has the state: that one is kept', async (t) => {
  const loops = startLoops(t);
  const restoring = new Promise<() => void>((resolve) => {
    loops.bus.consumer('restoring', (message) => resolve(() => message.reply(0)));
  });
  const deployment = await loops.deploy(({ bus, loop }: UnitContext) => {
    let count = 0;
    bus.consumer('count', (message) => {
      count += 1;
      message.reply({ count, loop });
    });
    return {
      save: () => count,
      restore: async (saved: number) => {
        count = saved;
        await bus.request('restoring', 0);
      },
    };
  });
  await counted(loops);
  const [{ loop: from, pid } = { loop: -1, pid: -1 }] = await deployment.status();
  const to = loops.loops.find(({ loop }) => loop !== from)?.loop ?? -1;
  const moved = deployment.move(0, to);
  const goOn = await restoring;
  killOne(pid, 'SIGKILL');
  await waitFor(() => loops.loops.every(({ loop }) => loop !== from));
  goOn();
  await moved;
  assert.deepEqual(await isWhere(deployment), [to, 'running']);
  assert.deepEqual(await counted(loops), { count: 2, loop: to });
});

test('scale and undeploy during a move take their turn', async (t) => {
  const { loops, deployment, to } = await deployCounter(t);
  const done: string[] = [];
  const note = (what: string) => (): void => void done.push(what);
  const changes = [
    deployment.move(0, to).then(note('move')),
    deployment.scale(2).then(note('scale')),
    deployment.undeploy().then(note('undeploy')),
  ];
  await Promise.all(changes);
  assert.deepEqual(done, ['move', 'scale', 'undeploy']);
  await assert.rejects(counted(loops), { code: 'BUS_NO_HANDLERS' });
});

test('deployments of the old instance end with it; a unit can move its children', async (t) => {
  const loops = startLoops(t);
  const parent = await loops.deploy(async ({ bus, deploy, loop }: UnitContext) => {
    const child = await deploy((context: UnitContext) => {
      context.bus.consumer('child', (message) => message.reply([loop, context.loop]));
    });
    bus.consumer<number>('move', async (message) => {
      await child.move(0, message.body);
      message.reply(0);
    });
  });
  const [{ loop: from = -1 } = {}] = await parent.status();
  for (const { loop } of loops.loops) {
    await loops.bus.request('move', loop);
    assert.deepEqual((await loops.bus.request('child', 0)).body, [from, loop]);
  }
  const to = loops.loops.find(({ loop }) => loop !== from)?.loop ?? -1;
  await parent.move(0, to);
  assert.equal(loops.deployments.length, 2);
  const [of] = (await loops.bus.request<number[]>('child', 0)).body;
  assert.equal(of, to);
});

test('a port is never closed while its only server moves', async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(appUrl('hello'), { config: { port: 0 } });
  const [address] = await loops.addresses();
  assert.ok(typeof address === 'object');
  let isOver = false;
  let asked = 0;
  const seen = new Set<string>();
  const failures: unknown[] = [];
  const asking = (async () => {
    while (!isOver) {
      const headers = { connection: 'close' };
      try {
        seen.add(await (await fetch(`http://127.0.0.1:${address.port}/`, { headers })).text());
      } catch (error) {
        failures.push(Object(Object(error).cause).code); // it was placed on the old one as that ended
      }
      asked += 1;
    }
  })();
  for (const { loop } of [...loops.loops, ...loops.loops]) {
    await deployment.move(0, loop);
    const before = asked;
    await waitFor(() => asked > before + 1); // the first was perhaps on its way
  }
  isOver = true;
  await asking;
  assert.equal(seen.size, 2);
  assert.equal(failures.includes('ECONNREFUSED'), false);
});

test('many senders in many loops lose nothing while a unit goes back and forth', async (t) => {
  const loops = startLoops(t, { loops: 2 });
  const log = await loops.deploy(({ bus }: UnitContext) => {
    let seen: [string, number][] = [];
    bus.consumer<[string, number]>('numbered', (message) => {
      seen.push(message.body);
      message.reply(seen.length);
    });
    bus.consumer('seen', (message) => message.reply(seen));
    return {
      save: () => seen,
      restore: (state: [string, number][]) => {
        seen = state;
      },
    };
  });
  await loops.deploy(
    ({ bus, instance }: UnitContext) => {
      let isOver = false;
      bus.consumer('end', () => {
        isOver = true;
      });
      bus.consumer(`begin ${instance}`, async (message) => {
        const counts = { send: 0, request: 0 };
        const answers: Promise<unknown>[] = [];
        while (!isOver) {
          for (let at = 0; at < 5; at += 1) {
            bus.send('numbered', [`send ${instance}`, counts.send]);
            counts.send += 1;
          }
          answers.push(bus.request('numbered', [`request ${instance}`, counts.request]));
          counts.request += 1;
          await bus.drained();
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
        await Promise.all(answers);
        message.reply(counts);
      });
    },
    { instances: 6 },
  );
  const senders = Array.from({ length: 6 }, (_, at) =>
    loops.bus.request<{ send: number; request: number }>(`begin ${at}`, 0, { timeoutMs: 120_000 }),
  );
  const numbers = loops.loops.map(({ loop }) => loop);
  for (let move = 0; move < 20; move += 1) {
    await log.move(0, numbers[(move * 3 + 1) % numbers.length] ?? -1);
  }
  loops.bus.publish('end', 0);
  const counts = await Promise.all(senders.map(async (sender) => (await sender).body));
  const expected = counts.reduce((sum, { send, request }) => sum + send + request, 0);
  const seen = await waitFor(async () => {
    const { body } = await loops.bus.request<[string, number][]>('seen', 0);
    return body.length >= expected && body;
  });
  for (const [at, count] of counts.entries()) {
    for (const how of ['send', 'request'] as const) {
      const own = seen.filter(([by]) => by === `${how} ${at}`).map(([, number]) => number);
      assert.deepEqual(
        own,
        Array.from({ length: count[how] }, (_, number) => number),
      );
    }
  }
});
