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
      threads: 0, memoryBytes: 0, commits: 0, conflicts: 0, thefts: 0, recoveries: 0, sleeps: 0, contended: [],
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

/** Changes that two workers make at the same time, and the contention that is shown for them. */
const fought: Readonly<Record<string, readonly [make: string, change: string, kind: string]>> = {
  'a variable': ['tvar(0)', 'shared.set(shared.get() + 1)', 'TVar'],
  'a sorted map': ['tsortedMap()', 'shared.update(1, (n = 0) => n + 1)', 'TSortedMap'],
  'a map of large values': [
    'tmap()',
    "shared.set('key', 'x'.repeat(500 + ((shared.get('key') ?? '').length % 7)))",
    'TMap',
  ],
  'a full leaf of a map': [
    'tsortedMap()',
    'shared.size; shared.set(Math.floor(Math.random() * 200), true)',
    'TSortedMap',
  ],
  'a list': ['tlist()', 'shared.add(1) || shared.delete(1)', 'TList'],
  'a queue': ['tqueue()', 'shared.put(1); shared.take()', 'TQueue'],
  'a counter': ['tcounter()', 'shared.add(shared.value % 2)', 'TCounter'],
};

for (const [what, [make, change, kind]] of Object.entries(fought)) {
  for (const name of ['hits', undefined]) {
    test(`${what} that is fought over is shown ${name ? 'by its name' : 'without a name'}`, async (t) => {
      await run(
        t,
        `import { ${make.replace(/\(.*/, '')} as make, named } from 'manycore/stm';
        named('another', () => tvar(1));
        const shared = ${name ? `named('${name}', () => ${make.replace(/^\w+/, 'make')})` : make.replace(/^\w+/, 'make')};
        const pool = new Pool({ size: 2 });
        const work = () => {
          for (let turn = 0; turn < 300; turn++) {
            atomically(() => {
              ${change};
              for (let spin = 0; spin < 10_000; spin++) Math.sqrt(spin);
            });
          }
        };
        await pool.warm();
        while (!stmStats().contended.some(({ conflicts }) => conflicts > 8)) await pool.runOnEach(work);
        const [{ name, kind }] = stmStats().contended;
        assert.deepEqual({ name, kind }, ${name ? `{ name: '${name}', kind: '${kind}' }` : `{ name: undefined, kind: ${kind === 'TVar' ? "'TVar'" : 'undefined'} }`});
        await pool.close();`,
      );
    });
  }
}
