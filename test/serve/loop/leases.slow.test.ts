// Two pools over the same shared workers, without a server around them: what one does in the moment in
// which it hurts the other most.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { nativeBinding } from '../../../src/native.js';
import { Pool } from '../../../src/pool/pool.js';
import { Leases } from '../../../src/serve/loop/leases.js';
import type { Envelope, FromLoop } from '../../../src/serve/protocol.js';
import { closeFds } from '../../../src/serve/shared/dup-fds.js';
import { localLink } from '../../../src/serve/shared/link.js';
import { Workers } from '../../../src/serve/supervisor/shared-workers.js';
import { type SharedLease, useSharedWorkers } from '../../../src/worker/index.js';
import { openDescriptors, waitFor, withDeadline } from '../../support/index.js';

// Descriptors are counted here, and an agent opens one at its own time.
process.env['MANYCORE_AGENT'] = '0';

const skip = nativeBinding() === undefined && 'shared workers need the native binary';

function spin(ms: number): number {
  const end = performance.now() + ms;
  while (performance.now() < end);
  return process.pid;
}

/** A loop with its pool. */
interface Loop {
  readonly pool: Pool;
  /** Ends like a terminated thread: without further messages. */
  readonly vanish: () => void;
}

function openWorkers(t: TestContext, count: number): { workers: Workers; openLoop: () => Loop } {
  const workers = new Workers(count, {
    owner: undefined,
    drainTimeoutMs: 1000,
    maxRssBytes: Infinity,
  });
  const pools: Pool[] = [];
  const vanished: Pool[] = [];
  /** Messages for loops that have vanished: their pools still exist. */
  const undelivered: (() => void)[] = [];
  t.after(async () => {
    await Promise.all(pools.map((pool) => pool.destroy()));
    await workers.close();
    for (const deliver of undelivered) deliver();
    await Promise.all(vanished.map((pool) => pool.destroy()));
  });
  let lastLoop = 0;
  const openLoop = (): Loop => {
    lastLoop += 1;
    const tenant = { process, loop: lastLoop };
    let isThere = true;
    const leases: Leases = new Leases({
      count,
      activeLeasesFd: workers.activeLeasesFd,
      up: { post: (envelope) => up.post(envelope) },
    });
    const up = localLink<FromLoop>(({ id, body, fds }) => {
      const { type } = Object(body);
      if (type === 'release') workers.release(tenant, id);
      if (type !== 'acquire') return;
      workers.acquire(tenant, id, fds, {
        onGranted: (lease) => isThere && leases.receive({ type: 'granted', id, lease, fds: [] }),
        onEnded: ({ exitCode, signal, error }) => {
          const ended = { exitCode, signal, message: error?.message };
          const deliver = () => leases.receive({ type: 'leaseEnded', id, ...ended, fds: [] });
          if (isThere) deliver();
          else undelivered.push(deliver);
        },
      });
      closeFds(fds);
    });
    useSharedWorkers(leases);
    const pool = Pool.ofProgram();
    const vanish = (): void => {
      isThere = false;
      vanished.push(...pools.splice(pools.indexOf(pool), 1));
      void workers.tenantEnded(process, tenant.loop);
    };
    pools.push(pool);
    return { pool, vanish };
  };
  return { workers, openLoop };
}

test('pools use the same worker, one task after the other', { skip }, async (t) => {
  const { openLoop } = openWorkers(t, 1);
  const [one, other] = [openLoop(), openLoop()];
  const pids = await Promise.all(
    Array.from({ length: 20 }, (_, at) => (at % 2 ? one : other).pool.run(spin, 2)),
  );
  assert.equal(new Set(pids).size, 1);
  assert.notEqual(pids[0], process.pid);
});

