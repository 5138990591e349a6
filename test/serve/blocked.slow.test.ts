// Loops that are in one callback for long: shown with their stacks, and replaced.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitFor } from '../support/index.js';
import { begin, bodyOf, portOf } from './client.js';
import { announced, folder, listens, open, program } from './served.js';

const blocked = 'manycore:server:blocked';
/** In the callback of apps/listens.ts that does not return. */
const placeInListens = /at answer \(file:.*listens\.js:\d+:\d+\)/;

/** Stack of a loop that is reported as blocked. The first report has none where a busy machine takes too long. */
async function reportedStack(blocks: readonly Record<string, unknown>[]): Promise<string> {
  const { stack } = await waitFor(() => blocks.find((each) => each['stack'] !== undefined));
  return String(stack);
}

test('a loop that stays blocked is reported with its stack, then replaced', async (t) => {
  const blocks = announced(t, blocked);
  const server = await open(t, listens, { blockedTimeoutMs: 7000, drainTimeoutMs: 1000 });
  const [pid] = server.pids;
  const port = portOf(server);
  const held = await begin(port, '/?block=60000');
  held.body.catch(() => {}); // it is killed
  assert.match(await bodyOf(port), /^\d+:\d+$/);
  assert.match(await reportedStack(blocks), placeInListens);
  await waitFor(() => server.pids.length === 1 && server.pids[0] !== pid);
  assert.ok(!(await waitFor(() => bodyOf(port))).startsWith(`${pid}:`));
});

test('a loop with a short limit is reported before it is replaced, too', async (t) => {
  const blocks = announced(t, blocked);
  const server = await open(t, listens, { blockedTimeoutMs: 1000, drainTimeoutMs: 1000 });
  const held = await begin(portOf(server), '/?block=60000');
  await assert.rejects(held.body);
  assert.match(await reportedStack(blocks), placeInListens);
});

test('a loop that is blocked alone in its process is shown with its stack, and goes on', async (t) => {
  const blocks = announced(t, blocked);
  const server = await open(t, listens, { processes: 1, loops: 1 });
  const end = join(folder(t), 'end');
  const held = await begin(portOf(server), `/?until=${end}`);
  assert.match(await reportedStack(blocks), placeInListens);
  writeFileSync(end, '');
  await held.body;
  assert.equal(await bodyOf(portOf(server)), `${server.pids[0]}:0`);
});

for (const loops of [1, 2]) {
  test(`a loop in native code is shown without its stack, ${loops} in its process`, async (t) => {
    const blocks = announced(t, blocked);
    const app = program(
      t,
      'app.mjs',
      `import { execSync } from 'node:child_process';
      export default (request, response) => response.end(execSync('sleep 11'));`,
    );
    const server = await open(t, app, { processes: 1, loops, port: 0 });
    const answer = bodyOf(portOf(server));
    await waitFor(() => blocks.length > 0);
    assert.equal(await answer, '');
    assert.ok(blocks.every(({ stack }) => stack === undefined));
  });
}

test('a supervisor that was busy meanwhile tells of a blocked loop once it comes back', async (t) => {
  const blocks = announced(t, blocked);
  const server = await open(t, listens, { processes: 1, loops: 1 });
  const end = join(folder(t), 'end');
  const held = await begin(portOf(server), `/?until=${end}`);
  const endMs = performance.now() + 7000;
  while (performance.now() < endMs);
  assert.match(await reportedStack(blocks), placeInListens);
  writeFileSync(end, '');
  await held.body;
});

test('the stack of a script whose URL holds its text does not repeat the text', async (t) => {
  const blocks = announced(t, blocked);
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
  const stack = await reportedStack(blocks);
  assert.match(stack, /at block \(data:text\/javascript,export/);
  assert.ok(stack.length < 20 * 1000);
  assert.equal(await answer, 'here');
});
