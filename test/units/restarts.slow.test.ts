// Restarts of units that end their processes: healthy units go on, guilty ones are given up, and it is reported.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Deployment, Loops, UnitContext } from '../../src/public.js';
import { killOne, waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

const longMs = 60_000;

/** Replies with its process. */
function good({ bus, instance }: UnitContext): void {
  bus.consumer(`good ${instance}`, (message) => message.reply(process.pid));
}

/** Ends its process soon after each start. */
function bad(): void {
  setTimeout(() => process.exit(7), 100);
}

async function states(deployment: Deployment): Promise<string[]> {
  return (await deployment.status()).map(({ state }) => state);
}

async function allRun(deployment: Deployment): Promise<boolean> {
  return (await states(deployment)).every((state) => state === 'running');
}

/** Deploys `bad` and waits for its end. */
async function deployBad(loops: Loops, options = {}): Promise<Deployment> {
  const deployment = await loops.deploy(bad, { name: 'bad', ...options });
  await assert.rejects(deployment.ended, {
    code: 'UNIT_FAILED',
    message: /^instance 0 of bad was given up .*bad ended its process \(.*exit code 7\); fix/,
  });
  return deployment;
}

test('a unit that ends its process again and again is given up, others go on', {
  timeout: longMs,
}, async (t) => {
  const failures: unknown[] = [];
  const note = (message: unknown): void => void failures.push(message);
  subscribe('manycore:unit:failed', note);
  t.after(() => unsubscribe('manycore:unit:failed', note));
  const loops = startLoops(t);
  const healthy = await loops.deploy(good, { instances: 2 });
  const failed = await deployBad(loops);
  assert.deepEqual(await states(failed), ['failed']);
  const {
    unit,
    instances,
    error,
  }: { unit?: string; instances?: number[]; error?: { code?: string } } = Object(failures[0]);
  assert.deepEqual([unit, instances, error?.code], ['bad', [0], 'UNIT_FAILED']);
  await waitFor(() => allRun(healthy));
  for (const instance of [0, 1]) await loops.bus.request(`good ${instance}`, 0);
  // Everything works afterwards, also with what was given up.
  const other = await loops.deploy(good, { instances: 3 });
  await other.scale(4);
  await other.undeploy();
  await failed.scale(1);
  await failed.undeploy();
  assert.deepEqual(await failed.status(), []);
  await assert.rejects(failed.ended, { code: 'UNIT_FAILED' });
  await waitFor(() => allRun(healthy));
});

test('a guilty unit is alone from its third loss on, and others keep their state', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t, { processes: 1 });
  const healthy = await loops.deploy(good);
  const failed = await loops.deploy(bad, { name: 'bad', restarts: { max: Infinity } });
  const pidOf = async (deployment: Deployment) => (await deployment.status())[0]?.pid;
  const isApart = async (): Promise<boolean> => {
    const [own, other] = [await pidOf(healthy), await pidOf(failed)];
    return own !== undefined && other !== undefined && own !== other;
  };
  await waitFor(isApart, 20_000);
  const pid = await pidOf(healthy);
  const seen = new Set<number>();
  await waitFor(async () => {
    const now = await pidOf(failed);
    if (now !== undefined) seen.add(now);
    return seen.size === 3;
  }, 20_000);
  assert.equal(await pidOf(healthy), pid);
  await failed.undeploy();
});

/** Ways in which code that nobody called ends a loop in a thread. */
const ends = {
  'throws in a timer': () => void setImmediate(() => assert.fail('thrown')),
  'rejects unhandled': () => void Promise.reject(new Error('thrown')),
  'calls process.exit': () => process.exit(7),
};

test('a loop that ends starts again alone, and the others of its process go on', {
  timeout: longMs,
}, async (t) => {
  const lost: { pid?: number; loop?: number }[] = [];
  const note = (message: unknown): void => void lost.push(Object(message));
  subscribe('manycore:server:lost', note);
  t.after(() => unsubscribe('manycore:server:lost', note));
  const loops = startLoops(t, { processes: 1, loops: 2 });
  const counter = await loops.deploy(
    ({ bus, instance }: UnitContext) => {
      let count = 0;
      bus.consumer(`count ${instance}`, (message) => {
        count += 1;
        message.reply([count, process.pid]);
      });
    },
    { instances: 2 },
  );
  const count = async (instance: number): Promise<number[]> =>
    (await loops.bus.request<number[]>(`count ${instance}`, 0)).body;
  for (const [name, end] of Object.entries(ends)) {
    const ending = await loops.deploy(
      ({ bus }: UnitContext) => {
        bus.consumer('end', end);
      },
      { name },
    );
    const [{ loop } = { loop: undefined }] = await ending.status();
    const spared = (await counter.status()).find((each) => each.loop !== loop) ?? assert.fail();
    const [before = NaN, pid] = await count(spared.instance);
    loops.bus.send('end', 0);
    await waitFor(async () => {
      const [now] = await ending.status();
      return now?.state === 'running' && now.loop !== loop;
    }, 20_000);
    await waitFor(() => allRun(counter), 20_000);
    assert.deepEqual(await count(spared.instance), [before + 1, pid], name);
    assert.equal((await counter.status())[spared.instance]?.loop, spared.loop);
    await ending.undeploy();
  }
  assert.equal(lost.length, Object.keys(ends).length);
  assert.ok(lost.every((each) => each.loop !== undefined && each.pid === lost[0]?.pid));
});

