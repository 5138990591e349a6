// The same cases under the loaders and flags of users: each runs in a process of its own, because flags hold
// for a process. The programs are made from the source of the cases.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const compiled = fileURLToPath(new URL('.', import.meta.url));
const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = join(root, 'test/context');
const harness = pathToFileURL(join(compiled, 'harness.js')).href;
const execFileAsync = promisify(execFile);
const nodeMajor = Number(process.versions.node.split('.')[0]);

let folder = '';
before(async () => {
  // Inside the checkout, so that packages of the project are found from there.
  await mkdir(join(root, 'dist/tmp'), { recursive: true });
  folder = await mkdtemp(join(root, 'dist/tmp/context-'));
});
after(() => rm(folder, { recursive: true, force: true }));

/** A program that runs the cases of `module` and prints the failures. */
function program(module: string, skipped: readonly string[] = []): string {
  return `
import { cases } from ${JSON.stringify(module)};
import { Peer } from ${JSON.stringify(harness)};
const skipped = ${JSON.stringify(skipped)};
const peer = new Peer();
const failed = [];
let passed = 0;
for (const [title, check] of cases) {
  if (skipped.includes(title)) continue;
  try {
    await check((fn, ...args) => peer.run(fn, ...args));
    passed += 1;
  } catch (error) {
    failed.push(title + ': ' + (error && error.stack));
  }
}
peer.close();
console.log(JSON.stringify({ passed, failed }));
`;
}

interface Outcome {
  readonly passed: number;
  readonly failed: readonly string[];
  readonly stderr: string;
}

async function runProgram(
  file: string,
  flags: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  const { stdout, stderr } = await execFileAsync(process.execPath, [...flags, file], {
    cwd: root,
    env: { ...process.env, NODE_OPTIONS: '', NODE_TEST_CONTEXT: '', ...env },
    timeout: 60_000,
    maxBuffer: 1e7,
  });
  const parsed: unknown = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  assert.ok(typeof parsed === 'object' && parsed !== null);
  const passed: unknown = Reflect.get(parsed, 'passed');
  const failed: unknown = Reflect.get(parsed, 'failed');
  assert.ok(typeof passed === 'number' && Array.isArray(failed));
  return { passed, failed, stderr };
}

function assertAllPass({ passed, failed }: Outcome): void {
  assert.deepEqual(failed, []);
  assert.ok(passed > 50, `only ${passed} cases ran`);
}

/** The cases as the compiler wrote them, in a program with a name of its own. */
async function compiledProgram(name: string, skipped: readonly string[] = []): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, program(pathToFileURL(join(compiled, 'cases.js')).href, skipped));
  return file;
}

/** The cases as TypeScript: relative imports name the files that exist. */
async function typeScriptProgram(name: string): Promise<string> {
  const target = join(folder, name);
  await mkdir(target, { recursive: true });
  for (const file of ['cases.ts', 'cases-module.ts']) {
    const source = await readFile(join(sources, file), 'utf8');
    const retargeted = source.replaceAll('./cases-module.js', './cases-module.ts');
    await writeFile(join(target, file), retargeted);
  }
  await writeFile(join(target, 'main.ts'), program('./cases.ts'));
  return join(target, 'main.ts');
}

test('every case travels without the right to make code from strings', async () => {
  const file = await compiledProgram('no-strings.mjs');
  assertAllPass(await runProgram(file, ['--disallow-code-generation-from-strings']));
});

test('every case travels while an inspector listens', async () => {
  assertAllPass(await runProgram(await compiledProgram('inspect.mjs'), ['--inspect=0']));
});

test('every case travels where the inspector alone reads variables', async () => {
  const file = await compiledProgram('inspected.mjs');
  assertAllPass(await runProgram(file, [], { MANYCORE_REFUSE: 'native-capture' }));
});

/** Tests of closures, of `this`, and of maps, which hold with the native reader and without it. */
const withOrWithoutReader = [
  'closures/arrows',
  'closures/captures',
  'closures/sharing',
  'closures/script-scope',
  'encode/live-edits',
  '../pmap/kept-mappers',
];

for (const name of withOrWithoutReader) {
  test(`${name} holds where the inspector alone reads variables`, async () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { stdout } = await execFileAsync(
      process.execPath,
      ['--test', '--test-reporter=tap', join(compiled, `${name}.test.js`)],
      { env: { ...env, MANYCORE_REFUSE: 'native-capture' } },
    );
    const [, passed] = /^# pass (\d+)$/m.exec(stdout) ?? [];
    assert.ok(Number(passed) > 0, stdout);
  });
}

