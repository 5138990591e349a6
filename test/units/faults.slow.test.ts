// Faults of units: code that is missing or throws, starts and stops that never end, wrong numbers, loops that
// end.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Loops, type UnitContext } from '../../src/public.js';
import { library } from '../faults/child.js';
import { childrenOf, isRunning, waitFor } from '../support/index.js';
import { appUrl, skip, startLoops } from './loops.js';

test('units that are none are refused by name, and nothing stays', async (t) => {
  const loops = startLoops(t);
  const invalid = (pattern: RegExp) => ({ code: 'UNIT_INVALID', message: pattern });
  await assert.rejects(loops.deploy('/no/such/unit.js'), invalid(/there is no unit \/no\/such/));
  await assert.rejects(
    loops.deploy(appUrl('throws')),
    invalid(/throws\.js cannot be loaded: not today/),
  );
  await assert.rejects(
    loops.deploy(appUrl('nothing')),
    invalid(/the export of .*nothing\.js is not a deployable unit/),
  );
  await assert.rejects(loops.deploy({}), invalid(/it must be a class/));
  const folder = mkdtempSync(join(tmpdir(), 'manycore-units-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, source] of [
    ['imports.mjs', `import './missing.js'; export const start = () => {};`],
    ['requires.cjs', `require('./missing.js'); exports.start = () => {};`],
  ] as const) {
    writeFileSync(join(folder, name), source);
    await assert.rejects(
      loops.deploy(join(folder, name)),
      invalid(new RegExp(`${name} cannot be loaded: Cannot find module '.*missing\\.js'`)),
    );
  }
  await assert.rejects(
    loops.deploy(() => {}, { config: new WeakMap() }),
    { code: /^TRANSFER_/ },
  );
  assert.deepEqual(loops.deployments, []);
});

test('wrong numbers and options are refused before anything starts', async (t) => {
  const loops = startLoops(t);
  for (const instances of [0, -1, 1.5, Number.NaN, 1e9]) {
    await assert.rejects(
      loops.deploy(() => {}, { instances }),
      { code: 'OPTION_INVALID' },
    );
  }
  const wrong: object = { instance: 2 };
  await assert.rejects(
    loops.deploy(() => {}, wrong),
    {
      code: 'OPTION_INVALID',
      message: /there is no "instance"/,
    },
  );
  await assert.rejects(
    loops.deploy(() => {}, { startTimeoutMs: 0 }),
    { code: 'OPTION_INVALID' },
  );
  await assert.rejects(loops.deploy('/no/such/unit.js'), { code: 'UNIT_INVALID' });
  assert.deepEqual(await loops.status(), [], 'no loop was started');
  const deployment = await loops.deploy(() => {});
  await assert.rejects(deployment.scale(-1), { code: 'OPTION_INVALID' });
  assert.throws(() => new Loops({ processes: 0 }), { code: 'OPTION_INVALID' });
});

test('when one instance cannot start, those that did are stopped', async (t) => {
  const loops = startLoops(t);
  const stopped: unknown[] = [];
  loops.bus.consumer('stopped', (message) => stopped.push(message.body));
  const unit = ({ bus, instance }: UnitContext) => {
    if (instance === 3) throw new Error('three is too many');
    bus.consumer('here', (message) => message.reply(instance));
    return () => bus.send('stopped', instance);
  };
  await assert.rejects(loops.deploy(unit, { instances: 4, name: 'four' }), {
    code: 'UNIT_START_FAILED',
    message: 'instance 3 of four could not start: three is too many',
  });
  await waitFor(() => stopped.length === 3);
  await assert.rejects(loops.bus.request('here', 0), { code: 'BUS_NO_HANDLERS' });
  const three = await loops.deploy(unit, { instances: 3 });
  await assert.rejects(three.scale(5), { code: 'UNIT_START_FAILED' });
  assert.equal((await three.status()).length, 3, 'those that ran before stay');
  assert.equal(typeof (await loops.bus.request('here', 0)).body, 'number');
});