test('a loop that ends before it is ready again takes no other of its process along', {
  timeout: longMs,
}, async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'manycore-restarts-'));
  t.after(() => rmSync(place, { recursive: true }));
  const [hold, doom] = [join(place, 'hold'), join(place, 'doom')];
  let losses = 0;
  const note = (message: unknown): void => {
    if (Object(message).unit === 'doomed') losses += 1;
  };
  subscribe('manycore:unit:lost', note);
  t.after(() => unsubscribe('manycore:unit:lost', note));
  const loops = startLoops(t, { processes: 1, loops: 2 });
  // Their loop is ready when they run again: not while `hold` is there.
  const calm = await loops.deploy(
    async ({ bus, instance }: UnitContext) => {
      while (existsSync(hold)) await new Promise((resolve) => setTimeout(resolve, 5));
      const id = Math.random();
      bus.consumer(`calm ${instance}`, (message) => message.reply(id));
    },
    { instances: 2, name: 'calm' },
  );
  const doomed = await loops.deploy(
    ({ bus }: UnitContext) => {
      if (existsSync(doom)) process.exit(7);
      bus.consumer('end', () => process.exit(7));
    },
    { name: 'doomed' },
  );
  const [{ loop } = { loop: undefined }] = await doomed.status();
  const spared = (await calm.status()).find((each) => each.loop !== loop) ?? assert.fail();
  const { body } = await loops.bus.request(`calm ${spared.instance}`, 0);
  for (const path of [hold, doom]) writeFileSync(path, '');
  loops.bus.send('end', 0);
  await waitFor(() => losses >= 2, 20_000);
  for (const path of [hold, doom]) rmSync(path);
  await waitFor(() => allRun(calm), 20_000);
  assert.equal((await calm.status())[spared.instance]?.loop, spared.loop);
  assert.equal((await loops.bus.request(`calm ${spared.instance}`, 0)).body, body);
});

test('units beside one that ends its loop while it starts are not guilty', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t, { processes: 1, loops: 2 });
  const exit = (): void => process.exit(7);
  const isComplete = (): boolean => loops.loops.length === 2;
  // The loop has no other unit: its end must not count for what comes there later.
  await assert.rejects(loops.deploy(exit), { code: 'UNIT_START_FAILED' });
  await waitFor(isComplete);
  const healthy = await loops.deploy(good, { instances: 2, restarts: { max: 0 } });
  process.kill(loops.loops[0]?.pid ?? assert.fail(), 'SIGKILL');
  await waitFor(async () => (await states(healthy)).includes('lost'));
  await waitFor(async () => (await states(healthy)).every((state) => state !== 'lost'));
  await waitFor(() => isComplete() && allRun(healthy));
  await assert.rejects(loops.deploy(exit), { code: 'UNIT_START_FAILED' });
  await waitFor(isComplete);
  await waitFor(() => allRun(healthy));
  for (const instance of [0, 1]) await loops.bus.request(`good ${instance}`, 0);
});

test('an instance that starts again while its deployment ends does not stay', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t);
  let begun = 0;
  loops.bus.consumer('begin', (message) => {
    begun += 1;
    if (begun !== 3) message.reply(0); // the third one is the restart, which undeploy() aborts
  });
  const deployment = await loops.deploy(
    async ({ bus }: UnitContext) => {
      await bus.request('begin', 0);
      bus.consumer('late', (message) => message.reply(0));
      // Longer than the delay after a failed start.
      return () => new Promise((resolve) => setTimeout(resolve, 500));
    },
    { instances: 2 },
  );
  process.kill((await deployment.status())[0]?.pid ?? assert.fail(), 'SIGKILL');
  await waitFor(() => begun === 3);
  await deployment.undeploy();
  assert.equal(begun, 3);
  await assert.rejects(loops.bus.request('late', 0), { code: 'BUS_NO_HANDLERS' });
});

