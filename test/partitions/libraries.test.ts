// A library that the program has loaded brings its folder into no sandbox. In a file of its own: the files of node are
// found once, at the first start.

import assert from 'node:assert/strict';
import fs, { copyFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { nativePath } from '../../src/native.js';
import { outcome, sandboxPool, skip } from './support.js';

test('the folder of a library that the program has loaded is not there', { skip }, async (t) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'manycore-library-')));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'key'), 'secret');
  const library = join(folder, 'own.so');
  copyFileSync(nativePath() ?? '', library);
  process.dlopen({ exports: {} }, library);
  assert.ok(fs.readFileSync('/proc/self/maps', 'utf8').includes(library));
  const pool = sandboxPool(t);
  const seen = await pool.run((at) => outcome(() => fs.readFileSync(at)), join(folder, 'key'));
  assert.equal(seen, 'ENOENT');
});