test('a start that never ends is given up', async (t) => {
  const loops = startLoops(t);
  const unit = async ({ bus }: UnitContext) => {
    bus.consumer('here', (message) => message.reply(0));
    await new Promise(() => {});
  };
  await assert.rejects(loops.deploy(unit, { startTimeoutMs: 100, name: 'endless' }), {
    code: 'UNIT_START_FAILED',
    message: /instance 0 of endless could not start: start\(\) has not ended within 100 ms/,
  });
  await assert.rejects(loops.bus.request('here', 0), { code: 'BUS_NO_HANDLERS' });
});

test('a stop that throws or never ends is reported, and the instance is gone', async (t) => {
  const loops = startLoops(t);
  const unit = (how: 'throws' | 'hangs') => ({
    start: ({ bus }: UnitContext) => {
      bus.consumer('here', (message) => message.reply(0));
    },
    stop: async () => {
      if (how === 'throws') throw new Error('cannot let go');
      await new Promise(() => {});
    },
  });
  const throws = await loops.deploy(unit('throws'), { name: 'clingy' });
  await assert.rejects(throws.undeploy(), {
    code: 'UNIT_STOP_FAILED',
    message: 'instance 0 of clingy did not stop well: cannot let go',
  });
  const hangs = await loops.deploy(unit('hangs'), { stopTimeoutMs: 100 });
  await assert.rejects(hangs.undeploy(), {
    code: 'UNIT_STOP_FAILED',
    message: /has not ended within 100 ms/,
  });
  await assert.rejects(loops.bus.request('here', 0), { code: 'BUS_NO_HANDLERS' });
  assert.deepEqual(loops.deployments, []);
});

test('an undeployment names the loop that is blocked, and the option that allows more', async (t) => {
  const loops = startLoops(t, { processes: 1 });
  const deployment = await loops.deploy(
    ({ bus }: UnitContext) => {
      bus.consumer('block', (message) => {
        message.reply(process.pid);
        setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 1);
      });
      bus.consumer('is blocked', (message) => message.reply(0));
    },
    { name: 'stuck', stopTimeoutMs: 10 },
  );
  const { body: pid } = await loops.bus.request<number>('block', 0);
  await waitFor(async () => {
    const asked = loops.bus.request('is blocked', 0, { timeoutMs: 200 });
    return await asked.then(
      () => false,
      ({ code }) => code === 'BUS_TIMEOUT',
    );
  });
  const ended = deployment.undeploy().finally(() => process.kill(pid, 'SIGKILL'));
  await assert.rejects(ended, {
    code: 'UNIT_STOP_FAILED',
    message:
      /^stuck did not stop well: loop 1 has not answered within stopTimeoutMs \(10 ms\): a callback blocks it/,
  });
});

test('addresses of manycore are not for units', async (t) => {
  const loops = startLoops(t);
  await loops.start();
  const reserved = { code: 'OPTION_INVALID', message: /manycore's own/ };
  assert.throws(() => loops.bus.consumer('manycore:director', () => {}), reserved);
  assert.throws(() => loops.bus.send('manycore:loop:1', 0), reserved);
  await assert.rejects(loops.bus.request('manycore:loop:1', 0), reserved);
});

test('a loop process that is killed comes back with its instances', async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(
    ({ bus, instance }: UnitContext) => {
      bus.consumer(`unit ${instance}`, (message) => {
        if (message.body === 'die') process.kill(process.pid, 'SIGKILL');
        else message.reply(process.pid);
      });
    },
    { instances: 4 },
  );
  const before = await deployment.status();
  const lost = loops.bus.request('unit 1', 'die');
  await assert.rejects(lost, { code: /^BUS_(CONSUMER_LOST|NO_HANDLERS)$/ });
  const again = await waitFor(() => loops.bus.request<number>('unit 1', 'who'));
  assert.notEqual(again.body, before[1]?.pid);
  await waitFor(async () => {
    const status = await deployment.status();
    return status.every(({ state }) => state === 'running');
  });
  const after = await deployment.status();
  await waitFor(() => loops.loops.length === 2);
  const pids = loops.loops.map(({ pid }) => pid);
  for (const { instance, pid } of after) {
    assert.ok(pid !== undefined && pids.includes(pid));
    assert.equal((await loops.bus.request(`unit ${instance}`, 'who')).body, pid);
  }
});

