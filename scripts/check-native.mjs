// npm run check:native: the models of ring and wake protocol under loom, and the tests of the core
// under valgrind. Both find what tests cannot: an interleaving that is rare, a byte read too far.
// Not here: miri and AddressSanitizer, which need a nightly compiler (the hosted workflow has one).
import { existsSync } from 'node:fs';
import { isFew } from './lib/few-tests.mjs';
import { hasCommand, run } from './lib/run.mjs';
import { runSteps } from './lib/steps.mjs';

const crate = ['--package', 'manycore-core'];
const limitMs = 900_000;
/** Half of the time under valgrind: they try every step in turn, in memory that the other tests of it touch, too. */
const exhaustive = [
  'stm::tests::memory::no_block_is_lost_or_twice_there_wherever_its_owner_ends',
  'stm::tests::resize::blocks_of_variables_stay_what_they_are',
];

/** Builds apart from the plain build: loom replaces the atomics everywhere. */
async function checkModels() {
  const result = await run(
    'cargo',
    ['test', ...crate, '--release', '--lib', '--tests', '--quiet'],
    {
      capture: true,
      limitMs,
      env: {
        RUSTFLAGS: '--cfg loom',
        CARGO_TARGET_DIR: 'target/loom',
        LOOM_MAX_PREEMPTIONS: process.env.LOOM_MAX_PREEMPTIONS ?? (isFew ? '2' : '3'),
      },
    },
  );
  return countTests(result, 'models');
}

/** Fails for a run without tests, which proves nothing. */
function countTests(result, what) {
  const passed = [...result.output.matchAll(/^test result: ok\. (\d+) passed/gm)];
  const total = passed.reduce((sum, [, count]) => sum + Number(count), 0);
  if (result.status !== 0) return result;
  const output = total === 0 ? `there are no ${what}\n${result.output}` : '';
  return { status: total === 0 ? 1 : 0, output, note: `${total} ${what}` };
}

/** Builds the test programs and runs each under memcheck; an error or a definite leak fails. */
async function checkMemory() {
  const build = await run(
    'cargo',
    ['test', ...crate, '--lib', '--tests', '--no-run', '--message-format=json'],
    { capture: true, limitMs },
  );
  if (build.status !== 0) return build;
  const programs = build.output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter((message) => message.profile?.test && message.executable)
    .map((message) => message.executable);
  let output = '';
  for (const program of programs) {
    const result = await run(
      'valgrind',
      [
        ...[
          '--quiet',
          '--error-exitcode=9',
          '--leak-check=full',
          '--errors-for-leak-kinds=definite',
        ],
        ...['--fair-sched=yes', program, '--test-threads=1', '--quiet'],
        ...(isFew ? exhaustive.flatMap((name) => ['--skip', name]) : []),
      ],
      { capture: true, limitMs },
    );
    if (result.status !== 0) return result;
    output += result.output;
  }
  return countTests({ status: 0, output }, 'tests');
}

async function needsValgrind() {
  return (await hasCommand('valgrind')) ? undefined : 'valgrind is not installed';
}

if (!existsSync('crates/core/Cargo.toml') || !(await hasCommand('cargo'))) {
  console.error('npm run check:native needs cargo: install Rust, or leave it to CI');
  process.exit(1);
}
const failures = await runSteps(
  [
    { name: 'loom', check: checkModels },
    { name: 'valgrind', needs: needsValgrind, check: checkMemory },
  ],
  process.argv.slice(2),
);
process.exit(failures === 0 ? 0 : 1);
