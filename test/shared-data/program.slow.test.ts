// Shared data of one program: its processes compete, and one that is killed frees its lock.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Loops, Pool, sharedCounter, sharedLock, sharedMap } from '../../src/public.js';
import { joinBus, skip as skipNats, startServer } from '../cluster/server.js';
import { killOne } from '../support/index.js';
import { skip, startLoops } from '../units/loops.js';

const manycore = new URL('../../src/public.js', import.meta.url).href;

test('workers of a program compete, and one that is killed frees its lock at once', {
  skip,
}, async (t) => {
  const pool = new Pool({ size: 2, worker: 'process' });
  t.after(() => pool.close());
  const work = async (module: string): Promise<number> => {
    const { sharedCounter, sharedMap } = await import(module);
    let firsts = 0;
    for (let at = 0; at < 50; at += 1) {
      await sharedCounter('hits').add(2);
      if ((await sharedMap('firsts').setIfAbsent(`${at}`, 1)) !== undefined) firsts += 1;
    }
    return firsts;
  };
  const firsts = await Promise.all([pool.run(work, manycore), pool.run(work, manycore)]);
  assert.equal(await sharedCounter('hits').get(), 200);
  assert.equal(await sharedMap('firsts').size(), 50);
  assert.equal(firsts[0] + firsts[1], 50);

  const hold = async (module: string): Promise<void> => {
    const { sharedLock, sharedMap } = await import(module);
    const { token } = await sharedLock('l').acquire({ leaseMs: 3_600_000 });
    await sharedMap('owners').set('l', { token, pid: process.pid });
    await new Promise(() => {});
  };
  const held = assert.rejects(pool.run(hold, manycore), { code: 'WORKER_EXITED' });
  for await (const change of sharedMap<{ pid: number; token: number }>('owners').watch()) {
    if (change.type !== 'set') continue;
    killOne(change.value.pid, 'SIGKILL');
    const lease = await sharedLock('l').acquire({ timeoutMs: 30_000 });
    assert.ok(lease.token > change.value.token);
    await lease.release();
    break;
  }
  await held;
});

test('a watch that is far behind still has each last value and deletion', { skip }, async () => {
  const map = sharedMap<number>('behind');
  for (let at = 0; at < 3; at += 1) await map.set(`${at}`, at);
  const changes = map.watch()[Symbol.asyncIterator]();
  for (let at = 0; at < 3; at += 1) await changes.next();
  await map.delete('1');
  for (let at = 0; at < 1500; at += 1) await map.set('2', at);
  const { value: deleted } = await changes.next();
  assert.deepEqual([deleted.type, deleted.key], ['delete', '1']);
  const { value: last } = await changes.next();
  assert.deepEqual([last.key, last.value], ['2', 1499]);
  await changes.return?.();
});

/** Deploys a unit that puts its process into the map `places`. */
async function deployPlaced(loops: Loops): Promise<void> {
  await loops.deploy(
    async (_: unknown, module = manycore) => {
      const { sharedMap } = await import(module);
      await sharedMap('places').set(`${process.pid}`, true);
    },
    { instances: 2 },
  );
}

test('loops share with their program, in a cluster with all its programs', {
  skip: skip || skipNats,
}, async (t) => {
  await deployPlaced(startLoops(t));
  assert.equal(await sharedMap('places').size(), 2);

  const server = await startServer(t, ['-js']);
  const { cluster } = await joinBus(t, server);
  await deployPlaced(startLoops(t, { cluster: { nats: server.url } }));
  assert.equal(await cluster.map('places').size(), 2);
  assert.equal(await sharedMap('places').size(), 2);
});
