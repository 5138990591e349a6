// Monitors of deployments and of consumers in other processes and threads, and of a unit that monitors others.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEnd, Loops, UnitContext } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

const longMs = 60_000;

/** Consumes `a`, and ends its process or thread on `kill`. */
function unit({ bus, instance }: UnitContext): void {
  bus.consumer('a', () => {});
  bus.consumer(`kill ${instance}`, () => process.kill(process.pid, 'SIGKILL'));
  bus.consumer(`exit ${instance}`, () => process.exit(3));
}

/** Monitors a child and the consumers of `a`, and publishes what it gets. */
async function watcher({ bus, deploy, instance }: UnitContext): Promise<void> {
  const child = await deploy(
    (context: UnitContext) => {
      context.bus.consumer('child', () => {});
      context.bus.consumer('exit child', () => process.exit(3));
    },
    { name: 'child', on: 'blocking' },
  );
  bus.monitor(child, ({ reason }) => bus.publish('seen', `${instance} child ${reason}`));
  bus.monitor('child', ({ reason }) => bus.publish('seen', `${instance} consumer ${reason}`));
  bus.consumer('scale child', () => void child.scale(0));
  bus.consumer('end child', async (message) => {
    await child.undeploy();
    bus.monitor(child, ({ reason }) => bus.publish('seen', `${instance} ended ${reason}`));
    message.reply(0);
  });
}

async function allRun(loops: Loops): Promise<boolean> {
  const all = await Promise.all(loops.deployments.map((each) => each.status()));
  return all.flat().every(({ state }) => state === 'running');
}

for (const on of ['loop', 'blocking'] as const) {
  test(`each end of an instance on: ${on} is one notice, with its reason`, {
    timeout: longMs,
  }, async (t) => {
    const loops = startLoops(t);
    const ends: InstanceEnd[] = [];
    const reasons: string[] = [];
    const deployment = await loops.deploy(unit, { instances: 2, on, restarts: { max: 1 } });
    const note = (end: InstanceEnd): void => void ends.push(end);
    loops.bus.monitor(deployment, note);
    loops.bus.monitor('a', ({ reason }) => void reasons.push(reason));
    const [first] = loops.loops;
    assert.ok(first);
    for (const { loop } of loops.loops) await deployment.move(0, loop);
    loops.bus.send(on === 'loop' ? 'kill 0' : 'exit 0', 0);
    await waitFor(() => ends.length >= 1 && reasons.length === ends.length);
    await waitFor(() => allRun(loops));
    const lost = ends.splice(0).map(({ reason, why }) => [reason, /SIGKILL|exit/.test(why)]);
    for (const each of lost) assert.deepEqual(each, ['lost', true]);
    assert.deepEqual(reasons.splice(0), Array(lost.length).fill('lost'));
    await deployment.scale(1);
    assert.deepEqual(await deployment.status().then((all) => all.length), 1);
    await waitFor(() => ends.length === 1 && reasons.length === 1);
    const [scaled] = ends;
    assert.deepEqual([scaled?.instance, scaled?.reason, reasons], [1, 'undeployed', ['closed']]);
    for (let at = 0; at < 4 && ends.at(-1)?.reason !== 'failed'; at += 1) {
      await waitFor(() => allRun(loops));
      const before = ends.length;
      loops.bus.send('exit 0', 0);
      await waitFor(() => ends.length > before);
      await waitFor(async () => ends.at(-1)?.reason === 'failed' || (await allRun(loops)));
    }
    const { id, name } = deployment;
    const last = ends.at(-1);
    assert.deepEqual([last?.deployment, last?.name, last?.instance], [id, name, 0]);
    assert.match(String(last?.why), /^instance 0 of unit was given up after too many failures/);
    await deployment.undeploy();
    loops.bus.monitor(deployment, note);
    await waitFor(() => ends.at(-1)?.reason === 'none');
    const known = ends.map(({ reason }) => reason).slice(-3);
    assert.deepEqual(known, ['lost', 'failed', 'none']);
  });
}

test('a unit monitors what it deploys, on a loop and in a thread', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t);
  const seen = new Set<unknown>();
  loops.bus.consumer('seen', ({ body }) => void seen.add(body));
  for (const on of ['loop', 'blocking'] as const) {
    const deployment = await loops.deploy(watcher, { on });
    loops.bus.send('exit child', 0);
    await waitFor(() => seen.has('0 child lost') && seen.has('0 consumer lost'));
    await waitFor(() => allRun(loops));
    loops.bus.send('scale child', 0);
    await waitFor(() => seen.has('0 child undeployed') && seen.has('0 consumer closed'));
    await loops.bus.request('end child', 0);
    await waitFor(() => seen.has('0 ended none'));
    await deployment.undeploy();
    seen.clear();
  }
});
