// The packed file as a user gets it: what is in it, whether its entry points and types resolve, and
// whether a program can import and require it. Packs what dist/ holds, so build first.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { compileTypeScript, isSound } from './compile.mjs';
import { rollUpTypes } from './roll-up-types.mjs';
import { run } from './run.mjs';

const allowed = [
  /^(README|CHANGELOG)\.md$/,
  /^LICENSE$/,
  /^package\.json$/,
  /^dist\/bundle\/.+\.(js|js\.map)$/,
  /^dist\/bundle\/[^/]+(?:\.cjs|\.d\.c?ts)$/,
  /^dist\/bundle\/dashboard-page\.css$/,
  /^prebuilds\/.+\.(node|so)$/,
];
const required = [
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'package.json',
  'dist/bundle/index.js',
  'dist/bundle/index.cjs',
  'dist/bundle/commonjs.cjs',
  'dist/bundle/index.d.ts',
  'dist/bundle/index.d.cts',
];

/** Resolves to `{ status, output, note }`, as a step of check.mjs. */
export async function checkPackage() {
  if (!isSound()) {
    const { status } = await compileTypeScript();
    if (status !== 0) return { status, output: 'it does not compile' };
  }
  await rollUpTypes();
  const folder = mkdtempSync(join(tmpdir(), 'manycore-pack-'));
  try {
    return await checkPacked(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function checkPacked(folder) {
  const pack = ['pack', '--ignore-scripts', '--json', '--silent', '--pack-destination', folder];
  const packed = await run('npm', pack, { capture: true });
  if (packed.status !== 0) return packed;
  const name = readdirSync(folder).find((each) => each.endsWith('.tgz'));
  const file = join(folder, name);
  const listed = await run('tar', ['-tzf', file], { capture: true });
  const problem = findWrongFiles(listed.output);
  if (problem) return { status: 1, output: problem };
  for (const check of [
    () => run('node_modules/.bin/publint', [file, '--strict'], { capture: true }),
    () =>
      run('node_modules/.bin/attw', [file, '--profile', 'node16', '--no-emoji'], {
        capture: true,
      }),
    () => useAsUser(folder, file),
  ]) {
    const result = await check();
    if (result.status !== 0) return result;
  }
  return { status: 0, output: '', note: `${listed.output.trim().split('\n').length} files` };
}

function findWrongFiles(listing) {
  const files = listing
    .trim()
    .split('\n')
    .map((line) => line.replace(/^package\//, ''));
  const extra = files.filter((file) => !allowed.some((pattern) => pattern.test(file)));
  const missing = required.filter((file) => !files.includes(file));
  const say = (what, names) => (names.length > 0 ? `${what}: ${names.join(', ')}\n` : '');
  return say('should not be packed', extra) + say('is missing from the package', missing);
}

/** Its declarations stand alone: a strict program compiles though it checks those of packages too. */
async function compileAsUser(folder) {
  const text =
    "import { hasCode, pmap } from 'manycore';\nimport { serve } from 'manycore/serve';\n" +
    "import * as files from 'manycore/serve/static';\nimport * as cgi from 'manycore/serve/cgi';\n" +
    "import * as metrics from 'manycore/metrics';\n" +
    'export const sums: Promise<number[]> = pmap([1], (x) => x + 1);\n' +
    "export const codeOf = (e: unknown): 'ABORTED' | 0 => (hasCode(e, 'ABORTED') ? e.code : 0);\n" +
    'export const parts = [serve, files, cgi, metrics];\n';
  const programs = ['program.mts', 'program.cts'].map((name) => join(folder, name));
  for (const program of programs) writeFileSync(program, text);
  const types = ['--typeRoots', resolve('node_modules/@types'), '--types', 'node'];
  const strict = ['--ignoreConfig', '--strict', '--noEmit', '--target', 'es2022', ...types];
  for (const [format, ...files] of [
    [['--module', 'node16'], ...programs],
    [['--module', 'esnext', '--moduleResolution', 'bundler'], programs[0]],
  ]) {
    const args = [...strict, ...format, ...files];
    const result = await run('node_modules/.bin/tsc', args, { capture: true, limitMs: 120_000 });
    if (result.status !== 0) return result;
  }
  return { status: 0, output: '' };
}

/** Unpacks it where a user's program finds it, with its dependencies, and loads it both ways. */
async function useAsUser(folder, file) {
  const modules = join(folder, 'node_modules');
  const home = join(modules, 'manycore');
  mkdirSync(home, { recursive: true });
  const unpacked = await run('tar', ['-xzf', file, '-C', home, '--strip-components=1'], {
    capture: true,
  });
  if (unpacked.status !== 0) return unpacked;
  const { dependencies = {}, bin } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    mkdirSync(join(modules, name, '..'), { recursive: true });
    symlinkSync(resolve('node_modules', name), join(modules, name));
  }
  const program = `
    import { createRequire } from 'node:module';
    const imported = await import('manycore');
    const required = createRequire(import.meta.url)('manycore');
    if (imported.CodedError !== required.CodedError) throw new Error('import and require differ');`;
  const loaded = await run(process.execPath, ['--input-type=module', '-e', program], {
    capture: true,
    cwd: folder,
    limitMs: 60_000,
  });
  if (loaded.status !== 0) return loaded;
  const compiled = await compileAsUser(folder);
  if (compiled.status !== 0) return compiled;
  const missing = Object.values(bin ?? {}).filter((path) => !existsSync(join(home, path)));
  return { status: missing.length, output: `bin names files that are not packed: ${missing}` };
}
