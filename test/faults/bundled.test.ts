// A program that a bundler has joined with the library to one file: calls that cannot work there fail with a
// way out, and nothing else fails.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Programs } from '../../src/observe/index.js';
import { ownRuntime } from '../observe/runtime.js';
import { Gate } from '../pool/calls/ways.js';
import { waitFor } from '../support/index.js';
import { runCommand } from './child.js';

/** The file that the package ships, and that a user's bundler reads. */
const library = new URL('../../bundle/index.js', import.meta.url);
const libraryFile = JSON.stringify(fileURLToPath(library));

/** Joins a program and the library to one file of this name, in a folder of its own; returns the file. */
async function bundled(t: TestContext, text: string, name = 'program.mjs'): Promise<string> {
  const { folder } = new Gate(t);
  const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url));
  symlinkSync(modules, `${folder}/node_modules`);
  writeFileSync(`${folder}/source.mjs`, text);
  const flags = ['--bundle', '--platform=node', '--format=esm', '--log-level=error'];
  const built = await runCommand(t, [
    `${modules}/.bin/esbuild`,
    `${folder}/source.mjs`,
    ...flags,
    `--outfile=${folder}/${name}`,
  ]);
  assert.equal(built.status, 0, built.stderr);
  return `${folder}/${name}`;
}

for (const [what, body] of [
  ['a call', 'await new Pool({ size: 1 }).run(() => 1)'],
  ['a call to a thread', "await new Pool({ size: 1, worker: 'thread' }).run(() => 1)"],
  ['warm()', 'await new Pool({ size: 2 }).warm()'],
] as const) {
  test(`bundled into a program, ${what} rejects with a way out`, async (t) => {
    const file = await bundled(
      t,
      `import { Pool } from ${libraryFile};
      try { ${body}; } catch (error) { console.log(error.code, error.message); }`,
    );
    const { stdout, stderr } = await runCommand(t, [process.execPath, file]);
    assert.match(
      stdout,
      /^WORKER_START_FAILED manycore's worker program .*--external:manycore/,
      stderr,
    );
  });
}

test('bundled into a program, it is found as a program of the user', async (t) => {
  ownRuntime(t);
  const file = await bundled(
    t,
    `import { Pool } from ${libraryFile};
    new Pool({ size: 1 });
    setInterval(() => {}, 1000);`,
  );
  const child = spawn(process.execPath, [file], { stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  using programs = new Programs();
  const program = await waitFor(async () => {
    assert.equal(child.exitCode, null);
    return (await programs.poll()).find(({ threads }) => threads.length > 0);
  });
  assert.equal(program.pid, child.pid);
});

test('a bundled program in the place of the worker program is not started again and again', async (t) => {
  const chunk = await bundled(t, `export { Pool } from ${libraryFile};`, 'chunk.js');
  const folder = dirname(chunk);
  writeFileSync(`${folder}/package.json`, '{"type":"module"}');
  const program = `
    import { Pool } from './chunk.js';
    const depth = Number(process.env.DEPTH ?? 0);
    process.env.DEPTH = String(depth + 1);
    console.log('depth', depth);
    if (depth > 1) throw new Error('and so on');
    await new Pool({ size: 1 }).run(() => 1).catch((error) => console.log(error.code));`;
  writeFileSync(`${folder}/entry.js`, program);
  const { stdout } = await runCommand(t, [process.execPath, `${folder}/entry.js`]);
  assert.match(stdout, /depth 0[^]*depth 1[^]*WORKER_START_FAILED/);
  assert.doesNotMatch(stdout, /depth 2/);
});
