// Programs of users, written into a folder of their own and started as users start them.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Output of a program, and its end. */
export interface Ended {
  readonly lines: readonly string[];
  readonly stderr: string;
  readonly exitCode: number | null;
}

const repositoryRoot = fileURLToPath(new URL('../../../', import.meta.url));
/** A machine may give this run a fraction of its cores. */
const longestMs = 180_000;

/** A folder with `files`, by path in it, where `manycore` is this checkout's. Removed after the test. */
export function programFolder(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folders = join(repositoryRoot, 'dist/tmp');
  mkdirSync(folders, { recursive: true });
  const folder = mkdtempSync(join(folders, 'program-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries({ 'package.json': '{}', ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(repositoryRoot, join(folder, 'node_modules/manycore'));
  return folder;
}

/** Runs `node` with `args` and `NODE_OPTIONS` in `folder`. What takes longer is killed: `exitCode` is null then. */
export function runNode(
  folder: string,
  args: readonly string[],
  stdin = '',
  options = '',
  limitMs = longestMs,
): Promise<Ended> {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: options, NODE_TEST_CONTEXT: '', NODE_V8_COVERAGE: '' },
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
  child.stdin.end(stdin);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode) => {
      resolve({ lines: stdout.split('\n').filter((line) => line !== ''), stderr, exitCode });
    });
  });
}
