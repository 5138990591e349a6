// The programs that README.md shows: each runs as it is, and README.md shows what runs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

const programs: readonly { readonly name: string; readonly prints: RegExp }[] = [
  { name: 'run', prints: /^[0-9a-f]{64}\n$/ },
  { name: 'parallel', prints: /^(true primes below \d+: \d+\n){4}$/ },
  { name: 'shared', prints: /^1 1 2 2\n$/ },
  { name: 'limits', prints: /^true the task ran longer than 200 ms.*\nABORTED\n42\n$/ },
  { name: 'stream', prints: /^0n\n1n\n1n\n2n\n(.*\n){12}987n\n$/ },
  { name: 'events', prints: /^(frame \d decoded, in (a host|the main process)\n){3}$/ },
];

for (const { name, prints } of programs) {
  test(`examples/first-steps/${name}.js ends by itself and prints what it should`, () => {
    const run = spawnSync(process.execPath, [`examples/first-steps/${name}.js`], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    assert.equal(run.status, 0, run.stderr);
    assert.match(run.stdout, prints);
  });
}

test('README.md shows the programs of examples/ as they are', () => {
  const run = spawnSync(process.execPath, ['scripts/readme-examples.mjs', '--check'], {
    encoding: 'utf8',
  });
  assert.equal(run.status, 0, run.stderr);
});
