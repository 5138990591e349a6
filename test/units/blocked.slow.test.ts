// Loops of units that do not come back from a callback: others get their messages, and they are replaced.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { UnitContext } from '../../src/public.js';
import { isRunning, killOne, waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

const longMs = 90_000;

/** Spins on request for so many ms, or until a file exists, and replies with its number. */
function spinner({ bus, instance }: UnitContext): void {
  bus.consumer<number>(`spin ${instance}`, ({ body }) => {
    const endMs = performance.now() + body;
    while (performance.now() < endMs);
  });
  bus.consumer<string>(`spin until ${instance}`, ({ body }) => {
    while (!existsSync(body));
  });
  bus.consumer('who', (message) => message.reply(instance));
}

function noteBlocks(t: TestContext): unknown[] {
  const blocks: unknown[] = [];
  const note = (message: unknown): void => void blocks.push(message);
  subscribe('manycore:unit:blocked', note);
  t.after(() => unsubscribe('manycore:unit:blocked', note));
  return blocks;
}

test('a blocked loop has no turn until it is back', { timeout: longMs }, async (t) => {
  const blocks = noteBlocks(t);
  const folder = mkdtempSync(join(tmpdir(), 'manycore-blocked-'));
  const end = join(folder, 'end');
  t.after(() => writeFileSync(end, '')); // the loops close after that
  const loops = startLoops(t, { blockedTimeoutMs: longMs });
  t.after(() => rmSync(folder, { recursive: true }));
  await loops.deploy(spinner, { instances: 2 });
  await loops.deploy(
    ({ bus }: UnitContext) => {
      bus.consumer('relay', async (message) => message.reply((await bus.request('who', 0)).body));
    },
    { instances: 2 },
  );
  const who = async (address: string): Promise<unknown> =>
    (await loops.bus.request(address, 0, { timeoutMs: 60_000, local: 'prefer' })).body;
  loops.bus.send('spin until 0', end);
  await waitFor(() => blocks.length > 0);
  for (let at = 0; at < 10; at += 1) {
    assert.equal(await who('who'), 1);
    assert.equal(await who('relay'), 1);
  }
  writeFileSync(end, '');
  await waitFor(async () => (await who('who')) === 0, 30_000);
});

test('a loop that takes no announcement in has its turn again', { timeout: longMs }, async (t) => {
  const blocks = noteBlocks(t);
  const loops = startLoops(t, { blockedTimeoutMs: 8000 });
  await loops.deploy(spinner, { instances: 2 });
  loops.bus.send('spin 0', 6000);
  const full = (): boolean => {
    try {
      for (let at = 0; at < 1000; at += 1) loops.bus.publish('spin 0', 0);
      return false;
    } catch {
      return true;
    }
  };
  const fill = new Uint8Array(65_536);
  await waitFor(() => {
    if (!full()) for (let at = 0; at < 32; at += 1) loops.bus.publish('spin 0', fill);
    return blocks.length > 0;
  }, 20_000);
  const who = async (): Promise<unknown> =>
    (await loops.bus.request('who', 0, { timeoutMs: 60_000 })).body;
  await waitFor(async () => (await who()) === 0, 30_000);
});

for (const perProcess of [1, 2]) {
  const title = `a unit that blocks for ever is replaced, loops per process: ${perProcess}`;
  test(title, { timeout: longMs }, async (t) => {
    // A drain would take longer than the test.
    const loops = startLoops(t, {
      loops: perProcess,
      blockedTimeoutMs: 3000,
      drainTimeoutMs: 600_000,
    });
    const deployment = await loops.deploy(spinner, { instances: 2 * perProcess });
    const [{ pid } = { pid: undefined }] = await deployment.status();
    const held = loops.bus.request('spin 0', Infinity, { timeoutMs: 80_000 });
    await assert.rejects(held, { code: 'BUS_CONSUMER_LOST' });
    await waitFor(async () => {
      const status = await deployment.status();
      return status.every((each) => each.state === 'running' && each.pid !== pid);
    }, 30_000);
    for (let at = 0; at < 4; at += 1) await loops.bus.request('who', 0);
  });
}

test('a stopped process has no turn until it goes on, and is replaced if it does not', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t, { blockedTimeoutMs: 12_000, drainTimeoutMs: 600_000 });
  const deployment = await loops.deploy(spinner, { instances: 2 });
  const [{ pid } = { pid: undefined }] = await deployment.status();
  assert.ok(pid !== undefined);
  const askAll = async (): Promise<unknown[]> => {
    const asked = Array.from({ length: 4 }, () => loops.bus.request('who', 0, { timeoutMs: 1000 }));
    const answers = await Promise.allSettled(asked);
    return answers.map((each) => (each.status === 'fulfilled' ? each.value.body : 'none'));
  };
  const othersAnswer = async (): Promise<boolean> => {
    const answers = await askAll();
    return answers.every((each) => each === 1);
  };
  killOne(pid, 'SIGSTOP');
  await waitFor(othersAnswer);
  assert.ok(isRunning(pid));
  killOne(pid, 'SIGCONT');
  await waitFor(async () => (await askAll()).includes(0));

  killOne(pid, 'SIGSTOP');
  const held = Array.from({ length: 2 }, () =>
    assert.rejects(loops.bus.request('spin 0', 0, { timeoutMs: 60_000 }), {
      code: 'BUS_CONSUMER_LOST',
    }),
  );
  await Promise.all(held);
  await waitFor(async () => {
    const status = await deployment.status();
    return status.every((each) => each.state === 'running' && each.pid !== pid);
  }, 30_000);
  assert.equal(isRunning(pid), false);
  await waitFor(async () => (await askAll()).includes(0));
});
