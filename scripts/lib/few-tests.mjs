// The short run of the tests, for a machine that has all of .ci/run to do: `MANYCORE_TESTS=few` in the
// environment. The files below are left out, tests that repeat themselves do so less often
// (test/support/few.ts), tables of wrong input are cut, and loom allows a preemption less. `--full` brings the files
// back, and the workflow runs everything without the variable on one line of Node. A file is here when it repeats what others test, in further
// circumstances or more often, or when what it tests is seldom changed; no part is without a file.

export const isFew = process.env.MANYCORE_TESTS === 'few';

/** Files below test/, each with parts of names of those that a short run has instead. */
export const repeated = {
  // The same tests in further circumstances.
  'context/environments.slow.test.ts': ['context/'],
  'platforms.slow.test.ts': ['pool/', 'serve/', 'units/', 'stm/', 'bus/'],
  'faults/polluted.slow.test.ts': ['faults/hostile'],
  'pool/workers/starts-of-programs.slow.test.ts': ['pool/workers/starts'],
  'units/portable.slow.test.ts': ['units/deploy', 'cluster/local/portable'],
  // The same act more often, or with further options.
  'cli/upgrade-changes.slow.test.ts': ['cli/upgrade'],
  'cli/upgrade-routed.slow.test.ts': ['cli/upgrade'],
  'cli/upgrade-waits.slow.test.ts': ['cli/upgrade'],
  'cluster/local/programs.slow.test.ts': ['cluster/local'],
  'cluster/cuts.slow.test.ts': ['cluster/faults'],
  'cluster/partition.slow.test.ts': ['cluster/faults'],
  'cluster/tasks/versions.slow.test.ts': ['cluster/tasks/durable.slow'],
  'cluster/workers/slow.slow.test.ts': ['cluster/workers/pool'],
  'partitions/many.slow.test.ts': ['partitions/killed'],
  'pmap/endless.slow.test.ts': ['pmap/source'],
  'pmap/pinned.slow.test.ts': ['pmap/kept-mappers'],
  'pmap/relayed.slow.test.ts': ['pmap/nested'],
  'pool/values/modules-by-identity.slow.test.ts': ['pool/values/known-modules'],
  'pool/workers/loads.slow.test.ts': ['pool/workers/load-watch'],
  'pool/workers/program-end.slow.test.ts': ['pool/workers/teardown', 'pool/life'],
  'serve/blocked.slow.test.ts': ['serve/loop/rescue', 'units/blocked'],
  'serve/loop/rescue-never.slow.test.ts': ['serve/loop/rescue.slow'],
  'serve/supervisor/shared-workers.slow.test.ts': ['serve/supervisor/workers-end'],
  'serve/supervisor/sizes.slow.test.ts': ['serve/supervisor/sizer'],
  'stm/full.test.ts': ['stm/limits'],
  'syscalls/counted-requests.slow.test.ts': ['syscalls/requests'],
  'syscalls/counts.slow.test.ts': ['syscalls/preload', 'syscalls/roles'],
  'units/memory.slow.test.ts': ['units/side', 'bus/'],
  // Programs around the library.
  'cli/doctor.slow.test.ts': ['cli/cli', 'blocking-pool/'],
  'cli/top.slow.test.ts': ['observe/view'],
  'cli/tune.slow.test.ts': ['tune/'],
  'cluster/examples.slow.test.ts': ['examples/first-steps'],
  'cluster/workers/worker-command.slow.test.ts': ['cluster/command', 'cluster/workers/workers'],
  'examples/chat.slow.test.ts': ['examples/shared-state'],
  'examples/partitions.test.ts': ['partitions/'],
  'examples/smart-tv.slow.test.ts': ['examples/first-steps'],
  'examples/stm-structures.test.ts': ['stm/shared-collections'],
  'observe/profile.test.ts': ['observe/profile-workers'],
  'observe/programs.slow.test.ts': ['observe/view', 'observe/dashboard'],
};

/** Returns true for a file that this run leaves out; `name` is its path from the repository's root. */
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
  'test/serve/loop/rescue.slow',
  'test/units/deploy.test',
  'test/worker/',
];
