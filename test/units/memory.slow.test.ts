// Memory of shared() and large buffers on the bus, between loops of several processes and the program.

import assert from 'node:assert/strict';
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { type Loops, shared } from '../../src/public.js';
import { collect, untilCollected } from '../channels/shm-harness.js';
import { openDescriptors, waitFor } from '../support/index.js';
import type { Question } from './apps/memory.js';
import { appUrl, skip, startLoops } from './loops.js';

// Descriptors are counted here, and an agent opens one at its own time.
process.env['MANYCORE_AGENT'] = '0';

const mib = 2 ** 20;
/** More than a loop keeps of freed memory: it goes back to the system at once. */
const largeBytes = 130 * mib;

/** Starts an instance in each loop. */
async function startMemory(t: TestContext, processes: number, loopsEach: number) {
  await untilCollected(() => arenaBytes() === 0, 'the memory of the test before is free');
  const loops = startLoops(t, { processes, loops: loopsEach });
  const count = processes * loopsEach;
  await loops.deploy(appUrl('memory'), { instances: count });
  const ask = async (instance: number, question: Question): Promise<unknown> =>
    (await loops.bus.request(`memory ${instance}`, question)).body;
  const collectAll = async (): Promise<void> => {
    for (let at = 0; at < count; at += 1) await loops.bus.request(`collect ${at}`, 0);
  };
  return { loops, ask, collectAll, count };
}

/** Ends the process of an instance; resolves when others have everything that was in it. */
async function killLoopOf(loops: Loops, instance: number): Promise<void> {
  const [deployment] = loops.deployments;
  assert.ok(deployment);
  const pid = (await deployment.status())[instance]?.pid;
  assert.ok(pid);
  process.kill(pid, 'SIGKILL');
  await waitFor(async () => {
    const status = await deployment.status();
    return status.every((each) => each.state === 'running' && each.pid !== pid);
  });
}

/** Returns the bytes of all blocks of all loops. */
function arenaBytes(): number {
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      const path = `/proc/self/fd/${fd}`;
      if (readlinkSync(path).includes('manycore-arena')) return statSync(path).blocks * 512;
    } catch {} // the folder itself
  }
  return 0;
}

type Memory = Awaited<ReturnType<typeof startMemory>>;

/** Checks that each sees what the other writes. */
async function checkSame({ ask }: Memory, a: number, b: number, name: string): Promise<void> {
  await ask(a, { type: 'write', name, value: 7 });
  assert.equal(await ask(b, { type: 'read', name }), 7, `${b} sees what ${a} writes`);
  await ask(b, { type: 'write', name, value: 8 });
  assert.equal(await ask(a, { type: 'read', name }), 8, `${a} sees what ${b} writes`);
}

async function checkAllPairs(memory: Memory, sizeBytes: number): Promise<void> {
  const { ask, count } = memory;
  for (let a = 0; a < count; a += 1) {
    await ask(a, { type: 'make', name: 'own', sizeBytes });
    const given = await ask(a, { type: 'give back', name: 'own' });
    assert.ok(given instanceof Uint8Array);
    given.fill(3);
    assert.equal(await ask(a, { type: 'read', name: 'own' }), 3, 'the program writes');
    for (let b = 0; b < count; b += 1) {
      if (a === b) continue;
      await ask(a, { type: 'give', name: 'own', to: b });
      await checkSame(memory, a, b, 'own');
    }
    assert.ok(
      given.every((byte) => byte === 8),
      'the program sees',
    );
    const mine = shared(sizeBytes);
    await ask(a, { type: 'keep', name: 'mine', bytes: new Map([['bytes', mine]]) });
    mine.fill(4);
    assert.equal(await ask(a, { type: 'read', name: 'mine' }), 4);
    await ask(a, { type: 'write', name: 'mine', value: 5 });
    assert.ok(mine.every((byte) => byte === 5));
    assert.equal(
      await ask(a, { type: 'give back', name: 'mine' }).then((back) => bufferOf(back)),
      mine.buffer,
    );
  }
}

function bufferOf(bytes: unknown): ArrayBufferLike {
  assert.ok(bytes instanceof Uint8Array);
  return bytes.buffer;
}

