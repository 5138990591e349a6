// The esbuild plugin of scripts/lib/bundled-urls.mjs: URLs of programs stay right in the bundle, which is one
// folder. A small tree is bundled and run.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';

const urlOf = (path: string): string => new URL(`../../../${path}`, import.meta.url).href;

/** Program that bundles the tree in its working directory. */
const build = `
  import { build } from '${urlOf('node_modules/esbuild/lib/main.js')}';
  import { bundledUrls } from '${urlOf('scripts/lib/bundled-urls.mjs')}';
  await build({
    entryPoints: { start: 'src/worker/start.ts', entry: 'src/worker/inside/entry.ts' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    plugins: [bundledUrls],
    outdir: 'dist/bundle',
  });`;

/** Makes and bundles a tree in which src/worker/start.ts is `start`; `run` runs its bundled form. */
function bundleTree(t: TestContext, start: string) {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-bundle-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = {
    'package.json': '{ "type": "module" }',
    'table.json': '"a table"',
    'src/worker/start.ts': start,
    'src/worker/inside/entry.ts': `console.log('the program of the worker');`,
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const node = (...args: string[]) =>
    spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', timeout: 60_000 });
  const built = node('--input-type=module', '--eval', build);
  return { built, run: () => node('dist/bundle/start.js') };
}

test('a URL of a program leads to the same program in the bundle', (t) => {
  const { built, run } = bundleTree(t, `import(new URL('./inside/entry.js', import.meta.url));`);
  assert.equal(built.status, 0, built.stderr);
  const { stdout, stderr } = run();
  assert.equal(stdout, 'the program of the worker\n', stderr);
});

test('a URL of a file outside of dist/ leads to the same file from the bundle', (t) => {
  const { built, run } = bundleTree(
    t,
    `import { readFileSync } from 'node:fs';
    console.log(readFileSync(new URL('../../../table.json', import.meta.url), 'utf8'));`,
  );
  assert.equal(built.status, 0, built.stderr);
  const { stdout, stderr } = run();
  assert.equal(stdout, '"a table"\n', stderr);
});

test('a URL of a file that the bundle lacks fails the build with its path', (t) => {
  const { built } = bundleTree(t, `import(new URL('./inside/missing.js', import.meta.url));`);
  assert.equal(built.status, 1);
  assert.match(built.stderr, /dist\/src\/worker\/inside\/missing\.js is no program of the bundle/);
});
