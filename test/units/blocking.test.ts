// Work that blocks, beside the loop of a unit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnitContext } from '../../src/index.js';
import { skip, startLoops } from './loops.js';

test('the loop goes on while a function blocks, with what it captured', { skip }, async (t) => {
  const loops = startLoops(t);
  await loops.deploy(({ bus, executeBlocking }: UnitContext) => {
    const factor = 6;
    bus.consumer('ping', (message) => message.reply('pong'));
    bus.consumer<number>('block', async (message) => {
      const { body: ms } = message;
      const result = await executeBlocking(() => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
        return 7 * factor;
      });
      message.reply(result);
    });
  });
  let isDone = false;
  const blocked = loops.bus.request('block', 1500).finally(() => {
    isDone = true;
  });
  for (let at = 0; at < 20; at += 1) {
    assert.equal((await loops.bus.request('ping', 0)).body, 'pong');
  }
  assert.equal(isDone, false, 'it blocks still');
  assert.equal((await blocked).body, 42);
});

test('blocking work is done in order, unless it need not be', { skip }, async (t) => {
  const loops = startLoops(t);
  await loops.deploy(({ bus, executeBlocking }: UnitContext) => {
    bus.consumer<boolean>('race', async (message) => {
      const { body: ordered } = message;
      const done: string[] = [];
      const sleep = (ms: number, name: string): Promise<unknown> =>
        executeBlocking(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms), {
          ordered,
        }).then(() => done.push(name));
      await executeBlocking(() => {}); // a thread is there
      await Promise.all([sleep(1000, 'long'), sleep(1, 'short')]);
      message.reply(done);
    });
  });
  assert.deepEqual((await loops.bus.request('race', true)).body, ['long', 'short']);
  assert.deepEqual((await loops.bus.request('race', false)).body, ['short', 'long']);
});

test('blocking work that throws or takes too long rejects, and the next is done', {
  skip,
}, async (t) => {
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
