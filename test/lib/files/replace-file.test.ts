// Files that are replaced whole, and those that are written into because replacing is impossible.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { replaceFile } from '../../../src/lib/index.js';

const part = JSON.stringify(new URL('../../../src/lib/index.js', import.meta.url));
const noDevices = process.platform === 'win32' && 'there is no /dev';

function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-replace-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('a file is another one with the new text, of the same mode, and nothing is beside it', (t) => {
  const folder = scratch(t);
  const file = join(folder, 'file');
  writeFileSync(file, 'the text that was there', { mode: 0o600 });
  const before = statSync(file);
  replaceFile(file, 'new');
  const after = statSync(file);
  assert.equal(readFileSync(file, 'utf8'), 'new');
  assert.notEqual(after.ino, before.ino);
  assert.equal(after.mode, before.mode);
  assert.deepEqual(readdirSync(folder), ['file']);
});

test('a link stays, and its target is replaced', (t) => {
  const folder = scratch(t);
  const file = join(scratch(t), 'file');
  const link = join(folder, 'link');
  writeFileSync(file, 'old');
  symlinkSync(file, link);
  replaceFile(link, 'new');
  assert.equal(readFileSync(file, 'utf8'), 'new');
  assert.ok(lstatSync(link).isSymbolicLink());
});

test('a failed replacement leaves nothing beside the file', (t) => {
  const folder = scratch(t);
  assert.throws(() => replaceFile(folder, 'text'), /EISDIR/);
  assert.throws(() => replaceFile(join(folder, 'none', 'file'), 'text'), /ENOENT/);
  assert.deepEqual(readdirSync(folder), []);
});

for (const [what, redirection] of [
  ['a pipe', '| cat'],
  ['a file', '> "$2"; cat "$2"'],
] as const) {
  test(`behind /dev/stdout ${what} is written into`, { skip: noDevices }, (t) => {
    const text = `import { replaceFile } from ${part}; replaceFile('/dev/stdout', 'text');`;
    const line = `"$0" --input-type=module -e "$1" ${redirection}`;
    const out = join(scratch(t), 'out');
    const args = ['-c', line, process.execPath, text, out];
    const { stdout, stderr } = spawnSync('sh', args, { encoding: 'utf8' });
    assert.equal(stdout, 'text', stderr);
  });
}

test('a full device is an error', { skip: process.platform !== 'linux' && 'no /dev/full' }, () => {
  assert.throws(() => replaceFile('/dev/full', 'text'), /ENOSPC/);
});