test('memory of shared() is the same between any two loops and the program, in any order', {
  skip,
}, async (t) => {
  const memory = await startMemory(t, 2, 2);
  await checkAllPairs(memory, 1000);
  await killLoopOf(memory.loops, 0);
  await checkAllPairs(memory, 100_000);
});

test('memory of shared() is the same in the sender’s own loop', { skip }, async (t) => {
  const { ask } = await startMemory(t, 1, 1);
  await ask(0, { type: 'make', name: 'own', sizeBytes: 1000 });
  const before = await ask(0, { type: 'give back', name: 'own' });
  await ask(0, { type: 'give', name: 'own', to: 0 }); // keeps what came
  await ask(0, { type: 'write', name: 'own', value: 6 });
  assert.ok(before instanceof Uint8Array && before.every((byte) => byte === 6));
});

test('memory passes on to workers and back, and from workers to other loops', {
  skip,
}, async (t) => {
  const memory = await startMemory(t, 2, 1);
  const { ask } = memory;
  await ask(0, { type: 'make', name: 'own', sizeBytes: 100_000 });
  await ask(0, { type: 'give', name: 'own', to: 1 });
  await ask(1, { type: 'fill in worker', name: 'own', value: 9 });
  assert.equal(await ask(0, { type: 'read', name: 'own' }), 9);
  await ask(1, { type: 'make in worker', name: 'from worker', sizeBytes: 100_000 });
  await ask(1, { type: 'give', name: 'from worker', to: 0 });
  assert.equal(await ask(0, { type: 'read', name: 'from worker' }), 5);
  await checkSame(memory, 0, 1, 'from worker');
  await ask(0, { type: 'fill in worker', name: 'from worker', value: 6 });
  assert.equal(await ask(1, { type: 'read', name: 'from worker' }), 6);
});

test('a large buffer is copied once, into memory that the receiver reads in place', {
  skip,
}, async (t) => {
  const { loops, ask } = await startMemory(t, 2, 1);
  const sizeBytes = 64 * mib;
  const ownBefore = Number(await ask(0, { type: 'own memory' }));
  const arenaBefore = arenaBytes();
  const body = Buffer.alloc(sizeBytes, 2);
  await ask(0, { type: 'keep', name: 'large', bytes: body });
  body.fill(3); // the sender's, as before
  assert.ok(arenaBytes() - arenaBefore < 1.1 * sizeBytes, 'there is one copy');
  assert.equal(await ask(0, { type: 'read', name: 'large' }), 2);
  const grownKib = Number(await ask(0, { type: 'own memory' })) - ownBefore;
  assert.ok(grownKib * 1024 < sizeBytes / 4, `${grownKib} KiB more are the receiver's own`);
  await loops.close();
});

test('the memory of many large messages in all directions is given back', { skip }, async (t) => {
  const { loops, ask, count } = await startMemory(t, 3, 1);
  const sizeBytes = 8 * mib;
  const floods = Array.from({ length: count }, (_, from) =>
    loops.bus.request(
      `flood ${from}`,
      { to: (from + 1) % count, count: 100, sizeBytes },
      { timeoutMs: 60_000 },
    ),
  );
  const body = new Uint8Array(sizeBytes);
  for (let at = 0; at < 100; at += 1) {
    await loops.bus.request('size', body);
    await ask(at % count, { type: 'makePlain', name: 'plain', sizeBytes });
    await ask(at % count, { type: 'give back', name: 'plain' });
  }
  await Promise.all(floods);
  const used = Math.round(arenaBytes() / mib);
  assert.ok(used < 1600, `${used} MiB of 6,400 that went through are still there`);
});

