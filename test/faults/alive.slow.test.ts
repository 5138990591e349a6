// A program whose only work is `await`: it must not end before the awaited promise has settled. Each case is
// an expression that a program of its own awaits; nothing else keeps that program's loop alive.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { library, runProgram } from './child.js';

/** Functions whose code is larger than a ring: `count` of `chars` characters. */
const functions = (count: number, chars: number): string =>
  `vm.runInThisContext('[' + Array.from({ length: ${count} }, (_, i) =>
    '(a) => { /* ' + 'x'.repeat(${chars}) + ' */ return a + ' + i + ' }') + ']')`;

const prelude = `
  import vm from 'node:vm';
  import { Pool, pmap, run, warm } from ${JSON.stringify(library)};
  const many = ${functions(20, 5_000)};
  const code = (error) => error.code;
  const all = async (items) => { const found = []; for await (const item of items) found.push(item); return found; };`;

/** The awaited expression, and its value. */
const cases: Record<string, readonly [expression: string, expected: unknown]> = {
  'many functions, as a capture, cold': [`run(() => many.length)`, 20],
  'many functions, as an argument, cold': [`run((fns) => fns.length, many)`, 20],
  'many functions, warm': [`warm().then(() => run(() => many.length))`, 20],
  'many functions, with a time limit': [
    `run.with({ timeoutMs: 60_000 })(() => many.at(-1)(1))`,
    20,
  ],
  'a function that waits though its time is limited': [
    `new Pool({ size: 1, graceMs: 50 }).with({ timeoutMs: 50 }).run(() => [many.length, new Promise(() => {})][1]).catch(code)`,
    'TASK_TIMED_OUT',
  ],
  'ten megabytes of functions': [
    `(many.push(...${functions(10, 1_000_000)}), run(() => many.length))`,
    30,
  ],
  'two calls, the second behind many functions': [
    `Promise.all([run(() => 1), run(() => many.length), run(() => many.length)])`,
    [1, 20, 20],
  ],
  'over a socket': [`new Pool({ size: 1, channel: 'socket' }).run(() => many.length)`, 20],
  'in a thread over shared memory': [
    `new Pool({ size: 1, worker: 'thread', channel: 'shm' }).run(() => many.length)`,
    20,
  ],
  'in a thread over a port': [
    `new Pool({ size: 1, worker: 'thread', channel: 'memory' }).run(() => many.length)`,
    20,
  ],
  'a map': [`pmap([1, 2, 3], (item) => many[item](item))`, [2, 4, 6]],
  'items of a map': [`all(pmap.stream([1, 2], (item) => many[item](item)))`, [2, 4]],
  'a stream': [`run(function* () { yield many.length; }).then(all)`, [20]],
  'a pool that closes with tasks': [
    `(() => { const pool = new Pool({ size: 1 }); const call = pool.run(() => many.length);
      return pool.close().then(() => call); })()`,
    20,
  ],
  'a pool that closes behind a task that was given up': [
    `(async () => { const pool = new Pool({ size: 1, graceMs: 50 });
      const said = await pool.with({ timeoutMs: 20 }).run(() => { for (;;); }).catch(code);
      await pool.close(); return said; })()`,
    'TASK_TIMED_OUT',
  ],
  'a task behind one that was given up': [
    `(async () => { const pool = new Pool({ size: 1, graceMs: 50 });
      const stuck = pool.with({ timeoutMs: 20 }).run(() => { for (;;); }).catch(code);
      return [await pool.run(() => many.length), await stuck]; })()`,
    [20, 'TASK_TIMED_OUT'],
  ],
  'a task whose idle worker was killed': [
    `(async () => { const pool = new Pool({ size: 1 });
      const pid = await pool.run(() => process.pid);
      process.kill(pid, 'SIGKILL');
      return pool.with({ retry: 3 }).run(() => many.length); })()`,
    20,
  ],
  'workers that are started ahead': [`new Pool({ size: 2 }).warm().then(() => 'warm')`, 'warm'],
  'workers that do not start': [
    `new Pool({ size: 1, execArgv: ['--no-such-flag'] }).warm().catch(code)`,
    'WORKER_START_FAILED',
  ],
  'a call that runs here, in time': [
    `(async () => { const pool = new Pool({ size: 1 });
      return pool.with({ whenBusy: 'inline', timeoutMs: 20 }).run(() => new Promise(() => {})).catch(code); })()`,
    'TASK_TIMED_OUT',
  ],
};

for (const [name, [expression, expected]] of Object.entries(cases)) {
  test(`the program waits for ${name}`, async (t) => {
    const text = `${prelude}\nconsole.log(JSON.stringify(await (${expression})));`;
    const { stdout, stderr, status } = await runProgram(t, text);
    assert.equal(status, 0, `exit code ${status} ${stderr}`);
    assert.deepEqual(JSON.parse(stdout), expected);
  });
}
