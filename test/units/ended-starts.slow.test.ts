// Starts in progress that an undeployment or the end of the loops ends: each way has one error, whatever the start
// is doing. Messages set the order: a start asks the program, which ends it and then answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defer } from '../../src/lib/index.js';
import type { Loops, UnitContext } from '../../src/public.js';
import { appUrl, startLoops } from './loops.js';

const other = (): void => {};

/** Starts that are under way when they are ended. */
const starts = {
  'never ends': async ({ bus }: UnitContext): Promise<void> => {
    await bus.request('begin', 0);
    await new Promise(() => {});
  },
  'ends with its signal': async ({ bus, signal }: UnitContext): Promise<void> => {
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await bus.request('begin', 0);
    await aborted;
  },
  'still loads its module': appUrl('loading'),
};

type Unit = (typeof starts)[keyof typeof starts];

const failed = { code: 'UNIT_START_FAILED' };
const undeployed = {
  code: 'UNIT_UNDEPLOYED',
  message: /^the group was undeployed while its units started: deploy it again$/,
};

interface Way {
  readonly what: string;
  /** Rejects as its result does. */
  readonly begin: (loops: Loops, unit: Unit) => Promise<unknown>;
  readonly error: object;
}

const ways: readonly Way[] = [
  { what: 'deploy', begin: (loops, unit) => loops.deploy(unit), error: failed },
  {
    what: 'deploy in a thread',
    begin: (loops, unit) => loops.deploy(unit, { on: 'blocking' }),
    error: failed,
  },
  {
    what: 'deployAll, the first unit',
    begin: (loops, unit) => loops.deployAll([{ unit }, { unit: other }]),
    error: undeployed,
  },
  {
    what: 'deployAll, the last unit in a thread',
    begin: (loops, unit) => loops.deployAll([{ unit: other }, { unit, on: 'blocking' }]),
    error: undeployed,
  },
];

for (const [doing, unit] of Object.entries(starts)) {
  test(`loops that close end a start that ${doing}, with one error`, {
    timeout: 60_000,
  }, async (t) => {
    for (const { what, begin, error } of ways) {
      const loops = startLoops(t, { processes: 1 });
      const closed = defer<void>();
      loops.bus.consumer('begin', (message) => {
        loops.close().then(closed.resolve, closed.reject);
        message.reply(0);
      });
      await assert.rejects(begin(loops, unit), error, what);
      await closed.promise;
    }
  });

  test(`an undeployment ends a start that ${doing}`, { timeout: 60_000 }, async (t) => {
    const loops = startLoops(t, { processes: 1 });
    const ended = defer<void>();
    loops.bus.consumer('begin', (message) => {
      const all = loops.deployments.map((each) => each.undeploy());
      Promise.all(all).then(() => ended.resolve(), ended.reject);
      message.reply(0);
    });
    await assert.rejects(loops.deploy(unit), failed);
    await ended.promise;
    assert.deepEqual(loops.deployments, []);
  });
}

test('a start that has ended gives no group that was undeployed meanwhile', async (t) => {
  const loops = startLoops(t, { processes: 1 });
  const closed = defer<void>();
  loops.bus.consumer('begin', (message) => {
    loops.close().then(closed.resolve, closed.reject);
    message.reply(0);
  });
  const first = async ({ bus }: UnitContext): Promise<void> => void (await bus.request('begin', 0));
  await assert.rejects(loops.deployAll([{ unit: first }, { unit: other }]), undeployed);
  await closed.promise;
});