test('every case travels from a worker thread', async () => {
  const file = await compiledProgram('in-worker.mjs');
  const main = join(folder, 'worker-main.mjs');
  await writeFile(
    main,
    `import { Worker } from 'node:worker_threads'; new Worker(new URL(${JSON.stringify(pathToFileURL(file).href)}));`,
  );
  assertAllPass(await runProgram(main));
});

test('every case travels while coverage is taken, and the report has no re-created code', async () => {
  const coverage = join(folder, 'coverage');
  const file = await compiledProgram('covered.mjs');
  assertAllPass(await runProgram(file, [], { NODE_V8_COVERAGE: coverage }));
  const reports = await Promise.all(
    (await readdir(coverage)).map((name) => readFile(join(coverage, name), 'utf8')),
  );
  const ofPeer = reports.filter((report) => !report.includes(`"url":"${pathToFileURL(file).href}`));
  assert.equal(ofPeer.length, 1);
  // The peer never loads this file: its coverage of it would have offsets of re-created code.
  assert.ok(!ofPeer[0]?.includes(`"url":"file://${join(compiled, 'cases.js')}`));
});

const noStripping = nodeMajor < 22 ? 'Node strips types from 22 on' : false;
test('every case travels from TypeScript with stripped types', { skip: noStripping }, async () => {
  const flags = nodeMajor < 24 ? ['--experimental-strip-types'] : [];
  const file = await typeScriptProgram('stripped');
  assertAllPass(await runProgram(file, [...flags, '--disable-warning=ExperimentalWarning']));
});

test('every case travels from TypeScript under tsx', async () => {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  assertAllPass(await runProgram(await typeScriptProgram('tsx'), ['--import', tsx]));
});

test('every case travels from a minified bundle', async (t) => {
  const { build, stop } = await import('esbuild');
  t.after(() => stop());
  const entry = join(folder, 'bundle-entry.mjs');
  // In a bundle there is no second module: a name of one has another meaning there.
  const elsewhere = [
    'import() inside, also relative',
    'import.meta inside',
    'imported modules have their own state in the peer',
  ];
  await writeFile(entry, program(join(compiled, 'cases.js'), elsewhere));
  const outfile = join(folder, 'bundle.mjs');
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    target: 'es2023',
    external: [harness],
    logLevel: 'silent',
  });
  const { failed, passed } = await runProgram(outfile);
  assert.deepEqual(failed, []);
  assert.ok(passed > 50);
});

for (const rights of [[], ['--allow-addons']]) {
  test(`without the right to inspect, captures are refused by name ${rights}`, async () => {
    const file = join(folder, 'denied.mjs');
    const context = pathToFileURL(join(compiled, '../../src/context/index.js')).href;
    await writeFile(
      file,
      `import { createExporter } from ${JSON.stringify(context)};
const exporter = createExporter();
const failed = [];
let passed = 0;
const captured = 1;
const other = [2];
if (exporter.exportFunction((a) => Math.max(a, 1)).state === undefined) passed += 1;
try {
  exporter.exportFunction(() => captured + other.length);
  failed.push('it was not refused');
} catch ({ code, message }) {
  const isRight = code === 'TRANSFER_UNREADABLE' && /captures captured, other/.test(message) &&
    message.includes('--allow-inspector') && message.includes('task(');
  if (isRight) passed += 1;
  else failed.push(message);
}
console.log(JSON.stringify({ passed, failed }));`,
    );
    const permission = nodeMajor < 24 ? '--experimental-permission' : '--permission';
    const { failed, passed } = await runProgram(file, [permission, '--allow-fs-read=*', ...rights]);
    assert.deepEqual(failed, []);
    assert.equal(passed, 2);
  });
}

test('CommonJS: require, module names, sloppy code and exports travel', async () => {
  await copyFile(join(sources, 'fixtures/lib.cjs'), join(folder, 'lib.cjs'));
  const main = join(folder, 'main.cjs');
  await copyFile(join(sources, 'fixtures/main.cjs'), main);
  const { failed, passed } = await runProgram(main, [], { CONTEXT_HARNESS: harness });
  assert.deepEqual(failed, []);
  assert.ok(passed >= 8, `only ${passed} cases ran`);
});
