import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../faults/child.js';

const main = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url));
const status = [process.execPath, main, 'status'];

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-runtime-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('folders that are missing are made, for this user alone', async (t) => {
  const folder = join(folderOf(t), 'a', 'b');
  assert.equal((await runCommand(t, status, { XDG_RUNTIME_DIR: folder })).status, 0);
  assert.equal(statSync(join(folder, 'manycore')).mode & 0o777, 0o700);
});

test('an impossible runtime folder is an error with the reason and the way out', {
  skip: process.platform !== 'linux' && 'there is no /proc',
}, async (t) => {
  const ended = await runCommand(t, status, { XDG_RUNTIME_DIR: '/proc' });
  assert.equal(ended.status, 2);
  assert.match(
    ended.stderr,
    /^manycore: \/proc\/manycore cannot be made: E[A-Z]+: .*unset XDG_RUNTIME_DIR, or set it .*\(RUNTIME_FOLDER_REFUSED\)\n$/,
  );
});

test('doctor goes on without the runtime folder, and reports it', {
  skip: process.platform !== 'linux' && 'there is no /proc',
}, async (t) => {
  const words = [process.execPath, main, 'doctor', '--json'];
  const ended = await runCommand(t, words, { XDG_RUNTIME_DIR: '/proc' });
  assert.equal(ended.status, 1, ended.stderr);
  const { findings } = JSON.parse(ended.stdout);
  const of = (name: string) => findings.find(({ what }: { what: string }) => what === name);
  assert.match(of('servers').detail, /no server can be found: \/proc\/manycore cannot be made/);
  assert.ok(of('cores').detail);
});

test("the error for a runtime folder in another user's names the owner", {
  skip: process.getuid?.() !== 0 && 'only root can become another user',
}, async (t) => {
  const folder = folderOf(t);
  const become = `process.setuid(65534); import(${JSON.stringify(main)});`;
  const words = [process.execPath, '-e', become, '--', 'status'];
  const ended = await runCommand(t, words, { XDG_RUNTIME_DIR: folder });
  assert.match(
    ended.stderr,
    /EACCES: .*in a folder of another user \(number 0\): unset XDG_RUNTIME_DIR/,
  );
});
