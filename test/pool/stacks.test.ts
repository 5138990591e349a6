// Stacks as users see them: frames of the worker and of the caller, none of ours and none of Node's,
// whichever way the package is loaded and whether or not source maps are on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../faults/child.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Prints the stacks of an error from a task, of its causes, and of an AggregateError's parts. */
const program = (library: string): string => `
  import { Pool } from ${JSON.stringify(library)};
  const pool = new Pool({ size: 1 });
  const stacks = [];
  function look(error) {
    if (!(error instanceof Error) || stacks.includes(error.stack)) return;
    stacks.push(error.stack);
    for (const part of [error.cause, ...(error.errors ?? [])]) look(part);
  }
  function innermost() { throw new RangeError('innermost'); }
  function inner() {
    try { innermost(); } catch (cause) {
      const part = new Error('part');
      const aggregate = new AggregateError([part], 'inner', { cause });
      part.cause = aggregate; // a circle
      throw aggregate;
    }
  }
  function task() {
    try { inner(); } catch (cause) { throw new TypeError('outer', { cause }); }
  }
  async function caller() { await pool.run(task); }
  await caller().catch(look);
  await pool.close();
  console.log(JSON.stringify(stacks));`;

for (const [what, file] of [
  ['modules', 'dist/src/public.js'],
  ['bundle', 'dist/bundle/index.js'],
] as const) {
  for (const flags of ['', '--enable-source-maps']) {
    test(`stacks of an error and of its causes have no frames of the ${what} ${flags}`, async (t) => {
      const library = `file://${root}${file}`;
      const { stdout, stderr, status } = await runProgram(t, program(library), {
        env: { NODE_OPTIONS: flags },
      });
      assert.equal(status, 0, stderr);
      const stacks: string[] = JSON.parse(stdout);
      assert.deepEqual(
        stacks.map((stack) => stack.split('\n')[0]),
        ['TypeError: outer', 'AggregateError: inner', 'RangeError: innermost', 'Error: part'],
      );
      for (const stack of stacks) {
        assert.ok(!stack.includes(root), stack);
        assert.doesNotMatch(stack, /[( ]node:/);
        assert.match(stack, /at \w+ \(.*program\.mjs:\d+:\d+\)/);
      }
      assert.match(stacks[0] ?? '', /at \[worker \d+, process \d+\]\n.*at async caller/);
      assert.match(stacks[2] ?? '', /at innermost/);
    });
  }
}

/** Calls that the pool itself ends, each in an async function named `caller`. */
const ended = {
  TASK_TIMED_OUT: `await pool.with({ timeoutMs: 20 }).run(() => { for (;;); });`,
  TASK_WAITED_TOO_LONG: `
    const first = pool.with({ timeoutMs: 500 }).run(() => { for (;;); }).catch(() => {});
    try { await pool.with({ maxQueueMs: 1 }).run(() => 1); } finally { await first; }`,
  POOL_CLOSED: `
    const first = pool.run(() => { for (;;); }).catch(() => {});
    setTimeout(() => pool.destroy(), 10);
    await pool.run(() => 1);`,
} as const;

for (const [code, call] of Object.entries(ended)) {
  test(`${code} has the frames of the call that it ends, and no others`, async (t) => {
    const library = `file://${root}dist/bundle/index.js`;
    const text = `
      import { Pool } from ${JSON.stringify(library)};
      const pool = new Pool({ size: 1, concurrentTasksPerWorker: 1 });
      async function caller() { ${call} }
      try { await caller(); } catch ({ code, stack }) { console.log(JSON.stringify([code, stack])); }
      pool.destroy();`;
    const { stdout, stderr } = await runProgram(t, text);
    assert.ok(stdout !== '', stderr);
    const [ownCode, stack] = JSON.parse(stdout);
    assert.equal(ownCode, code);
    const frames = String(stack)
      .split('\n')
      .filter((line) => /^\s+at /.test(line));
    assert.match(frames[0] ?? '', /at async caller \(.*program\.mjs:\d+:\d+\)/);
    for (const frame of frames) assert.match(frame, /program\.mjs/);
  });
}
