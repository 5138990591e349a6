// Blocking work beside the loop of a unit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { threadId } from 'node:worker_threads';
import { type Loops, shared, type UnitContext } from '../../src/public.js';
import { fillDeployOptions, sourceOf } from '../../src/units/options.js';
import { grantedCores } from '../../src/worker/index.js';
import { skip, startLoops } from './loops.js';

test('the loop goes on while a function blocks, with what it captured', { skip }, async (t) => {
  const loops = startLoops(t);
  await loops.deploy(({ bus, executeBlocking }: UnitContext) => {
    const factor = 6;
    const gate = new Int32Array(shared(4).buffer);
    bus.consumer('ping', (message) => message.reply('pong'));
    bus.consumer('open', () => void Atomics.store(gate, 0, 1));
    bus.consumer('block', async (message) => {
      const result = await executeBlocking(() => {
        const clock = new Int32Array(new SharedArrayBuffer(4));
        while (Atomics.load(gate, 0) === 0) Atomics.wait(clock, 0, 0, 5);
        return 7 * factor;
      });
      message.reply(result);
    });
  });
  let isDone = false;
  const blocked = loops.bus.request('block', 0).finally(() => {
    isDone = true;
  });
  for (let at = 0; at < 20; at += 1) {
    assert.equal((await loops.bus.request('ping', 0)).body, 'pong');
  }
  assert.equal(isDone, false, 'it blocks still');
  loops.bus.send('open', 0);
  assert.equal((await blocked).body, 42);
});

test('blocking work is done in order, unless it need not be', { skip }, async (t) => {
  const loops = startLoops(t);
  await loops.deploy(({ bus, executeBlocking }: UnitContext) => {
    bus.consumer<boolean>('race', async (message) => {
      const { body: ordered } = message;
      const begun = new Int32Array(shared(4).buffer);
      const first = executeBlocking(
        () => {
          const endMs = performance.now() + (ordered ? 300 : 20_000); // an ordered second never comes
          const clock = new Int32Array(new SharedArrayBuffer(4));
          while (Atomics.load(begun, 0) === 0 && performance.now() < endMs) {
            Atomics.wait(clock, 0, 0, 5);
          }
          return Atomics.load(begun, 0);
        },
        { ordered },
      );
      const second = executeBlocking(() => void Atomics.store(begun, 0, 1), { ordered });
      message.reply(await first);
      await second;
    });
  });
  const secondHadBegun = async (ordered: boolean): Promise<boolean> =>
    (await loops.bus.request('race', ordered)).body === 1;
  assert.equal(await secondHadBegun(true), false);
  assert.equal(await secondHadBegun(false), true);
});

test('blocking work that throws or takes too long rejects, and the next is done', async (t) => {
  const loops = startLoops(t);
  await loops.deploy(({ bus, executeBlocking }: UnitContext) => {
    bus.consumer('fail', async (message) => {
      const seen: unknown[] = [];
      const note = (error: unknown): void => void seen.push(Object(error).code ?? String(error));
      await executeBlocking(() => {
        throw new RangeError('too far');
      }).catch(note);
      await executeBlocking(
        () => {
          for (;;);
        },
        { timeoutMs: 200 },
      ).catch(note);
      await executeBlocking(() => {}, Object({ order: true })).catch(note);
      seen.push(await executeBlocking(() => 'next'));
      message.reply(seen);
    });
  });
  const { body } = await loops.bus.request('fail', 0);
  assert.deepEqual(body, ['RangeError: too far', 'TASK_TIMED_OUT', 'OPTION_INVALID', 'next']);
});

/** Returns the number of threads of many calls, of which so many wait for each other. */
async function threadsUsed(
  loops: Loops,
  count: number,
  blockingThreads: number | 'cores' = count,
): Promise<number> {
  const unit = ({ bus, executeBlocking }: UnitContext): void => {
    bus.consumer('threads', async (message) => {
      const begun = new Int32Array(shared(4).buffer);
      const asked = Array.from({ length: 3 * count }, () =>
        executeBlocking(
          () => {
            const endMs = performance.now() + 10_000; // there are fewer, and the test fails
            const clock = new Int32Array(new SharedArrayBuffer(4));
            Atomics.add(begun, 0, 1);
            while (Atomics.load(begun, 0) < count && performance.now() < endMs) {
              Atomics.wait(clock, 0, 0, 5);
            }
            return threadId;
          },
          { ordered: false },
        ),
      );
      message.reply(new Set(await Promise.all(asked)).size);
    });
  };
  const deployment = await loops.deploy(unit, { blockingThreads });
  const { body } = await loops.bus.request<number>('threads', 0);
  await deployment.undeploy();
  return body;
}

test('there are as many threads as asked for, or as cores', { skip }, async (t) => {
  const loops = startLoops(t);
  assert.equal(await threadsUsed(loops, 1), 1);
  assert.equal(await threadsUsed(loops, 3), 3);
  const cores = grantedCores().count;
  assert.equal(await threadsUsed(loops, cores, 'cores'), cores);
});

test('threads as cores are shared out among the loops that have instances', () => {
  const cores = grantedCores().count;
  const threads = (instances: number, loops: number): number =>
    fillDeployOptions(unit, { instances, blockingThreads: 'cores' }, loops).blockingThreads;
  const unit = sourceOf(() => {});
  assert.equal(threads(1, 8), cores);
  assert.equal(threads(8, 2), Math.ceil(cores / 2));
  assert.equal(threads(1000, 1000), Math.ceil(cores / 1000));
  assert.equal(fillDeployOptions(unit, {}, 4).blockingThreads, 20);
  assert.throws(() => fillDeployOptions(unit, Object({ blockingThreads: 'many' })), {
    code: 'OPTION_INVALID',
    message: /blockingThreads is "many": it must be "cores", or an integer from 1 to 1024/,
  });
});
