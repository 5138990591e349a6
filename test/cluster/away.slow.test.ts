// Calls while the NATS server is away: each settles within its limit, and what it began works once the server is
// back.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ConsumerEnd, Pool, type SharedMap } from '../../src/public.js';
import { withDeadline } from '../support/index.js';
import { skip as noBinary, startLoops } from '../units/loops.js';
import {
  answersOf,
  eventually,
  joinBus,
  skip as noServer,
  startServer,
  stranger,
} from './server.js';

const secret = 'nobody else knows this';
/** Limit of each call while the server is away, in ms: those of the calls are shorter. */
const limitMs = 30_000;
/** Limit of a watch, in ms: it is enough once the server is back. */
const watchMs = 5000;

/** The text of a unit that replies at the address of its configuration. */
const unitText = (
  version: number,
): string => `export default function start({ bus, config, loop }) {
  bus.consumer(config, (message) => message.reply([${version}, loop]));
}`;

async function firstOf(map: SharedMap): Promise<unknown> {
  for await (const change of map.watch()) return change;
  return undefined;
}

test('calls while the NATS server is away', { skip: noServer || noBinary }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-away-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [file, edited] = [join(folder, 'unit.mjs'), join(folder, 'edited.mjs')];
  for (const each of [file, edited]) writeFileSync(each, unitText(1));
  const server = await startServer(t, ['-js']);
  const joined = { cluster: { nats: server.url, secret } };
  const [loops, idle] = [startLoops(t, joined), startLoops(t)];
  await idle.join(joined.cluster);
  const [here, far] = [await joinBus(t, server, { secret }), await joinBus(t, server, { secret })];
  const moved = await loops.deploy(file, { config: 'moved' });
  const replaced = await loops.deploy(edited, { config: 'replaced' });
  const removed = await loops.deploy(file, { config: 'removed' });
  const grown = await loops.deploy(file, { config: 'grown' });
  const shrunk = await loops.deploy(file, { config: 'shrunk', instances: 2 });
  const group = await loops.deployAll([{ unit: file, config: 'left' }]);
  const unit = (config: string) => ({ unit: file, config });
  const [{ loop: from } = { loop: 0 }] = await moved.status();
  const to = loops.loops.find(({ loop }) => loop !== from)?.loop ?? assert.fail('one loop');
  const service = { answer: () => 42 };
  const micro = (name: string) => ({ micro: { name, version: '1.0.0' } });
  const early = here.bus.service('early', service, micro('early'));
  const stays = far.bus.consumer('stays', () => {});
  await far.bus.drained();
  writeFileSync(edited, unitText(2));

  await server.kill();
  const ends: ConsumerEnd[] = [];
  const reasons = (of: string) => ends.flatMap((end) => (end.address === of ? [end.reason] : []));
  for (const address of ['stays', 'nobody']) {
    const monitor = here.bus.monitor(address, (end) => void ends.push(end));
    t.after(() => monitor.close());
  }
  const limited = here.cluster.map('limited', { timeoutMs: watchMs });
  const patient = firstOf(here.cluster.map('patient', { timeoutMs: 120_000 }));
  patient.catch(() => {});
  const calls: Readonly<Record<string, () => unknown>> = {
    deploy: () => loops.deploy(file, { config: 'deployed' }),
    'deploy with threads': () => loops.deploy(file, { config: 'blocking', on: 'blocking' }),
    'deploy on loops that start': () => idle.deploy(file, { config: 'idle' }),
    move: () => moved.move(0, to),
    redeploy: () => replaced.redeploy(),
    undeploy: () => removed.undeploy(),
    'scale up': () => grown.scale(3),
    'scale to nothing': () => shrunk.scale(0),
    'deploy a group': () => loops.deployAll([unit('first'), unit('second')]),
    'undeploy a group': () => group.undeploy(),
    lendWorkers: () => here.cluster.lendWorkers(1),
    'lendWorkers for durable tasks': () => here.cluster.lendWorkers(1, { durable: true }),
    'a service opens': () => here.bus.service('late', service, micro('late')),
    'a service closes': () => early.close(),
    'the first watch of a map': () =>
      assert.rejects(firstOf(limited), {
        code: 'SHARED_DATA_TIMED_OUT',
        message: `a watch in the bucket manycore-map-limited took more than ${watchMs} ms: the NATS server is away or slow`,
      }),
  };
  const settled = Object.entries(calls).map(([name, call]) =>
    withDeadline((async () => await call())(), limitMs, name),
  );
  await Promise.all(settled);
  assert.deepEqual(ends, []);

  await server.restart();
  const answerOf = async (address: string): Promise<readonly unknown[]> => {
    const { body } = await far.bus.request<unknown[]>(address, 0, { timeoutMs: 1000 });
    return body;
  };
  for (const address of ['deployed', 'blocking', 'idle', 'grown', 'first', 'second']) {
    await eventually(async () => assert.equal((await answerOf(address))[0], 1));
  }
  await eventually(async () => assert.deepEqual(await answerOf('moved'), [1, to]));
  await eventually(async () => assert.equal((await answerOf('replaced'))[0], 2));
  assert.equal((await grown.status()).filter(({ state }) => state === 'running').length, 3);
  for (const address of ['removed', 'shrunk', 'left']) {
    await eventually(() => assert.rejects(answerOf(address), { code: 'BUS_NO_HANDLERS' }));
  }
  const tool = await stranger(t, server.url);
  await eventually(async () => {
    assert.equal((await answersOf(tool, '$SRV.PING.late')).length, 1);
    assert.equal((await answersOf(tool, '$SRV.PING.early')).length, 0);
  });
  assert.equal(await far.bus.proxy<typeof service>('late').answer(), 42);
  await using pool = new Pool({ cluster: far.cluster });
  assert.equal(await pool.with({ durable: true }).run(() => 6 * 7), 42);
  assert.equal(await pool.run(() => 6 * 7), 42);
  await far.cluster.map('patient').set('key', 'value');
  assert.equal(Object(await patient).value, 'value');
  const again = firstOf(limited);
  await far.cluster.map('limited').set('key', 'other');
  assert.equal(Object(await again).value, 'other');
  await eventually(() => assert.deepEqual(reasons('nobody'), ['none']));
  stays.close();
  await eventually(() => assert.equal(reasons('stays').at(-1), 'lost'));
});
