// Checks the packed file as a user gets it: its contents, its entry points and types, and that a program can
// import and require it. Packs dist/, so build first.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { compileTypeScript, isSound } from './compile.mjs';
import { hostPlatform } from './platforms.mjs';
import { rollUpTypes } from './roll-up-types.mjs';
import { run } from './run.mjs';
import { packStaged, stagePackage, stagePlatforms } from './stage-package.mjs';

const allowed = [
  /^(README|CHANGELOG)\.md$/,
  /^LICENSE$/,
  /^package\.json$/,
  /^docs\/(guide\/[^/]+\.md|errors\.md|metrics\.md)$/,
  /^dist\/bundle\/[^/]+(?:\.c?js|\.d\.c?ts)$/,
  /^dist\/bundle\/(dashboard-page\.css|third-party-licences\.txt)$/,
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
  'dist/bundle/third-party-licences.txt',
];

/** Limits of an installation with no other package: files of one platform, dependencies included. */
const maxInstalledBytes = 8.5e6;
const maxPackages = 6;
const maxDeclarations = 14; // seven entry points for each of the two module systems

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
  const { dependencies = {} } = stagePackage(join(folder, 'stage'));
  const file = await packStaged(join(folder, 'stage'), folder);
  const listed = await run('tar', ['-tzf', file], { capture: true });
  const names = listed.output.trim().split('\n');
  const platform = stagePlatforms(folder).find((name) => name === hostPlatform());
  const installed = installedSize(join(folder, 'stage'), Object.keys(dependencies));
  if (platform !== undefined) {
    installed.bytes += bytesBelow(join(folder, platform));
    installed.packages += 1;
  }
  const declarations = names.filter((each) => /\.d\.c?ts$/.test(each)).length;
  const problem =
    findWrongFiles(listed.output) ||
    atMost('bytes are installed', installed.bytes, maxInstalledBytes) ||
    atMost('packages are installed', installed.packages, maxPackages) ||
    atMost('declaration files are packed', declarations, maxDeclarations);
  if (problem) return { status: 1, output: problem };
  for (const check of [
    () => run('node_modules/.bin/publint', [file, '--strict'], { capture: true }),
    () =>
      run('node_modules/.bin/attw', [file, '--profile', 'node16', '--no-emoji'], {
        capture: true,
      }),
    () => useAsUser(folder, file, platform),
  ]) {
    const result = await check();
    if (result.status !== 0) return result;
  }
  const { bytes, packages } = installed;
  const note = `${names.length} files, ${(bytes / 1e6).toFixed(1)} MB in ${packages} packages`;
  return { status: 0, output: '', note };
}

/** Returns the sizes of the staged package and of its dependencies, as npm would install them. */
function installedSize(staged, dependencies) {
  const wanted = new Set(dependencies);
  let bytes = bytesBelow(staged);
  for (const name of wanted) {
    const folder = join('node_modules', name);
    bytes += bytesBelow(folder);
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    for (const each of Object.keys(manifest.dependencies ?? {})) wanted.add(each);
  }
  return { bytes, packages: 1 + wanted.size };
}

function bytesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

function atMost(what, value, limit) {
  return value > limit ? `${value} ${what}: more than ${limit}\n` : '';
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

/** Compiles a strict program that also checks the declarations of packages: ours need no others. */
async function compileAsUser(folder) {
  const text =
    "import { hasCode, pmap } from 'manycore';\nimport { serve } from 'manycore/serve';\n" +
    "import * as files from 'manycore/serve/static';\nimport * as cgi from 'manycore/serve/cgi';\n" +
    "import * as metrics from 'manycore/metrics';\nimport * as stm from 'manycore/stm';\n" +
    'export const sums: Promise<number[]> = pmap([1], (x) => x + 1);\n' +
    "export const codeOf = (e: unknown): 'ABORTED' | 0 => (hasCode(e, 'ABORTED') ? e.code : 0);\n" +
    'export const parts = [serve, files, cgi, metrics, stm];\n';
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

/** Unpacks the package where a user's program finds it, with its dependencies, and loads it both ways. */
function unpack(file, home) {
  mkdirSync(home, { recursive: true });
  return run('tar', ['-xzf', file, '-C', home, '--strip-components=1'], { capture: true });
}

async function useAsUser(folder, file, platform) {
  const modules = join(folder, 'node_modules');
  const home = join(modules, 'manycore');
  const unpacked = await unpack(file, home);
  if (unpacked.status !== 0) return unpacked;
  const { dependencies = {}, bin } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    mkdirSync(join(modules, name, '..'), { recursive: true });
    symlinkSync(resolve('node_modules', name), join(modules, name));
  }
  if (platform !== undefined) {
    const packed = await packStaged(join(folder, platform), folder);
    const ofPlatform = await unpack(packed, join(modules, '@manycore', platform));
    if (ofPlatform.status !== 0) return ofPlatform;
    const cli = join(home, Object.values(bin)[0]);
    const found = await run(process.execPath, [cli, 'doctor'], { capture: true, cwd: folder });
    if (!found.output.includes(`loaded: ${platform}/manycore.node`)) return { ...found, status: 1 };
  }
  const program = `
    import { createRequire } from 'node:module';
    const imported = await import('manycore');
    const required = createRequire(import.meta.url)('manycore');
    if (imported.CodedError !== required.CodedError) throw new Error('import and require differ');
    const problem = imported.partitionProblem();
    const isMachine = problem === undefined || !problem.message.includes('manycore-enter');
    if (!isMachine && ${platform !== undefined}) throw problem;
    if (problem === undefined && (await imported.runSource('6 * 7')) !== 42) throw new Error('no 42');`;
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
