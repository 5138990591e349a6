// A call that imports a module and has copies of what that keeps: through the pool, where function and
// arguments are two messages. The cases are those of test/context/modules/roads.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

const files = {
  'store.mjs': `import { run } from 'manycore';
const cache = new Map();
export function put(key) { cache.set(key, 1) }
export const make = () => () => { put('a'); return cache.size };
export const start = (pool) => pool.run(() => { put('own'); return cache.size });
export const startShared = () => run(() => { put('own'); return cache.size });`,
  'main.mjs': `import { pmap, Pool } from 'manycore';
import { make, put, start, startShared } from './store.mjs';
const pool = new Pool({ size: 1, worker: 'thread' });
const job = make();
const lines = [
  await pool.run(job),
  await pool.run((it) => { put('z'); return it() }, job),
  await pool.run((it) => { put('z'); return it() }, job),
  await pool.run((one, two) => { one('z'); return two() }, put, job),
  await start(pool),
  await pmap([1], () => { put('z'); return job() }, { pool }),
  await startShared(),
];
await pool.close();
console.log(JSON.stringify(lines));`,
};

test('a call has one state of a module, which it imports and has copies of', async (t) => {
  const { lines, stderr } = await runNode(programFolder(t, files), ['main.mjs']);
  assert.equal(stderr, '');
  assert.deepEqual(lines, ['[1,2,2,2,1,[2],1]']);
});
