// Closures of known code beside imports whose modules change: each call has what the program has then.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

/** Programs; each prints one line of JSON, a list of pairs [found, wanted]. */
const programs: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'state of an imported module that has a variable without a value': {
    'counter.mjs': `const debug = process.env.NO_SUCH_VARIABLE;
      let count = 0;
      export const api = {
        add(n) { count += n; if (debug) console.log(n); return count; },
        get() { return count; },
      };`,
    'main.mjs': `import { Pool } from 'manycore';
      import { api } from './counter.mjs';
      const pool = new Pool({ size: 1 });
      const found = [];
      for (let turn = 0; turn < 3; turn++) {
        const order = { id: turn };
        await pool.run(() => api.add(order.id));
      }
      api.add(5);
      found.push([await pool.run(api.get), api.get()]);
      await pool.close();
      console.log(JSON.stringify(found));`,
  },
  'a property of an imported function of the program': {
    'parts.mjs': `import './main.mjs';
      export const check = (n) => n * 2;`,
    'main.mjs': `import { Pool } from 'manycore';
      import { check } from './parts.mjs';
      const pool = new Pool({ size: 1 });
      const found = [];
      for (let turn = 0; turn < 20; turn++) {
        if (turn === 15) check.mode = 'new';
        found.push([await pool.run(() => [check(turn), check.mode]), [check(turn), check.mode]]);
      }
      await pool.close();
      console.log(JSON.stringify(found));`,
  },
  'an object that an imported module holds too': {
    'store.mjs': `export const store = { orders: [] };
      export const size = () => store.orders.length;`,
    'main.mjs': `import { Pool } from 'manycore';
      import { size, store } from './store.mjs';
      const pool = new Pool({ size: 1 });
      const found = [];
      for (let turn = 0; turn < 20; turn++) {
        const target = turn < 10 ? { orders: [] } : store;
        const run = () => { target.orders.push(1); return [size(), target.orders.length]; };
        const wanted = turn < 10 ? [0, 1] : [1, 1];
        found.push([await pool.run(run).catch(({ code }) => code), wanted]);
      }
      await pool.close();
      console.log(JSON.stringify(found));`,
  },
};

for (const [what, files] of Object.entries(programs)) {
  test(`${what} is in each call as it is then`, async (t) => {
    const { lines, stderr, exitCode } = await runNode(programFolder(t, files), ['main.mjs']);
    assert.equal(exitCode, 0, stderr);
    const pairs: [unknown, unknown][] = JSON.parse(lines.at(-1) ?? '');
    for (const [turn, [found, wanted]] of pairs.entries()) {
      assert.deepEqual(found, wanted, `call ${turn}`);
    }
  });
}