test('a task with a timeout has all of its time, however long others take', { skip }, async (t) => {
  const { openLoop } = openWorkers(t, 1);
  const [one, other] = [openLoop(), openLoop()];
  await Promise.all([one.pool.run(spin, 0), other.pool.run(spin, 0)]);
  const pids = new Set<number>();
  // Sent in the same moment: the one or the other is first.
  for (let round = 0; round < 4; round += 1) {
    const long = one.pool.run(spin, 900);
    const timed = other.pool.with({ timeoutMs: 1000 }).run(spin, 200);
    for (const pid of await Promise.all([long, timed])) pids.add(pid);
  }
  assert.equal(pids.size, 1); // it was not killed
});

test('a loop that vanishes with a task ahead leaves the worker to the others', {
  skip,
}, async (t) => {
  const { openLoop } = openWorkers(t, 1);
  const [one, other] = [openLoop(), openLoop()];
  await Promise.all([one.pool.run(spin, 0), other.pool.run(spin, 0)]);
  const long = one.pool.run(spin, 2500);
  void other.pool.run(spin, Infinity).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 100)); // both are in the worker
  other.vanish();
  await long;
  const next = one.pool.run(spin, 0);
  await withDeadline(next, 30_000, 'the worker is free');
});

test('a lease that cannot be granted ends once, and leaves no descriptor', { skip }, async (t) => {
  const { workers, openLoop } = openWorkers(t, 1);
  const { pool } = openLoop();
  await pool.run(spin, 0);
  const before = openDescriptors().length;
  const events: unknown[] = [];
  for (let request = 100; request < 103; request += 1) {
    workers.acquire({ process, loop: 100 }, request, [-1, -1, -1, -1], {
      onGranted: () => events.push('granted'),
      onEnded: ({ error }) => events.push(error?.message),
    });
  }
  assert.equal(events.length, 3);
  assert.ok(
    events.every((message) => /descriptor/.test(String(message))),
    String(events),
  );
  await waitFor(() => openDescriptors().length <= before);
  workers.release({ process, loop: 1 }, 7); // no such lease
  assert.equal(typeof (await pool.run(spin, 0)), 'number');
});

test('a request that comes back, or that nobody answers any more, ends its lease', {
  skip,
}, async (t) => {
  const workers = new Workers(1, { owner: undefined, drainTimeoutMs: 1, maxRssBytes: Infinity });
  t.after(() => workers.close());
  const posted: Envelope[] = [];
  const up = { post: (envelope: Envelope) => void posted.push(envelope) };
  const leases = new Leases({ count: 3, activeLeasesFd: workers.activeLeasesFd, up });
  const ends: unknown[] = [];
  const acquire = (name: string): SharedLease => {
    const lease = leases.acquire([0, 0, 0, 0]);
    void lease.exited.then(({ error }) => ends.push([name, error?.message]));
    return lease;
  };
  acquire('returned');
  leases.receive({
    type: 'returned',
    id: 1,
    fds: [],
    message: 'no room',
    body: { type: 'acquire' },
  });
  await waitFor(() => ends.length > 0);
  assert.deepEqual(ends, [['returned', 'no room']]);
  acquire('pending');
  acquire('granted').grant({ worker: 0, pid: process.pid, lease: 9 });
  acquire('dead').grant({ worker: 0, pid: 2 ** 22 + 1, lease: 10 }); // above the largest process id
  assert.equal(leases.isOver, false);
  leases.orphaned();
  assert.equal(leases.isOver, true);
  await waitFor(() => ends.length > 2);
  assert.deepEqual(ends.slice(1), [
    ['pending', undefined],
    ['dead', undefined],
  ]);
  for (const { fds = [] } of posted) closeFds(fds);
});

test('a worker that tasks end over and over is started again', {
  skip,
}, async (t) => {
  const { openLoop } = openWorkers(t, 1);
  const { pool } = openLoop();
  for (let round = 0; round < 3; round += 1) {
    await assert.rejects(
      pool.run(() => process.exit(3)),
      { code: 'WORKER_EXITED' },
    );
  }
  assert.equal(typeof (await pool.run(spin, 0)), 'number');
});
