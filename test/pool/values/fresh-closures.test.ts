// Closures that are made for each call, in the package as it is installed: the bundler renames variables and
// joins modules, which the native reader must bear.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutNativeCapture } from '../../support/closures.js';
import { programFolder, runNode } from '../programs.js';

const skip = withoutNativeCapture();

for (const [format, file, head] of [
  [
    'ES module',
    'main.mjs',
    "import { Session } from 'node:inspector'; import { Pool } from 'manycore';",
  ],
  [
    'CommonJS',
    'main.cjs',
    "const { Session } = require('node:inspector'); const { Pool } = require('manycore');",
  ],
] as const) {
  test(`${format}: after some calls a new closure needs no inspector`, { skip }, async (t) => {
    const text = `${head}
      let posts = 0;
      const { post } = Session.prototype;
      Session.prototype.post = function (...args) {
        posts++;
        return Reflect.apply(post, this, args);
      };
      (async () => {
        const pool = new Pool({ size: 1 });
        const counts = [];
        for (let turn = 0; turn < 60; turn++) {
          const order = { id: turn };
          if ((await pool.run(() => order.id + turn)) !== 2 * turn) throw new Error('wrong answer');
          counts.push(posts);
        }
        await pool.close();
        console.log(JSON.stringify([counts[0] > 0, counts[59] - counts[29]]));
      })();`;
    const { lines, stderr, exitCode } = await runNode(programFolder(t, { [file]: text }), [file]);
    assert.equal(exitCode, 0, stderr);
    assert.deepEqual(JSON.parse(lines.at(-1) ?? ''), [true, 0]);
  });
}

/** Calls with a new closure each. */
const calls = 30_000;

test('memory stays flat while each call has a new closure, in the caller and the worker', {
  skip,
}, async (t) => {
  const text = `
    import { basename } from 'node:path';
    import { Pool } from 'manycore';
    const usedBytes = () => {
      process.getBuiltinModule('node:v8').setFlagsFromString('--expose-gc');
      process.getBuiltinModule('node:vm').runInNewContext('gc')();
      return process.memoryUsage().heapUsed;
    };
    const half = (x) => x / 2;
    const pool = new Pool({ size: 1 });
    let turn = 0;
    const call = () => {
      turn++;
      const id = turn;
      let sum = id;
      sum += 1;
      const order = { id };
      if (turn % 3 === 0) return pool.run(() => basename('/a/' + id));
      return turn % 3 === 1 ? pool.run(() => half(sum) + id) : pool.run(() => order.id + sum);
    };
    const callAll = async (count) => {
      for (let done = 0; done < count; done += 60) await Promise.all(Array.from({ length: 60 }, call));
    };
    const sizes = async () => [usedBytes(), await pool.run(usedBytes)];
    await callAll(${calls} / 3);
    const before = await sizes();
    await callAll(${calls});
    const after = await sizes();
    await pool.close();
    console.log(JSON.stringify(after.map((bytes, at) => bytes - before[at])));`;
  const run = runNode(programFolder(t, { 'main.mjs': text }), ['main.mjs']);
  const { lines, stderr, exitCode } = await run;
  assert.equal(exitCode, 0, stderr);
  const growth: number[] = JSON.parse(lines.at(-1) ?? '');
  t.diagnostic(`bytes more after ${calls} calls: ${growth}`);
  assert.ok(
    growth.every((bytes) => bytes < 2 ** 20),
    String(growth),
  );
});
