// Loops that are in one callback for long: shown with their stacks, and replaced.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type TestContext, test } from 'node:test';
import { waitFor } from '../support/index.js';
import { begin, bodyOf, portOf } from './client.js';
import { listens, open, program, skip } from './served.js';

/** Of blocked loops, from now on. */
function stacksOfBlocked(t: TestContext): string[] {
  const stacks: string[] = [];
  const listener = (message: unknown): void => void stacks.push(String(Object(message).stack));
  subscribe('manycore:server:blocked', listener);
  t.after(() => unsubscribe('manycore:server:blocked', listener));
  return stacks;
}

test('a loop that stays blocked is shown with its stack, then replaced', { skip }, async (t) => {
  const stacks = stacksOfBlocked(t);
  const server = await open(t, listens, { blockedTimeoutMs: 7000, drainTimeoutMs: 1000 });
  const [pid] = server.pids;
  const port = portOf(server);
  const blocked = await begin(port, '/?block=60000');
  blocked.body.catch(() => {}); // it is killed
  assert.match(await bodyOf(port), /^\d+:\d+$/);
  await waitFor(() => stacks.length > 0, 20_000);
  assert.match(stacks[0] ?? '', /at answer \(file:.*listens\.js:\d+:\d+\)/);
  await waitFor(() => server.pids.length === 1 && server.pids[0] !== pid, 20_000);
  assert.ok(!(await waitFor(() => bodyOf(port))).startsWith(`${pid}:`));
});

test('a loop that is blocked alone in its process is shown with its stack, and goes on', {
  skip,
}, async (t) => {
  const stacks = stacksOfBlocked(t);
  const server = await open(t, listens, { processes: 1, loops: 1 });
  const blocked = await begin(portOf(server), '/?block=8000');
  await waitFor(() => stacks.length > 0, 20_000);
  assert.match(stacks[0] ?? '', /at answer \(file:.*listens\.js:\d+:\d+\)/);
  await blocked.body;
  assert.equal(await bodyOf(portOf(server)), `${server.pids[0]}:0`);
});

for (const loops of [1, 2]) {
  test(`a loop in native code is shown without its stack, ${loops} in its process`, {
    skip,
  }, async (t) => {
    const stacks = stacksOfBlocked(t);
    const app = program(
      t,
      'app.mjs',
      `import { execSync } from 'node:child_process';
      export default (request, response) => response.end(execSync('sleep 11'));`,
    );
    const server = await open(t, app, { processes: 1, loops, port: 0 });
    const answer = bodyOf(portOf(server));
    await waitFor(() => stacks.length > 0, 20_000);
    assert.deepEqual(stacks, ['undefined']);
    assert.equal(await answer, '');
  });
}

test('a supervisor that was busy meanwhile tells of a blocked loop once it comes back', {
  skip,
}, async (t) => {
  const stacks = stacksOfBlocked(t);
  const server = await open(t, listens, { processes: 1, loops: 1 });
  const blocked = await begin(portOf(server), '/?block=11000');
  const endMs = performance.now() + 7000;
  while (performance.now() < endMs);
  await waitFor(() => stacks.length > 0, 20_000);
  assert.match(stacks[0] ?? '', /at answer \(file:.*listens\.js:\d+:\d+\)/);
  await blocked.body;
});

test('the stack of a script whose URL holds its text does not repeat the text', {
  skip,
}, async (t) => {
  const stacks = stacksOfBlocked(t);
  const text = `export const block = (ms) => { const endMs = performance.now() + ms; while (performance.now() < endMs); }; //`;
  const app = program(
    t,
    'app.mjs',
    `const { block } = await import('data:text/javascript,' + ${JSON.stringify(text)} + 'x'.repeat(100_000));
    export default (request, response) => {
      block(9000);
      response.end('here');
    };`,
  );
  const server = await open(t, app, { processes: 1, loops: 1, port: 0 });
  const answer = bodyOf(portOf(server));
  await waitFor(() => stacks.length > 0, 20_000);
  assert.match(stacks[0] ?? '', /at block \(data:text\/javascript,export/);
  assert.ok((stacks[0] ?? '').length < 20 * 1000);
  assert.equal(await answer, 'here');
});
