// Programs whose built-in objects are frozen: calls and their errors are as elsewhere.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { library, runProgram } from './child.js';

for (const worker of ['process', 'thread']) {
  test(`${worker}: with --frozen-intrinsics an error of a task arrives as it is`, async (t) => {
    const text = `
      import { Pool } from ${JSON.stringify(library)};
      const pool = new Pool({ size: 1, worker: '${worker}', graceMs: 50 });
      const said = [await pool.run((a, b) => a + b, 1, 2)];
      await pool.run(() => { throw Object.assign(new RangeError('the reason'), { code: 'E' }); })
        .catch((error) => said.push([error instanceof Error, error.message, error.code]));
      await pool.run(() => { throw new AggregateError([new TypeError('part')], 'many'); })
        .catch((error) => said.push([error.message, error.errors[0].message]));
      const abort = new AbortController();
      const call = pool.with({ signal: abort.signal }).run(() => new Promise(() => {}));
      abort.abort();
      await call.catch((error) => said.push(error.code));
      await pool.with({ timeoutMs: 20 }).run(() => new Promise(() => {}))
        .catch((error) => said.push(error.code));
      await pool.run(() => process.exit(3)).catch((error) => said.push([error.code, error.exitCode]));
      await pool.close();
      console.log(JSON.stringify(said));`;
    const { stdout, stderr, status } = await runProgram(t, text, {
      shell: `exec "$1" --frozen-intrinsics --no-warnings "$2"`,
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), [
      3,
      [true, 'the reason', 'E'],
      ['many', 'part'],
      'ABORTED',
      'TASK_TIMED_OUT',
      ['WORKER_EXITED', 3],
    ]);
  });
}
