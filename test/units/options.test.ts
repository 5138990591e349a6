// Wrong options of units and loops: refused by name before any process starts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Loops } from '../../src/public.js';
import { UnitTimers } from '../../src/units/unit/timers.js';
import { startLoops } from './loops.js';

const unit = (): void => {};
const refused = (message: RegExp) => ({ code: 'OPTION_INVALID', message });

test('wrong options of deploy are refused, and nothing starts', async (t) => {
  const loops = startLoops(t);
  for (const [options, message] of [
    [null, /^the options of deploy must be an object, not null$/],
    ['x', /^the options of deploy must be an object, not "x"$/],
    [{ on: 'thread' }, /^on is "thread": it must be "loop" or "blocking"$/],
    [{ on: 5 }, /^on is 5: /],
    [{ name: '' }, /^name is "": it must be a name$/],
    [{ name: 5 }, /^name is 5: /],
    [{ processes: 0 }, /^processes is 0: it must be an integer from 1 to 1024$/],
    [{ processes: 1.5 }, /^processes is 1\.5: /],
    [{ processes: '2' }, /^processes is "2": /],
    [{ instances: null }, /^instances is null: /],
    [{ startTimeoutMs: '5' }, /^startTimeoutMs is "5": /],
    [{ stopTimeoutMs: 0 }, /^stopTimeoutMs is 0: it must be an integer from 1 to /],
    [{ stopTimeoutMs: '5' }, /^stopTimeoutMs is "5": /],
    [{ stopTimeoutMs: Infinity }, /^stopTimeoutMs is Infinity: /],
    [{ blockingThreads: 'core' }, /^blockingThreads is "core": it must be "cores", or an integer/],
    [
      { proceses: 1 },
      /^there is no "proceses" in the options of deploy: .*did you mean processes\?$/,
    ],
  ] as const) {
    await assert.rejects(Reflect.apply(loops.deploy, loops, [unit, options]), refused(message));
  }
  await assert.rejects(
    Reflect.apply(loops.deployAll, loops, [[{ unit }], null]),
    refused(/^the options of deployAll must be an object, not null$/),
  );
  assert.deepEqual(await loops.status(), []);
});

test('wrong options of new Loops are refused', () => {
  for (const [options, message] of [
    [null, /^the options of Loops must be an object, not null$/],
    [{ processes: '2' }, /^processes is "2": /],
    [{ processes: -1 }, /^processes is -1: /],
    [{ loops: 0 }, /^loops is 0: /],
    [{ loops: 1.5 }, /^loops is 1\.5: /],
    [{ maxRssBytes: 0 }, /^maxRssBytes is 0: /],
    [{ maxRssBytes: '1 GB' }, /^maxRssBytes is "1 GB": /],
    [{ startTimeoutMs: 0 }, /^startTimeoutMs is 0: /],
    [{ blockedTimeoutMs: 999 }, /^blockedTimeoutMs is 999: it must be an integer from 1000 to /],
    [{ drainTimeoutMs: -1 }, /^drainTimeoutMs is -1: /],
    [{ control: 'yes' }, /^control is "yes": it must be true or false$/],
    [{ cluster: null }, /^the options of cluster must be an object, not null$/],
    [{ cluster: 'nats://127.0.0.1:1' }, /^the options of cluster must be an object, not "nats:/],
    [{ cluster: '' }, /^the options of cluster must be an object, not ""$/],
    [{ cluster: {} }, /^nats is undefined: it must be the URL of a NATS server/],
    [{ port: 1 }, /^there is no "port" in the options of Loops: /],
  ] as const) {
    assert.throws(() => Reflect.construct(Loops, [options]), refused(message));
  }
});

test('timers of a unit without a callback are refused', () => {
  const timers = new UnitTimers((what) => new Error(what));
  for (const call of [timers.setTimeout, timers.setInterval]) {
    for (const callback of [undefined, null, 5, 'code()']) {
      assert.throws(
        () => Reflect.apply(call, undefined, [callback, 1]),
        refused(/^callback is .*: it must be a function$/),
      );
    }
  }
});