test('closed loops refuse, and leave no process', async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(() => {});
  const [{ pid } = { pid: 0 }] = await deployment.status();
  await loops.close();
  await loops.close();
  await assert.rejects(
    loops.deploy(() => {}),
    { code: 'LOOPS_CLOSED' },
  );
  assert.throws(() => process.kill(pid ?? Number.NaN, 0), { code: 'ESRCH' });
});

test('a blocked loop is announced with its units and its place, and delays no other', async (t) => {
  const blocks: unknown[] = [];
  const note = (message: unknown): void => void blocks.push(message);
  subscribe('manycore:unit:blocked', note);
  t.after(() => unsubscribe('manycore:unit:blocked', note));
  const loops = startLoops(t);
  await loops.deploy(appUrl('sleeper'), { name: 'sleeper' });
  await loops.deploy(({ bus }: UnitContext) => {
    bus.consumer('awake', (message) => message.reply('yes'));
  });
  loops.bus.send('sleep', 11_000);
  for (let at = 0; at < 10; at += 1) {
    assert.equal((await loops.bus.request('awake', 0)).body, 'yes');
  }
  const [announced] = await waitFor(() => blocks.length > 0 && blocks, 20_000);
  const { units, stack }: { units?: string[]; stack?: string } = Object(announced);
  assert.deepEqual(units, ['sleeper']);
  assert.match(stack ?? '', /sleeper\.js:\d+/);
  await loops.bus.request('slept', 0);
});

test('a blocked loop is announced with the unit whose module it is in, else with all', async (t) => {
  const blocks: unknown[] = [];
  const note = (message: unknown): void => void blocks.push(message);
  subscribe('manycore:unit:blocked', note);
  t.after(() => unsubscribe('manycore:unit:blocked', note));
  const loops = startLoops(t, { processes: 1, loops: 1 });
  await loops.deploy(appUrl('sleeper'), { name: 'sleeper' });
  await loops.deploy(
    ({ bus }: UnitContext) => {
      bus.consumer('spin', () => {
        const endMs = performance.now() + 6000;
        while (performance.now() < endMs);
      });
    },
    { name: 'spinner' },
  );
  loops.bus.send('sleep', 6000);
  const [inModule] = await waitFor(() => blocks.length > 0 && blocks.splice(0), 20_000);
  assert.deepEqual(Object(inModule).units, ['sleeper']);
  assert.match(Object(inModule).place, /^file:.*\/sleeper\.js:\d+:\d+$/);
  await loops.bus.request('slept', 0);
  blocks.length = 0;
  loops.bus.send('spin', 0);
  const [inValue] = await waitFor(() => blocks.length > 0 && blocks, 20_000);
  assert.deepEqual(Object(inValue).units, ['sleeper', 'spinner']);
  assert.match(Object(inValue).place, /:\d+:\d+$/);
  await loops.bus.request('slept', 0);
});

test('loops leave when the program that started them is killed', async (t) => {
  // A reply of a program that is gone must not be waited for for 30 s.
  const program = `import { Loops } from ${JSON.stringify(library)};
    const loops = new Loops({ processes: 2, loops: 2, drainTimeoutMs: 600_000 });
    await loops.deploy(() => {}, { instances: 4 });
    console.log('deployed');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const pids = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
  assert.ok(pids.length >= 2);
  t.after(() => {
    for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGKILL');
  });
  child.kill('SIGKILL');
  await waitFor(() => !pids.some(isRunning));
});

test('loops in threads join each other, and end, without a warning', { skip }, async () => {
  // Node warns of descriptors that a thread closes without having opened them.
  const program = `import { Loops } from ${JSON.stringify(library)};
    const loops = new Loops({ processes: 2, loops: 2 });
    await loops.deploy(() => {}, { instances: 4 });
    await loops.close();`;
  const args = ['--input-type=module', '-e', program];
  const { stderr } = await promisify(execFile)(process.execPath, args);
  assert.equal(stderr, '');
});
