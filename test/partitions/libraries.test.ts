// A library that the program has loaded brings its folder into no sandbox. In a file of its own: the files of node are
// found once, at the first start.

import assert from 'node:assert/strict';
import fs, { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { nativePath } from '../../src/native.js';
import { linkedLibraries } from '../../src/worker/partition/files.js';
import { folder } from './hostile.js';
import { outcome, sandboxPool, skip } from './support.js';

test('the folder of a library that the program has loaded is not there', { skip }, async (t) => {
  const own = folder(t);
  writeFileSync(join(own, 'key'), 'secret');
  const library = join(own, 'own.so');
  copyFileSync(nativePath() ?? '', library);
  process.dlopen({ exports: {} }, library);
  assert.ok(fs.readFileSync('/proc/self/maps', 'utf8').includes(library));
  const pool = sandboxPool(t);
  const seen = await pool.run((at) => outcome(() => fs.readFileSync(at)), join(own, 'key'));
  assert.equal(seen, 'ENOENT');
});

const isLinux = process.platform === 'linux' ? false : 'loaders are those of Linux';

test('libraries that no loader lists are an error, and not those of the program', {
  skip: isLinux,
}, (t) => {
  const own = folder(t);
  const failing = join(own, 'ld.so');
  writeFileSync(failing, '#!/bin/sh\necho "error while loading" >&2\nexit 127\n');
  chmodSync(failing, 0o755);
  const noProgram = join(own, 'no-program');
  writeFileSync(noProgram, 'text');
  for (const [loaders, reason] of [
    [[failing], /error while loading/],
    [[noProgram], /EACCES/],
    [[join(own, 'none')], /there is none of .*none/],
    [[], /there is none of/],
  ] as const) {
    assert.throws(
      () => linkedLibraries(loaders),
      (error) => {
        assert.ok(hasCode(error, 'PARTITION_UNAVAILABLE'));
        assert.match(String(error), reason);
        assert.match(String(error), /use a build of Node for this system/);
        return true;
      },
    );
  }
});
