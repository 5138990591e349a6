// Globals of modules that Node loads late: each has its name as soon as its own module is there, whichever others are.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programFolder, runNode } from '../../pool/programs.js';

const intrinsics = new URL('../../../src/context/values/intrinsics.js', import.meta.url).href;

for (const [name, args] of Object.entries({
  WritableStream: '',
  ReadableStream: '',
  TransformStream: '',
  TextEncoderStream: '',
  CompressionStream: "'gzip'",
  CountQueuingStrategy: '{ highWaterMark: 1 }',
  Headers: '',
})) {
  test(`the prototype of ${name} has a name where nothing else of its kind is used`, async (t) => {
    const text = `
      import assert from 'node:assert/strict';
      import { builtinPath } from '${intrinsics}';
      builtinPath(Map); // makes the table before the module is loaded
      const { prototype } = new ${name}(${args}).constructor;
      assert.deepEqual(builtinPath(prototype), ['${name}', 'prototype']);`;
    const folder = programFolder(t, { 'main.mjs': text });
    const { stderr, exitCode } = await runNode(folder, ['main.mjs']);
    assert.equal(exitCode, 0, stderr);
  });
}
