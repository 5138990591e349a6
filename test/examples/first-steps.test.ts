// The programs that README.md and the guide show: each runs as it is, and the pages show what runs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { readRepositoryFile } from '../support/repository.js';

interface Program {
  readonly folder?: string;
  readonly name: string;
  readonly args?: readonly string[];
  readonly prints: RegExp;
}

const programs: readonly Program[] = [
  { folder: 'sum', name: 'main', prints: /^5150\n$/ },
  { folder: 'pmap', name: 'stream', prints: /^(block \d \d+\n){5}the source is closed\n$/ },
  { folder: 'pmap', name: 'in-place', prints: /^16777216 2 9\n$/ },
  { folder: 'pmap', name: 'reduce', prints: /^0,16667 1,16667 2,6666 and,20000\n$/ },
  { folder: 'pmap', name: 'failures', prints: /^SyntaxError for item 2\n1, 2, rejected, 0\n$/ },
  {
    folder: 'pool',
    name: 'reports',
    prints: /^up to 5000: 669\n(up to \d+: \d+\n){3}in all 2262\n$/,
  },
  { folder: 'pool', name: 'owner', prints: /^(a worker leaves\n)*38\n(a worker leaves\n)*42\n$/ },
  {
    folder: 'units',
    name: 'words',
    prints: /^3 words, counted by instance \d\n5 words, counted by instance \d\n$/,
  },
  {
    folder: 'verticles',
    name: 'main',
    args: ['0.5', '2'],
    prints: /^instances .*\n +2 +[1-9]\d* +[1-9]\d*\n$/,
  },
  {
    folder: 'shared-data',
    name: 'main',
    prints: /^(\w+ is written\n){3}3 reports, 3 days\n$/,
  },
  { name: 'keys', prints: /^[0-9a-f]{32}\n\[\n( {2}'[0-9a-f]{32}',?\n){4}\]\n$/ },
  { name: 'run', prints: /^[0-9a-f]{64}\n$/ },
  { name: 'parallel', prints: /^(true primes below \d+: \d+\n){4}$/ },
  { name: 'shared', prints: /^1 1 2 2\n$/ },
  { name: 'limits', prints: /^true the task ran longer than 200 ms.*\nABORTED\n42\n$/ },
  { name: 'stream', prints: /^0n\n1n\n1n\n2n\n(.*\n){12}987n\n$/ },
  { name: 'events', prints: /^(frame \d decoded, in (a worker|the main process)\n){3}$/ },
];

for (const { folder = 'first-steps', name, args = [], prints } of programs) {
  const file = `examples/${folder}/${name}.js`;
  test(`${file} ends by itself and prints what it should`, () => {
    const run = spawnSync(process.execPath, [file, ...args], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    assert.equal(run.status, 0, run.stderr);
    assert.match(run.stdout, prints);
  });
}

test('README.md and the guide show the programs of examples/ as they are', () => {
  const run = spawnSync(process.execPath, ['scripts/readme-examples.mjs', '--check'], {
    encoding: 'utf8',
  });
  assert.equal(run.status, 0, run.stderr);
});

test('the guide to pmap counts the lines of the programs that it compares', () => {
  const found = readRepositoryFile('docs/guide/pmap.md').matchAll(
    /^\| [^|]+ \| (\d+)[^|]* \| \[[^\]]+\]\(\.\.\/\.\.\/([^)]+)\) \|$/gm,
  );
  const rows = [...found];
  assert.equal(rows.length, 5);
  const wrong = rows.filter(([, lines = '', file = '']) => {
    const code = readRepositoryFile(file)
      .split('\n')
      .filter((line) => !/^\s*(\/\/.*)?$/.test(line));
    return code.length !== Number(lines);
  });
  assert.deepEqual(
    wrong.map(([row]) => row),
    [],
  );
});