test('memory from or through a killed loop is right, and free once it is dropped', {
  skip,
}, async (t) => {
  const { loops, ask, collectAll } = await startMemory(t, 4, 1);
  const before = arenaBytes();
  const used = (): number => arenaBytes() - before;
  await ask(0, { type: 'make', name: 'own', sizeBytes: largeBytes });
  await ask(0, { type: 'write', name: 'own', value: 7 });
  await ask(0, { type: 'give', name: 'own', to: 1 });
  await ask(1, { type: 'give', name: 'own', to: 2 });
  await ask(0, { type: 'drop', name: 'own' });
  await killLoopOf(loops, 1); // 2 has it through that one
  await collectAll();
  await ask(0, { type: 'make', name: 'next', sizeBytes: largeBytes });
  await ask(0, { type: 'write', name: 'next', value: 1 });
  assert.equal(await ask(2, { type: 'read', name: 'own' }), 7);
  await killLoopOf(loops, 0); // the memory is its own
  await collectAll();
  assert.equal(await ask(2, { type: 'read', name: 'own' }), 7);
  await ask(2, { type: 'give', name: 'own', to: 3 });
  await ask(2, { type: 'drop', name: 'own' });
  await collectAll();
  assert.equal(await ask(3, { type: 'read', name: 'own' }), 7);
  assert.ok(used() >= largeBytes);
  await ask(3, { type: 'drop', name: 'own' });
  await waitFor(async () => {
    await collectAll();
    return used() < mib;
  });
});

test('memory that a killed loop held goes back to its owner', { skip }, async (t) => {
  const { loops, ask, collectAll } = await startMemory(t, 2, 1);
  const before = arenaBytes();
  await ask(0, { type: 'make', name: 'own', sizeBytes: largeBytes });
  await ask(0, { type: 'give', name: 'own', to: 1 });
  await ask(0, { type: 'drop', name: 'own' });
  await collectAll();
  assert.ok(arenaBytes() - before >= largeBytes, 'it is held');
  await killLoopOf(loops, 1);
  await waitFor(() => arenaBytes() - before < mib);
  let mine: Buffer | undefined = shared(largeBytes);
  await ask(1, { type: 'keep', name: 'mine', bytes: mine });
  mine = undefined;
  await killLoopOf(loops, 1);
  await untilCollected(() => arenaBytes() - before < mib, 'the program has it back');
});

test('a task of a loop that was killed writes into no memory that was taken since', {
  skip,
}, async (t) => {
  const { loops, ask, collectAll } = await startMemory(t, 2, 1);
  const sizeBytes = mib;
  await ask(0, { type: 'make', name: 'own', sizeBytes });
  await ask(0, { type: 'give', name: 'own', to: 1 });
  await ask(1, { type: 'write in worker', name: 'own', value: 9 });
  await waitFor(async () => (await ask(0, { type: 'read', name: 'own' })) === 9);
  await ask(0, { type: 'drop', name: 'own' });
  await killLoopOf(loops, 1);
  await collectAll();
  for (let at = 0; at < 20; at += 1) {
    await ask(0, { type: 'make', name: `next ${at}`, sizeBytes });
    await ask(0, { type: 'write', name: `next ${at}`, value: 1 });
    for (let before = 0; before <= at; before += 1) {
      assert.equal(await ask(0, { type: 'read', name: `next ${before}` }), 1);
    }
  }
});

test('kill after kill leaves no memory and no descriptor', { skip }, async (t) => {
  const { loops, ask, collectAll } = await startMemory(t, 3, 1);
  const keptBytes = 4 * mib;
  const round = async (): Promise<void> => {
    await ask(0, { type: 'make', name: 'own', sizeBytes: keptBytes });
    await ask(0, { type: 'write', name: 'own', value: 1 });
    await ask(0, { type: 'give', name: 'own', to: 1 });
    await ask(1, { type: 'give', name: 'own', to: 2 });
    await ask(2, { type: 'keep', name: 'mine', bytes: shared(keptBytes) });
    await ask(1, { type: 'make in worker', name: 'from worker', sizeBytes: keptBytes });
    await ask(1, { type: 'give', name: 'from worker', to: 0 });
  };
  const settle = async (): Promise<void> => {
    for (const at of [0, 1, 2]) {
      for (const name of ['own', 'mine', 'from worker']) await ask(at, { type: 'drop', name });
    }
    await collectAll();
    collect();
  };
  await round();
  await settle();
  const descriptors = openDescriptors().length;
  for (let at = 0; at < 4; at += 1) {
    await round();
    await killLoopOf(loops, at % 3);
    await waitFor(async () => {
      await settle();
      // Each loop and worker keeps freed memory for its next blocks.
      return arenaBytes() <= 4 * keptBytes && openDescriptors().length <= descriptors;
    });
  }
});
