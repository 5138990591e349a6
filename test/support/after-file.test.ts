import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

const afterFile = new URL('./after-file.js', import.meta.url).href;

/** Limit for leftovers that stay. Those that leave have longer. */
const shortMs = '200';

/** Runs a test file with this body as the whole run does; leftovers are gone when the test ends. */
function runTestFile(
  t: TestContext,
  body: string,
  deadlineMs = shortMs,
): { status: number | null; stderr: string } {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-after-file-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'given.test.js');
  writeFileSync(file, `const { test, after } = require('node:test');\n${body}`);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return spawnSync(process.execPath, ['--import', afterFile, file], {
    encoding: 'utf8',
    env: { ...env, MANYCORE_LEAK_DEADLINE_MS: deadlineMs },
    timeout: 60_000,
  });
}

/** A child that exits when its parent does, and does not keep its parent alive. */
const startChild = `
  const child = require('node:child_process').spawn(
    process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
  child.unref(); child.stdin.unref();`;

test('a test file that leaves a child process behind fails, and the child is named', (t) => {
  const { status, stderr } = runTestFile(t, `test('leaves', () => {${startChild}});`);
  assert.equal(status, 1, stderr);
  assert.match(
    stderr,
    /left behind by .*given\.test\.js:\n {2}child \d+: .*process\.stdin\.resume/,
  );
});

test('a test file that leaves a descriptor open fails', (t) => {
  const body = `test('leaves', () => { require('node:fs').openSync(__filename); });`;
  const { status, stderr } = runTestFile(t, body);
  assert.equal(status, 1, stderr);
  assert.match(stderr, /descriptor: .*given\.test\.js/);
});

test('a test file passes whose child is closed by its own hook, and whose server is closed', (t) => {
  const body = `${startChild}
    after(() => child.kill('SIGKILL'));
    test('servers and threads', async () => {
      const server = require('node:net').createServer().listen(0, '127.0.0.1');
      await new Promise((resolve) => server.on('listening', resolve));
      server.close();
      const worker = new (require('node:worker_threads').Worker)('', { eval: true });
      await new Promise((resolve) => worker.on('exit', resolve));
    });`;
  const { status, stderr } = runTestFile(t, body, '20000');
  assert.equal(status, 0, stderr);
});
