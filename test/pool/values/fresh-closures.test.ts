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