test('a guilty unit that is alone in its process adds none', { timeout: longMs }, async (t) => {
  const loops = startLoops(t);
  const healthy = await loops.deploy(good);
  const { body } = await loops.bus.request('good 0', 0);
  const scaled: unknown[] = [];
  const note = (message: unknown): void => void scaled.push(message);
  subscribe('manycore:server:scaled', note);
  t.after(() => unsubscribe('manycore:server:scaled', note));
  await deployBad(loops, { restarts: { max: 3 } });
  await waitFor(() => allRun(healthy));
  assert.equal((await loops.bus.request('good 0', 0)).body, body);
  assert.deepEqual(scaled, []);
});

test('all instances of a unit that one of them takes along start again', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(
    ({ bus, instance }: UnitContext) => {
      bus.consumer(`pid ${instance}`, (message) => message.reply(process.pid));
      bus.consumer(`end ${instance}`, () => process.exit(7));
    },
    { instances: 6 },
  );
  const pidOf = async (instance: number): Promise<unknown> =>
    (await loops.bus.request(`pid ${instance}`, 0)).body;
  for (const instance of [0, 1]) {
    const before = await pidOf(instance);
    loops.bus.send(`end ${instance}`, 0);
    await waitFor(async () => {
      const status = await deployment.status();
      return status.every((each) => each.state === 'running' && each.pid !== before);
    }, 20_000);
    for (let at = 0; at < 6; at += 1) await pidOf(at);
  }
});

test('processes that are killed from outside end nothing for good', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t);
  const healthy = await loops.deploy(good, { instances: 2 });
  for (let round = 0; round < 7; round += 1) {
    await waitFor(() => allRun(healthy));
    const [{ pid } = { pid: undefined }] = await healthy.status();
    process.kill(pid ?? assert.fail(), 'SIGKILL');
    await waitFor(async () => (await healthy.status())[0]?.pid !== pid);
  }
  await waitFor(() => allRun(healthy));
  await loops.bus.request('good 0', 0);
});

/** Ends when its instance runs elsewhere; until then no process that replaces the lost one lives long. */
async function runsElsewhere(loops: Loops, deployment: Deployment): Promise<boolean> {
  const [lost] = await deployment.status();
  const others = new Set((await loops.status()).map(({ pid }) => pid));
  others.delete(lost?.pid);
  return await waitFor(async () => {
    for (const { pid } of await loops.status()) {
      if (pid !== undefined && !others.has(pid)) killOne(pid, 'SIGKILL');
    }
    const [{ state, pid } = { state: 'lost', pid: undefined }] = await deployment.status();
    return state === 'running' && others.has(pid);
  }, longMs / 2);
}

test('a process that does not come back holds no instance up', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(good);
  assert.ok(await runsElsewhere(loops, deployment));
  await loops.bus.request('good 0', 0);
});

test('a start that fails after a loss is tried within the limit, and others start', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t, { processes: 1 });
  const healthy = await loops.deploy(good);
  const once = await loops.deploy(
    ({ config, bus }: UnitContext<number>) => {
      if (process.pid !== config && config !== 0) throw new Error('only once');
      bus.consumer('once', (message) => message.reply(0));
    },
    { name: 'once', config: (await healthy.status())[0]?.pid ?? 0, restarts: { max: 2 } },
  );
  process.kill((await healthy.status())[0]?.pid ?? assert.fail(), 'SIGKILL');
  await assert.rejects(once.ended, { code: 'UNIT_FAILED', message: /only once/ });
  await waitFor(() => allRun(healthy));
});

test('`ended` resolves after undeploy, also for a child', async (t) => {
  const loops = startLoops(t);
  const told: unknown[] = [];
  loops.bus.consumer('told', ({ body }) => told.push(body));
  const parent = await loops.deploy(async ({ deploy, bus }: UnitContext) => {
    const child = await deploy(() => {}, { name: 'child' });
    void child.ended.then(() => bus.send('told', 'ended'));
    bus.consumer('end', async () => await child.undeploy());
  });
  loops.bus.send('end', 0);
  await waitFor(() => told.length > 0);
  assert.deepEqual(told, ['ended']);
  await parent.undeploy();
  await parent.ended;
});

test('wrong limits of restarts are refused', async (t) => {
  const loops = startLoops(t);
  for (const restarts of [
    5,
    null,
    { max: -1 },
    { max: 1.5 },
    { max: '5' },
    { withinMs: 0 },
    { within: 5 },
  ]) {
    const wrong: object = { restarts };
    await assert.rejects(
      loops.deploy(() => {}, wrong),
      { code: 'OPTION_INVALID' },
    );
  }
});
