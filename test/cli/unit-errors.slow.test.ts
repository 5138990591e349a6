// Errors of the code of units, as `manycore run` prints them.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../faults/child.js';
import { skip } from '../units/loops.js';
import { command } from './serving.js';

test('errors of the code of a unit have their place', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const mistake = 'const fine = 1;\nconst x = ;\n';
  const thrower = `export default class Thrower {
    async start() { await this.inner(); }
    async inner() {
      await null;
      null.x;
    }
  }`;
  for (const [name, text, expected] of [
    [
      'a.mjs',
      mistake,
      /^manycore: .*a\.mjs cannot be loaded: .*, at .*a\.mjs:2:11 \(UNIT_INVALID\)\n$/,
    ],
    [
      'b.cjs',
      mistake,
      /^manycore: .*b\.cjs cannot be loaded: .*, at .*b\.cjs:2 \(UNIT_INVALID\)\n$/,
    ],
    [
      'c.mjs',
      `import './a.mjs';`,
      /c\.mjs cannot be loaded: .*, at .*a\.mjs:2:11 \(UNIT_INVALID\)\n$/,
    ],
    [
      'd.mjs',
      '\nnull.x',
      /^TypeError: .*\n +at .*d\.mjs:2:6\n\nmanycore: .*d\.mjs cannot be loaded: /,
    ],
    [
      'e.mjs',
      thrower,
      /^TypeError: .*\n +at Thrower\.inner .*e\.mjs:5:12.*\n +at async Thrower\.start .*e\.mjs:2:.*\n\nmanycore: instance 0 of e could not start: .*\(UNIT_START_FAILED\)\n$/,
    ],
  ] as const) {
    const file = join(folder, name);
    writeFileSync(file, text);
    const flags = ['--instances', '1', '--processes', '1', '--loops', '1'];
    const { status, stderr } = await runCommand(t, [
      process.execPath,
      command,
      'run',
      file,
      ...flags,
    ]);
    assert.match(stderr, expected);
    assert.equal(status, 2);
  }
});
