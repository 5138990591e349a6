// Programs whose texts name files that are no modules: these are not read, because reading may never end.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { fileText, readFile } from '../../../src/context/modules/file-text.js';

const publicUrl = new URL('../../../src/public.js', import.meta.url).href;

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'manycore-mentioned-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

test('a program that names a pipe and devices runs', {
  skip: process.platform === 'win32',
}, (t) => {
  const at = folder(t);
  const pipe = join(at, 'pipe');
  assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
  const open = openSync(pipe, 'r+'); // who reads it waits for bytes
  t.after(() => closeSync(open));
  writeFileSync(
    join(at, 'lib.mjs'),
    `const names = [${JSON.stringify(pipe)}, '/dev/tty', '/proc/kmsg'];
    export const given = (x) => x + names.length;`,
  );
  const program = join(at, 'main.mjs');
  writeFileSync(
    program,
    `import { Pool } from ${JSON.stringify(publicUrl)};
    import { given } from './lib.mjs';
    const pool = new Pool({ size: 1 });
    console.log(await pool.run(() => given(2)));
    await pool.close();`,
  );
  const { stdout, stderr, signal } = spawnSync(process.execPath, [program], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  assert.deepEqual([stdout.trim(), signal], ['5', null], stderr);
});

test('a large file is not read where none that long is searched', (t) => {
  const file = join(folder(t), 'large.js');
  writeFileSync(file, '1;');
  const url = pathToFileURL(file).href;
  assert.equal(fileText(url), '1;');
  truncateSync(file, 3_000_001);
  assert.deepEqual([fileText(url), readFile(url)?.length], [undefined, 3_000_001]);
  truncateSync(file, 0);
  assert.equal(fileText(url), '');
});
