// Names of variables and collections, each test in a program of its own: a name keeps the memory until its end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireNative } from '../../src/native.js';
import { programFolder, runNode } from '../pool/programs.js';

requireNative(); // without it there is nothing to share

/** Runs the text of a module. */
async function run(t: Parameters<typeof programFolder>[0], text: string): Promise<void> {
  const head = `
    import assert from 'node:assert/strict';
    import { Pool } from 'manycore';
    import { atomically, free, named, tcounter, tmap, tvar } from 'manycore/stm';`;
  const folder = programFolder(t, { 'main.mjs': head + text });
  const { stderr, exitCode } = await runNode(folder, ['--expose-gc', 'main.mjs']);
  assert.equal(exitCode, 0, stderr);
}

test('a name stands for one collection, which is made where there is none', async (t) => {
  await run(
    t,
    `let made = 0;
    const make = () => (made++, tmap());
    const map = named('a map', make);
    assert.equal(named('a map', make), map);
    assert.equal(made, 1);
    assert.equal(named('a variable', () => tvar(5)).peek(), 5);
    map.set('a', 1);
    free(map);
    assert.equal(named('a map', make).has('a'), false);
    assert.throws(() => atomically(() => named('a map', make)), { code: 'STM_SIDE_EFFECT' });
    assert.throws(() => named('', make), { code: 'OPTION_INVALID' });
    assert.throws(() => named('an object', () => ({})), { code: 'OPTION_INVALID' });
    assert.throws(() => named('a name', 5), { code: 'TASK_NOT_FUNCTION' });`,
  );
});

test('what has a name lasts when nothing refers to it', async (t) => {
  await run(
    t,
    `named('hits', () => tcounter()).add(5);
    for (let round = 0; round < 5; round++) {
      gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(named('hits', () => tcounter()).value, 5);`,
  );
});

test('a name is the same in all workers', async (t) => {
  await run(
    t,
    `const pool = new Pool({ size: 3 });
    const count = () => named('a count', () => tcounter()).add();
    await Promise.all(Array.from({ length: 30 }, () => pool.run(count)));
    assert.equal(named('a count', () => tcounter()).value, 30);
    await pool.close();`,
  );
});
