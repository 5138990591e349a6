// npm test: cargo's tests, if cargo is installed, then the TypeScript tests but for the slow ones, whose
// files are *.slow.test.ts. With arguments: the files whose names contain one of them, slow or not. Builds
// stale outputs first.
// Ends with the summary of node's test runner; the exit code is 0 only when everything passed.
//   --slow   only the slow ones        --full   all      (npm run test:slow, npm run test:full)
//   --no-build   test dist/ as it is      --no-cargo   skip cargo's tests
// MANYCORE_TESTS=few makes a short run, see lib/few-tests.mjs; --full has all files even so.
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { compileTypeScript, isSound, isStale } from './lib/compile.mjs';
import { bubblewrap, guestKernel, gvisor, natsServer } from './lib/debian-program.mjs';
import { isLeftOut } from './lib/few-tests.mjs';
import { hasCommand, run } from './lib/run.mjs';
import { compiledName, typeScriptFiles } from './lib/sources.mjs';

/** Limit of each test file; that of the whole run is this for each of its files. */
const fileLimitMs = 600_000;
/** A worker exits within a second after its parent did. */
const orphanLimitMs = 3000;
/** Tests wait more than they compute: this many files at a time keep two cores busy. */
const concurrency = 3;
/** Slow files start processes, and wait for them. */
const slowConcurrency = 4;
/** Environment variable that names this run in all its processes, see findOrphans. */
const runVariable = 'MANYCORE_TEST_RUN';

/** The second reporter. */
const endedFiles = new URL('lib/ended-files.mjs', import.meta.url);

/** Environment variable with the path of a nats-server, for the tests of the cluster. */
const natsVariable = 'MANYCORE_TEST_NATS';

const passed = { status: 0, output: '' };

const flags = process.argv.slice(2).filter((each) => each.startsWith('--'));
const parts = process.argv.slice(2).filter((each) => !each.startsWith('--'));
const isWhole = parts.length === 0;
const isSlowAlone = flags.includes('--slow');
const isFull = flags.includes('--full');

if (!flags.includes('--no-build')) await build();
const cargo = isWhole && !isSlowAlone && !flags.includes('--no-cargo') ? await testRust() : passed;
const node = await testTypeScript();
// Once more: thousands of lines lie between.
if (cargo.status !== 0) console.log(`\ncargo test failed:\n${cargo.output.slice(-4000)}`);
process.exit(node || cargo.status);

async function build() {
  if (isWhole ? !isSound() : isStale()) {
    const { status } = await compileTypeScript();
    if (status !== 0 && isWhole) process.exit(status);
  }
  if (isWhole && existsSync('scripts/build-native.mjs')) {
    const { status } = await run(process.execPath, ['scripts/build-native.mjs']);
    if (status !== 0) process.exit(status);
  }
}

/** Resolves to the status and the output of cargo's tests. */
async function testRust() {
  if (!existsSync('crates/core/Cargo.toml')) return passed;
  if (!(await hasCommand('cargo'))) {
    console.log('cargo is not installed: the Rust tests are left out');
    return passed;
  }
  const result = await run('cargo', ['test', '--workspace', '--quiet'], { capture: true });
  console.log(result.output);
  return result;
}

async function testTypeScript() {
  const files = typeScriptFiles()
    .filter((name) => name.startsWith('test') && name.endsWith('.test.ts'))
    .filter((name) => (isWhole ? isOfLevel(name) : parts.some((part) => name.includes(part))))
    .filter((name) => isFull || !isLeftOut(name))
    .map(compiledName);
  if (files.length === 0) {
    console.error(`no test file's name contains ${parts.join(' or ')}`);
    return 1;
  }
  const missing = files.filter((file) => !existsSync(file));
  if (missing.length > 0) {
    console.error(`not built: ${missing.join(', ')}`);
    return 1;
  }
  const name = randomUUID();
  const usesNats = files.some((file) => /\/(bus|cluster|shared-data)\//.test(file));
  const nats = usesNats ? await natsServer() : undefined;
  const isPartitions = files.some((file) => file.includes('/partitions/'));
  const programs = isPartitions ? [await guestKernel(), await bubblewrap(), await gvisor()] : [];
  const path = programs.filter((program) => program !== undefined).map(dirname);
  const { status, isTimedOut } = await run(
    process.execPath,
    [
      ...['--import', resolve('dist/test/support/after-file.js')],
      ...['--test', `--test-concurrency=${isSlowAlone ? slowConcurrency : concurrency}`],
      ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
      ...[`--test-reporter=${endedFiles}`, '--test-reporter-destination=stderr'],
      `--test-timeout=${fileLimitMs}`,
      ...files,
    ],
    {
      env: {
        [runVariable]: name,
        [natsVariable]: nats ?? '',
        PATH: [...path, process.env.PATH].join(delimiter),
      },
      limitMs: fileLimitMs * files.length,
    },
  );
  if (isTimedOut) console.error('the test run took too long and was ended');
  const orphans = await waitForOrphans(name);
  for (const { pid, command } of orphans) {
    console.error(`left running by a test: process ${pid}: ${command}`);
    process.kill(pid, 'SIGKILL');
  }
  return status || (orphans.length > 0 ? 1 : 0);
}

function isOfLevel(name) {
  return isFull || name.endsWith('.slow.test.ts') === isSlowAlone;
}

/** Resolves to the processes that have not exited within the time that workers have for it. */
async function waitForOrphans(name) {
  const end = performance.now() + orphanLimitMs;
  let orphans = findOrphans(name);
  while (orphans.length > 0 && performance.now() < end) {
    await sleep(50);
    orphans = findOrphans(name);
  }
  return orphans;
}

/**
 * Returns the processes that a test started and that outlived it: each has the run's name in its environment.
 */
function findOrphans(name) {
  if (!existsSync('/proc/self/environ')) return [];
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && read(pid, 'environ').includes(`${runVariable}=${name}`))
    .map((pid) => ({ pid: Number(pid), command: read(pid, 'cmdline').replaceAll('\0', ' ') }));
}

function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // it has exited meanwhile, or belongs to another user
  }
}
