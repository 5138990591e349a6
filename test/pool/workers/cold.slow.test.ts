// Pools whose workers are still to start: a starting worker is not a busy one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { library, runProgram } from '../../faults/child.js';
import { openPool, ways } from '../calls/ways.js';

const identity = (value: number): number => value;

for (const way of ways) {
  test(`${way.name}: a cold pool takes as many calls as it has workers, though none may wait`, async (t) => {
    const pool = openPool(t, { size: 2, maxWaitingTasks: 0 }, way);
    const calls = [0, 1, 2].map((value) => pool.run(identity, value));
    const found = await Promise.allSettled(calls);
    assert.deepEqual(
      found.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.code)),
      [0, 1, 'POOL_QUEUE_FULL'],
    );
  });

  test(`${way.name}: a cold pool rejects as busy only what no starting worker will take`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    const caller = pool.with({ whenBusy: 'reject' });
    const found = await Promise.allSettled([0, 1, 2].map((value) => caller.run(identity, value)));
    assert.deepEqual(
      found.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.code)),
      [0, 1, 'POOL_BUSY'],
    );
  });

  test(`${way.name}: env with undefined removes a variable`, async (t) => {
    const pool = openPool(t, { size: 1, env: { PATH: undefined, GREETING: 'hei' } }, way);
    const seen = await pool.run(() => ['PATH' in process.env, process.env['GREETING']]);
    assert.deepEqual(seen, [false, 'hei']);
  });
}

test('a waiting task beside those that start is counted', async (t) => {
  const pool = openPool(t, { size: 1, maxWaitingTasks: 1, concurrentTasksPerWorker: 2 });
  const found = await Promise.allSettled([0, 1, 2, 3].map((value) => pool.run(identity, value)));
  assert.deepEqual(
    found.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
  );
});

test('a program that drops root closes its pool, and ends well', {
  skip: process.getuid?.() !== 0 && 'this process is not root',
}, async (t) => {
  const { stdout, stderr, status } = await runProgram(
    t,
    `import { existsSync, readdirSync } from 'node:fs';
       import { join } from 'node:path';
       import { Pool } from ${JSON.stringify(library)};
       const pool = new Pool({ size: 1 });
       await pool.run(() => 1);
       const folder = process.env.XDG_RUNTIME_DIR;
       const files = () => readdirSync(folder, { recursive: true }).map(String);
       while (!files().some((name) => name.includes(String(process.pid)))) {
         await new Promise((resolve) => setTimeout(resolve, 50));
       }
       process.setgid(65534);
       process.setuid(65534);
       console.log(await pool.run(() => 2));
       await pool.close();
       console.log('closed');`,
    {
      shell: 'd=$(mktemp -d) && chmod 700 $d && XDG_RUNTIME_DIR=$d "$@"; s=$?; rm -rf $d; exit $s',
    },
  );
  assert.equal(status, 0, stderr);
  assert.equal(stdout, '2\nclosed\n');
});
