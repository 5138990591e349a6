// The short run of the tests, for a machine that has all of .ci/run to do: `MANYCORE_TESTS=few` in the
// environment. The files below are left out, tests that repeat themselves do so less often
// (test/support/few.ts), and loom allows a preemption less. `--full` brings the files back, and the workflow
// runs everything without the variable. A file is here when it repeats what others test, in further
// circumstances or more often, or when what it tests is seldom changed; no part is without a file.

export const isFew = process.env.MANYCORE_TESTS === 'few';

/** Files below test/, each with parts of names of those that a short run has instead. */
export const repeated = {
  // The same tests in further circumstances.
  'context/environments.slow.test.ts': ['context/'],
  'platforms.slow.test.ts': ['pool/', 'serve/', 'units/', 'stm/', 'bus/'],
  'faults/polluted.slow.test.ts': ['faults/hostile'],
  'pool/workers/starts-of-programs.slow.test.ts': ['pool/workers/starts'],
  'serve/portable/serve.slow.test.ts': ['serve/serve', 'serve/faults'],
  // The same act more often, or with further options.
  'cli/upgrade-changes.slow.test.ts': ['cli/upgrade'],
  'cli/upgrade-routed.slow.test.ts': ['cli/upgrade'],
  'cli/upgrade-waits.slow.test.ts': ['cli/upgrade'],
  'cluster/local/programs.slow.test.ts': ['cluster/local'],
  'cluster/partition.slow.test.ts': ['cluster/faults'],
  'cluster/workers/slow.slow.test.ts': ['cluster/workers/pool'],
  'partitions/many.slow.test.ts': ['partitions/killed'],
  'pmap/endless.slow.test.ts': ['pmap/source'],
  'pmap/pinned.slow.test.ts': ['pmap/kept-mappers'],
  'pool/values/modules-by-identity.slow.test.ts': ['pool/values/known-modules'],
  'pool/workers/loads.slow.test.ts': ['pool/workers/load-watch'],
  'serve/blocked.slow.test.ts': ['serve/loop/rescue', 'units/blocked'],
  'serve/supervisor/sizes.slow.test.ts': ['serve/supervisor/sizer'],
  'stm/full.test.ts': ['stm/limits'],
  // Programs around the library.
  'cli/doctor.slow.test.ts': ['cli/cli', 'blocking-pool/'],
  'cli/top.slow.test.ts': ['observe/view'],
  'cli/tune.slow.test.ts': ['tune/'],
  'cluster/examples.slow.test.ts': ['examples/first-steps'],
  'examples/partitions.test.ts': ['partitions/'],
  'examples/smart-tv.slow.test.ts': ['examples/first-steps'],
  'examples/stm-structures.test.ts': ['stm/shared-collections'],
  'observe/profile.test.ts': ['observe/profile-workers'],
};

/** Whether this run leaves a file of tests out; `name` is its path from the repository's root. */
export function isLeftOut(name) {
  return isFew && leftOut.includes(name.replaceAll('\\', '/'));
}

export const leftOut = Object.keys(repeated).map((name) => `test/${name}`);

/** Parts of names: the tests of what differs between lines of Node. */
export const ofNodeLines = [
  'test/channels/codec/',
  'test/cli/cli.test',
  'test/cli/logs.test',
  'test/cli/metrics.test',
  'test/context/',
  'test/native/',
  'test/pool/life.test',
  'test/pool/stacks.test',
  'test/pool/values/',
  'test/units/deploy.test',
  'test/worker/',
];
