// Timers, messages and consumers of a unit after its end: nothing of them reaches anybody, and nobody else is
// harmed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loops, UnitContext } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

/** Answers `attempts`, and has state that only a loss of its loop changes. */
function neighbour({ bus }: UnitContext): void {
  let count = 0;
  bus.consumer('count', (message) => {
    count += 1;
    message.reply(count);
  });
  bus.consumer('attempts', (message) => message.reply(Reflect.get(globalThis, 'attempts') ?? 0));
  bus.consumer('caught', (message) => message.reply(Reflect.get(globalThis, 'caught')));
}

async function attempts({ bus }: Loops): Promise<number> {
  const { body } = await bus.request<number>('attempts', 0);
  return body;
}

/** Waits until code of the ended unit has run three times more. */
async function ranOn(loops: Loops): Promise<void> {
  const before = await attempts(loops);
  await waitFor(async () => (await attempts(loops)) >= before + 3);
}

test('timers of the context end with the instance', async (t) => {
  const loops = startLoops(t, { processes: 1 });
  await loops.deploy(neighbour);
  const unit = await loops.deploy((context: UnitContext) => {
    const attempt = (): void => {
      Reflect.set(globalThis, 'attempts', (Reflect.get(globalThis, 'attempts') ?? 0) + 1);
    };
    context.setInterval(attempt, 1);
    const again = (word: string): void => {
      if (word !== 'again') throw new Error(word);
      attempt();
      context.setTimeout(again, 1, word);
    };
    context.setTimeout(again, 1, 'again');
    const refreshed = context.setTimeout(() => {
      attempt();
      refreshed.refresh();
    }, 1);
    for (let at = 0; at < 1000; at += 1) clearInterval(context.setInterval(attempt, 1));
    return () => {
      context.setInterval(attempt, 1);
    };
  });
  await ranOn(loops);
  await unit.undeploy();
  const before = await attempts(loops);
  await loops.deploy(({ bus, setInterval: every }: UnitContext) => {
    let ticks = 0;
    every(() => {
      ticks += 1;
    }, 1);
    bus.consumer('ticks', (message) => message.reply(ticks));
  });
  await waitFor(async () => (await loops.bus.request<number>('ticks', 0)).body > 20);
  assert.equal(await attempts(loops), before);
});

test('a unit may send until its stop() has ended', async (t) => {
  const loops = startLoops(t, { processes: 1 });
  const words: unknown[] = [];
  loops.bus.consumer('word', ({ body }) => {
    words.push(body);
  });
  const unit = await loops.deploy(({ bus }: UnitContext) => async () => {
    bus.send('word', 'bye');
    await new Promise((resolve) => setTimeout(resolve, 5));
    bus.publish('word', 'really');
  });
  await unit.undeploy();
  await waitFor(() => words.length === 2);
  assert.deepEqual(words, ['bye', 'really']);
});

type Use = (context: UnitContext) => unknown;

const uses: Record<string, Use> = {
  send: ({ bus }) => bus.send('nobody', 0),
  publish: ({ bus }) => bus.publish('nobody', 0),
  request: ({ bus }) => bus.request('nobody', 0),
  openStream: ({ bus }) => bus.openStream('nobody'),
  address: ({ bus }) => bus.address('nobody').send(0),
  consumer: ({ bus }) => bus.consumer('nobody', () => {}),
  acceptStreams: ({ bus }) => bus.acceptStreams('nobody', () => {}),
  setTimeout: (context) => context.setTimeout(() => {}, 1),
  setInterval: (context) => context.setInterval(() => {}, 1),
};

for (const [name, use] of Object.entries(uses)) {
  test(`${name} of an ended unit fails with BUS_CLOSED, which ends nothing else`, async (t) => {
    const loops = startLoops(t, { processes: 1 });
    await loops.deploy(neighbour);
    const unit = await loops.deploy((context: UnitContext) => {
      setInterval(() => {
        Reflect.set(globalThis, 'attempts', (Reflect.get(globalThis, 'attempts') ?? 0) + 1);
        if (!context.signal.aborted) return undefined;
        return use(context);
      }, 1).unref();
      setInterval(async () => {
        try {
          if (context.signal.aborted) await use(context);
        } catch (error) {
          Reflect.set(globalThis, 'caught', Reflect.get(Object(error), 'code'));
        }
      }, 1).unref();
      setInterval(async () => {
        await Promise.resolve();
        if (context.signal.aborted) await use(context);
      }, 1).unref();
    });
    assert.equal((await loops.bus.request('count', 0)).body, 1);
    await unit.undeploy();
    await ranOn(loops);
    await waitFor(async () => (await loops.bus.request('caught', 0)).body === 'BUS_CLOSED');
    assert.equal((await loops.bus.request('count', 0)).body, 2, 'its loop goes on');
  });
}

for (const on of ['loop', 'blocking'] as const) {
  test(`the same in loops that are threads, with units on: ${on}`, async (t) => {
    const loops = startLoops(t, { processes: 1, loops: 2 });
    await loops.deploy(neighbour, { instances: 2 });
    const ended = ({ bus, signal }: UnitContext): void => {
      setInterval(() => {
        Reflect.set(globalThis, 'attempts', (Reflect.get(globalThis, 'attempts') ?? 0) + 1);
        if (signal.aborted) bus.send('nobody', 0);
      }, 1).unref();
    };
    const unit = await loops.deploy(ended, { instances: 2, on });
    const count = async () => (await loops.bus.request('count', 0)).body;
    assert.deepEqual([await count(), await count()], [1, 1]);
    await unit.undeploy();
    if (on === 'loop') {
      await ranOn(loops);
      await ranOn(loops);
    }
    assert.deepEqual([await count(), await count()], [2, 2]);
  });
}

test('a handler of uncaught errors gets those of others, also beside a late use', async (t) => {
  const loops = startLoops(t, { processes: 1 });
  await loops.deploy(neighbour);
  await loops.deploy(({ bus }: UnitContext) => {
    let handled = 0;
    process.on('uncaughtException', () => {
      handled += 1;
    });
    setInterval(() => {
      throw new TypeError('another one');
    }, 1).unref();
    bus.consumer('handled', (message) => message.reply(handled));
  });
  const unit = await loops.deploy(({ bus }: UnitContext) => {
    setInterval(() => {
      Reflect.set(globalThis, 'attempts', (Reflect.get(globalThis, 'attempts') ?? 0) + 1);
      try {
        bus.send('nobody', 0);
      } catch {}
    }, 1).unref();
  });
  assert.equal((await loops.bus.request('count', 0)).body, 1);
  await unit.undeploy();
  const handled = async (): Promise<number> => (await loops.bus.request<number>('handled', 0)).body;
  const before = await handled();
  await ranOn(loops);
  await waitFor(async () => (await handled()) > before + 20);
  assert.equal((await loops.bus.request('count', 0)).body, 2);
});

test('other errors that nobody catches end the loop as ever, also beside a late use', async (t) => {
  const loops = startLoops(t, { processes: 1 });
  await loops.deploy(neighbour);
  const unit = await loops.deploy(({ bus }: UnitContext) => {
    setInterval(() => {
      try {
        bus.send('nobody', 0);
      } catch {
        throw new TypeError('another one');
      }
    }, 1).unref();
  });
  const [before] = loops.loops;
  await waitFor(async () => (await loops.bus.request<number>('count', 0)).body >= 2);
  await unit.undeploy();
  await waitFor(() => loops.loops.some(({ pid }) => pid !== before?.pid));
  const { body } = await waitFor(() => loops.bus.request<number>('count', 0));
  assert.equal(body, 1);
});
