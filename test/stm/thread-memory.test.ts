// Transactional memory without the native core: threads share it. All that variables and collections promise holds
// there, too; processes are refused.

import '../support/native-off.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getEnvironmentData, Worker } from 'node:worker_threads';
import { hasCode } from '../../src/errors.js';
import { atomically, named, stmStats, tmap, tvar } from '../../src/stm/index.js';
import { nameOfVariable } from '../../src/stm/tvar.js';
import { afterThreadEnds, beforeThreadEnds } from '../../src/worker/both/thread-space.js';
import {
  maxParticipants,
  participantWord,
  placeOf,
  threadSpace,
  threadWord,
} from '../../src/worker/index.js';
import { openPool } from '../pool/calls/ways.js';
import { programFolder, runNode } from '../pool/programs.js';
import './collections.test.js';
import './forged.test.js';
import './shared-collections.test.js';
import './transactions.test.js';
import './undone.test.js';
import './values.test.js';
import './when.test.js';
import './workers.test.js';

function memory(): Int32Array {
  const words = threadSpace();
  assert.ok(words);
  return words;
}

test('a process is refused, with the way out', async (t) => {
  const pool = openPool(t, { size: 1, worker: 'process' });
  const makers: readonly (() => unknown)[] = [
    () => tvar(1),
    () => tmap(),
    () => named('it', () => tvar(1)),
    () => atomically(() => 1),
  ];
  for (const make of makers) {
    await assert.rejects(pool.run(make), (error) => {
      assert.ok(hasCode(error, 'NATIVE_MISSING'), String(error));
      assert.match(String(error), /processes do not: new Pool\({ worker: 'thread' }\)/);
      return true;
    });
  }
  const variable = tvar(1);
  const received = pool.run((given: typeof variable) => given.peek(), variable);
  await assert.rejects(received, (error) => hasCode(error, 'NATIVE_MISSING'));
  // A process's threads are refused, too: they would share a memory with each other alone.
  const inner = pool.run(async () => {
    const { Pool } = await import('../../src/public.js');
    await using threads = new Pool({ size: 1, worker: 'thread' });
    return await threads.run(() => tvar(1).peek());
  });
  await assert.rejects(inner, (error) => hasCode(error, 'NATIVE_MISSING'));
});

test('all threads count, and those that end give their numbers back', async (t) => {
  const variable = tvar(0);
  const before = stmStats();
  for (let round = 0; round < 3; round += 1) {
    const pool = openPool(t, { size: 2, worker: 'thread' });
    await Promise.all(
      [1, 2].map(() => pool.run(() => atomically(() => variable.update((value) => value + 1)))),
    );
    await pool.destroy();
  }
  assert.equal(variable.peek(), 6);
  const after = stmStats();
  assert.equal(after.threads, before.threads);
  assert.ok(after.commits >= before.commits + 6);
});

test('a thread that a program starts by itself shares the memory, by names', async (t) => {
  const folder = programFolder(t, {
    'main.mjs': `
      import { Worker } from 'node:worker_threads';
      import { atomically, named, stmStats, tvar } from 'manycore/stm';
      const counter = named('counter', () => tvar(1));
      for (const way of ['end', 'exit', 'throw']) {
        const thread = new Worker('./thread.mjs', { argv: [way] });
        await new Promise((resolve) => thread.on('error', () => {}).once('exit', resolve));
      }
      console.log(counter.peek(), stmStats().threads);`,
    'thread.mjs': `
      import { atomically, named, tvar } from 'manycore/stm';
      const counter = named('counter', () => tvar(1));
      atomically(() => counter.update((value) => value * 2));
      if (process.argv[2] === 'exit') process.exit();
      if (process.argv[2] === 'throw') throw new Error('ends');`,
  });
  const { lines, stderr } = await runNode(folder, ['main.mjs']);
  assert.deepEqual(lines, ['8 1'], stderr);
});

test('a thread that holds its turn for good holds up others for a while, with its number', async () => {
  const [variable, words] = [tvar(1), memory()];
  Atomics.store(words, threadWord.turn, 100);
  try {
    assert.throws(
      () => atomically(() => variable.set(2)),
      ({ code, message }) => {
        assert.equal(code, 'STM_STUCK');
        assert.match(
          message,
          /^thread 99 has stopped or ended in the middle of a commit: end threads/,
        );
        return true;
      },
    );
    assert.equal(variable.peek(), 1);
  } finally {
    Atomics.store(words, threadWord.turn, 0);
  }
  atomically(() => variable.set(2));
  assert.equal(variable.peek(), 2);
});

