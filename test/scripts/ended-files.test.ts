// The reporter of test files that end otherwise than by exit code 0 (scripts/lib/ended-files.mjs).

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

/** Reports of a test file with this text, by the reporter alone. */
function report(folder: string, text: string): string {
  const file = join(folder, 'one.test.mjs');
  writeFileSync(file, `import { test } from 'node:test';\n${text}`);
  const reporter = `--test-reporter=${resolve('scripts/lib/ended-files.mjs')}`;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return spawnSync(process.execPath, ['--test', reporter, file], { env, encoding: 'utf8' }).stdout;
}

test('files that a signal or an exit code ended are named, with their stderr', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'ended-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'one.test.mjs');
  const text = `console.error('the last words'); process.kill(process.pid, 'SIGSEGV'); await new Promise(() => {});`;
  assert.equal(
    report(folder, `test('one', () => {}); ${text}`),
    `\n${file} ended with signal SIGSEGV; its last lines on stderr:\nthe last words\n\n`,
  );
  assert.match(report(folder, 'process.exitCode = 7;'), /ended with exit code 7;/);
});

test('files whose tests pass or fail are for the other reporters', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'ended-'));
  t.after(() => rmSync(folder, { recursive: true }));
  assert.equal(report(folder, `test('one', () => {});`), '');
  assert.equal(report(folder, `test('one', () => { throw new Error('no'); });`), '');
});
