// Errors of handlers that no requester gets: reported, and nothing ends.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type TestContext, test } from 'node:test';
import { EventBus } from '../../src/bus/index.js';
import { hasCode } from '../../src/errors.js';
import type { BusHandlerFailedMessage } from '../../src/lib/index.js';
import { runProgram } from '../faults/child.js';
import { waitFor } from '../support/index.js';

/** Ends with the test. */
function openBus(t: TestContext): EventBus {
  const bus = new EventBus({ copy: structuredClone });
  t.after(() => bus.close());
  return bus;
}

/** Each way in which a handler fails without a requester that could get its error. */
const lostErrors: Readonly<Record<string, string>> = {
  'throws for a message without a request': `bus.consumer('here', () => { throw new Error('bad'); });
    bus.send('here', 1);`,
  'rejects for a message without a request': `bus.consumer('here', async () => { throw new Error('bad'); });
    bus.send('here', 1);`,
  'throws for a publication': `bus.consumer('here', () => { throw new Error('bad'); });
    bus.publish('here', 1);`,
  'throws after its reply': `bus.consumer('here', (message) => { message.reply(1); throw new Error('bad'); });
    await bus.request('here', 1);`,
  'rejects after its reply': `bus.consumer('here', async (message) => { message.reply(1); throw new Error('bad'); });
    await bus.request('here', 1);`,
  'throws something else': `bus.consumer('here', () => { throw 'bad'; });
    bus.send('here', 1);`,
};

for (const [name, program] of Object.entries(lostErrors)) {
  test(`a handler that ${name} is reported, and ends nothing`, async (t) => {
    const module = new URL('../../src/bus/index.js', import.meta.url).href;
    const end = `await new Promise((resolve) => setImmediate(resolve));
      console.log(JSON.stringify(bus.stats.failed));`;
    const { stdout, stderr } = await runProgram(
      t,
      `import { EventBus } from '${module}';
      const bus = new EventBus({ copy: structuredClone });
      ${program}
      ${end}`,
    );
    assert.equal(stdout, '1\n');
    assert.match(
      stderr,
      /\[BUS_HANDLER_ERROR\] BusHandlerWarning: the consumer of here threw: bad/,
    );
  });
}

test('a subscriber gets the errors that no requester gets, and nothing is printed', async (t) => {
  const bus = openBus(t);
  const got: BusHandlerFailedMessage[] = [];
  const note = (message: unknown): void => {
    const failure: BusHandlerFailedMessage = Object(message);
    got.push(failure);
  };
  subscribe('manycore:bus:handler-failed', note);
  t.after(() => unsubscribe('manycore:bus:handler-failed', note));
  const cause = new Error('bad');
  bus.consumer('here', () => {
    throw cause;
  });
  bus.send('here', 1);
  await waitFor(() => got.length === 1);
  const [failure] = got;
  assert.deepEqual([failure?.address, failure?.unit], ['here', undefined]);
  assert.ok(hasCode(failure?.error, 'BUS_HANDLER_ERROR'));
  assert.equal(failure.error.cause, cause);
});

test('a second reply is an error of its message alone', async (t) => {
  const bus = openBus(t);
  let second: unknown;
  bus.consumer('here', (message) => {
    message.reply(1);
    try {
      message.reply(2);
    } catch (error) {
      second = error;
    }
  });
  assert.equal((await bus.request('here', 0)).body, 1);
  assert.ok(hasCode(second, 'BUS_REPLIED'));
  assert.equal((await bus.request('here', 0)).body, 1);
});
