// Statistics of the transactional memory, in programs of their own: other tests of this process have variables, too.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { requireNative } from '../../src/native.js';
import { programFolder, runNode } from '../pool/programs.js';

requireNative(); // without it there is nothing to count

async function run(t: TestContext, text: string): Promise<void> {
  const head = `
    import assert from 'node:assert/strict';
    import { Pool } from 'manycore';
    import { atomically, atomicallyWhen, check, stmStats, tvar } from 'manycore/stm';`;
  const folder = programFolder(t, { 'main.mjs': head + text });
  const { stderr, exitCode } = await runNode(folder, ['main.mjs']);
  assert.equal(exitCode, 0, stderr);
}

test('a thread without variables has zeros', async (t) => {
  await run(
    t,
    `assert.deepEqual(stmStats(), {
      threads: 0, memoryBytes: 0, commits: 0, conflicts: 0, thefts: 0, recoveries: 0, sleeps: 0,
    });`,
  );
});

test('commits, sleeps and threads of all workers are counted', async (t) => {
  await run(
    t,
    `const count = tvar(0);
    const add = () => atomically(() => count.update((n) => n + 1));
    const before = stmStats();
    const pool = new Pool({ size: 2 });
    await pool.warm();
    await pool.runOnEach(add);
    for (let round = 0; round < 8; round++) add();
    const sleeper = atomicallyWhen(() => check(count.get() >= 11));
    await pool.run(add);
    await sleeper;
    const after = stmStats();
    assert.equal(count.peek(), 11);
    assert.equal(after.commits - before.commits, 11);
    assert.ok(after.threads >= 3 && after.threads <= 4, String(after.threads)); // one may wait for sleepers
    assert.ok(after.sleeps <= 1);
    assert.ok(after.memoryBytes > 0);
    await pool.close();`,
  );
});

test('conflicts of two that change one variable are counted', async (t) => {
  await run(
    t,
    `const count = tvar(0);
    const pool = new Pool({ size: 2 });
    const change = () => {
      for (let turn = 0; turn < 1000; turn++) {
        atomically(() => {
          const seen = count.get();
          for (let spin = 0; spin < 10_000; spin++) Math.sqrt(spin);
          count.set(seen + 1);
        });
      }
    };
    await pool.warm();
    while (stmStats().conflicts === 0) await pool.runOnEach(change);
    await pool.close();`,
  );
});
