// npm run test:matrix: the TypeScript tests on every supported line of Node, one after the other, and a table
// at the end. Each version is the npm package `node`, which brings the binary, installed once below
// node_modules/.cache. `npm run test:matrix -- 22 26` runs only those; with `--full` the slow tests too.
// Pools are tested with one channel for each kind of worker. With MANYCORE_TESTS=few only the tests of what
// differs between lines run (lib/few-tests.mjs).
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { compileTypeScript, isSound } from './lib/compile.mjs';
import { isFew, ofNodeLines } from './lib/few-tests.mjs';
import { run } from './lib/run.mjs';

const supported = ['20', '22', '24', '26'];
const installLimitMs = 300_000;
const testLimitMs = 2_700_000;

const wanted = process.argv.slice(2).filter((each) => each !== '--full');
const isFull = process.argv.includes('--full');
const files = isFull ? ['--full'] : isFew ? ofNodeLines : [];
const unknown = wanted.filter((line) => !supported.includes(line));
if (unknown.length > 0) {
  console.error(`not a supported line of Node: ${unknown}. There are: ${supported.join(' ')}`);
  process.exit(1);
}
if (!isSound()) {
  const { status } = await compileTypeScript();
  if (status !== 0) process.exit(status);
}
const rows = [];
for (const line of wanted.length > 0 ? wanted : supported) rows.push(await testOn(line));
console.log('\nNode       tests  passed  failed  skipped     time');
for (const row of rows) console.log(row.text);
// Not process.exit(), which would cut off output longer than the pipe.
if (rows.some(({ isPassed }) => !isPassed)) process.exitCode = 1;

async function testOn(line) {
  const binary = await install(line);
  if (!binary)
    return { isPassed: false, text: `${line.padEnd(10)} could not be installed, see above` };
  const { output: version } = await run(binary, ['--version'], { capture: true });
  const result = await run(binary, ['scripts/test.mjs', '--no-build', '--no-cargo', ...files], {
    capture: true,
    limitMs: testLimitMs,
    env: { MANYCORE_TESTS: 'few' },
  });
  const isPassed = result.status === 0;
  if (!isPassed) console.log(`\n--- Node ${version}${result.output}`);
  const counts = ['tests', 'pass', 'fail', 'skipped'].map((name) => count(result.output, name));
  const [tests, passed, failed, skipped] = counts;
  const text = [
    version.trim().padEnd(10),
    tests.padStart(5),
    passed.padStart(7),
    failed.padStart(7),
    skipped.padStart(8),
    `${(result.tookMs / 1000).toFixed(1)} s`.padStart(8),
    isPassed ? '' : result.isTimedOut ? ' took too long' : ' FAILED',
  ].join(' ');
  console.log(`Node ${version.trim()}: ${isPassed ? 'passed' : 'FAILED'}`);
  return { isPassed, text };
}

/**
 * Resolves to the binary of the newest release of this line, or to `undefined` after a message with the
 * cause.
 */
async function install(line) {
  const folder = resolve('node_modules/.cache/manycore-node', line);
  const binary = join(folder, 'node_modules/node/bin/node');
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', `node@${line}`];
  const result = await run('npm', args, { capture: true, limitMs: installLimitMs });
  if (existsSync(binary)) return binary;
  console.error(`npm install node@${line} brought no binary:\n${result.output}`);
  return undefined;
}

/** Returns the number for `name` in the summary of node's test runner, `?` when there is none. */
function count(output, name) {
  return new RegExp(`^ℹ ${name} (\\d+)$`, 'm').exec(output)?.[1] ?? '?';
}
