// Flags of node: which of them hosts have, too.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { inheritedFlags, threadFlags } from '../../src/host/flags.js';

const cases: [what: string, given: string[], kept: string[]][] = [
  [
    'loaders go along',
    ['--import', 'tsx', '--require=./a.cjs'],
    ['--import', 'tsx', '--require=./a.cjs'],
  ],
  ['conditions go along', ['-C', 'development'], ['-C', 'development']],
  ['flags of V8 go along', ['--max-semi-space-size=64'], ['--max-semi-space-size=64']],
  ['source maps go along', ['--enable-source-maps'], ['--enable-source-maps']],
  ['what is evaluated stays', ['-e', 'run()', '--expose-gc'], ['--expose-gc']],
  ['what is evaluated stays, in one word', ['--eval=run()'], []],
  ['its type stays', ['--input-type=module', '-p', '1', '--input-type', 'module'], []],
  ['the inspector stays', ['--inspect=0', '--inspect-brk'], []],
  ['the test runner stays', ['--test', '--test-reporter=spec', '--test-only'], []],
  [
    'values stay with their flag',
    ['--test-reporter', 'spec', '--inspect-port', '0', '-r', 'a.cjs', '--cpu-prof-dir', 'x'],
    ['-r', 'a.cjs'],
  ],
  ['watching stays', ['--watch', '--watch-path=src'], []],
  ['profiles stay', ['--cpu-prof', '--cpu-prof-dir=x', '--heap-prof', '--prof'], []],
];
for (const [what, given, kept] of cases) {
  test(`of this process's flags: ${what}`, () => assert.deepEqual(inheritedFlags(given), kept));
}

test('a thread has those that say which modules are loaded', () => {
  const given = [
    '--stack-trace-limit=20',
    '--import',
    'tsx',
    '-C',
    'a',
    '--use-largepages=off',
    '-e',
    '1',
  ];
  assert.deepEqual(threadFlags(given), ['--import', 'tsx', '-C', 'a']);
  assert.deepEqual(threadFlags(['--requirements', 'x', '--require=./a.cjs']), [
    '--require=./a.cjs',
  ]);
});

test('a program with flags that no thread may have opens a pool of threads with flags', () => {
  const index = new URL('../../src/index.js', import.meta.url).href;
  const text = `import { Pool } from '${index}';
    const pool = new Pool({ host: 'thread', size: 1, execArgv: ['--no-warnings'] });
    console.log(await pool.run(() => process.execArgv.join(' ')));
    await pool.close();`;
  const flags = ['--stack-trace-limit=20', '--conditions=a', '--input-type=module', '-e', text];
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8' });
  assert.equal(stdout, '--conditions=a --no-warnings\n', stderr);
});