test('a variable that a thread left locked is unusable, and no other one', () => {
  const [variable, other, words] = [tvar(5), tvar(1), memory()];
  const held = 1;
  const { at } = nameOfVariable(variable);
  const version = Atomics.exchange(words, at, held);
  assert.throws(() => variable.peek(), { code: 'STM_STUCK', message: /^a thread has stopped/ });
  assert.throws(
    () => atomically(() => variable.set(6)),
    (error) => hasCode(error, 'STM_STUCK'),
  );
  atomically(() => other.set(2));
  Atomics.store(words, at, version);
  assert.equal(variable.peek(), 5);
});

test('a thread is ended behind its turn, and takes none afterwards', async (t) => {
  const pool = openPool(t, { size: 1, worker: 'thread' });
  const steps = new Int32Array(new SharedArrayBuffer(12));
  const [begun, finished, later] = [0, 1, 2];
  const turn = pool.run(async (seen: Int32Array) => {
    const { threadId } = await import('node:worker_threads');
    const { endTurn, maxParticipants, placeOf, takeTurn, threadSpace } = await import(
      '../../src/worker/index.js'
    );
    const { atomically, tvar } = await import('../../src/stm/index.js');
    const [words, variable] = [threadSpace(), tvar(1)];
    if (words === undefined) return;
    takeTurn(words);
    Atomics.store(seen, 0, 1);
    Atomics.notify(seen, 0);
    for (const end = performance.now() + 100; performance.now() < end; );
    Atomics.store(seen, 1, 1);
    endTurn(words);
    const places = Array.from({ length: maxParticipants }, (_, number) => placeOf(number));
    while (!places.some((at) => Atomics.load(words, at) === -1 - threadId));
    atomically(() => variable.set(2));
    Atomics.store(seen, 2, 1);
  }, steps);
  const ends = assert.rejects(turn);
  await Atomics.waitAsync(steps, begun, 0).value;
  await pool.destroy();
  await ends;
  assert.equal(steps[finished], 1, 'it was ended in its turn');
  assert.equal(steps[later], 0, 'it took another turn');
});

test('a thread without a number is marked before it ends, and its mark ends with it', () => {
  const words = memory();
  const thread = 424_242;
  const marks = () =>
    Array.from({ length: maxParticipants }, (_, number) => placeOf(number)).filter(
      (at) => words[at + participantWord.thread] === -1 - thread,
    ).length;
  beforeThreadEnds(thread);
  beforeThreadEnds(thread);
  assert.equal(marks(), 1);
  afterThreadEnds(thread);
  assert.equal(marks(), 0);
});

test('the turn of a thread that has ended is free again, unless it was writing a commit', () => {
  const words = memory();
  const thread = 424_242;
  Atomics.store(words, threadWord.turn, thread + 1);
  Atomics.store(words, threadWord.committing, 1);
  afterThreadEnds(thread);
  assert.equal(Atomics.load(words, threadWord.turn), thread + 1);
  Atomics.store(words, threadWord.committing, 0);
  afterThreadEnds(thread);
  assert.equal(Atomics.load(words, threadWord.turn), 0);
  afterThreadEnds(thread);
});

test('one thread more than there can be is refused, and accepted when another one has left', async () => {
  const [kept, words] = [tvar(1), memory()];
  const program = `
    const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(new URL('../../src/stm/index.js', import.meta.url))}).then(({ tvar }) => {
      try { parentPort.postMessage(tvar(5).peek()); }
      catch ({ code, message }) { parentPort.postMessage([code, message]); }
    });`;
  const ask = () =>
    new Promise<unknown>((resolve, reject) => {
      const thread = new Worker(program, { eval: true });
      thread.once('message', resolve).once('error', reject);
    });
  const free = Array.from({ length: maxParticipants }, (_, number) => placeOf(number)).filter(
    (at) => words[at + participantWord.thread] === 0,
  );
  for (const at of free) words[at + participantWord.thread] = 1_000_000;
  const refused = await ask();
  for (const at of free) words[at + participantWord.thread] = 0;
  assert.deepEqual(refused, [
    'STM_CROWDED',
    '1024 threads make transactions already, and no more can: end some workers',
  ]);
  assert.equal(await ask(), 5);
  assert.equal(kept.peek(), 1);
});

test('a serial transaction of a thread that has ended holds nobody up for long', () => {
  const [variable, words] = [tvar(1), memory()];
  const serialAt = 7;
  Atomics.store(words, serialAt, 500);
  atomically(() => variable.set(2));
  assert.equal(variable.peek(), 2);
  assert.equal(Atomics.load(words, serialAt), 0);
});

test('the memory is that of the environment', () => {
  const found = [...new Set([threadSpace(), threadSpace()].map((words) => words?.buffer))];
  assert.equal(found.length, 1);
  assert.equal(getEnvironmentData('manycore transactions'), found[0]);
});
