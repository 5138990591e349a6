import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inheritedFlags } from '../../src/host/process.js';

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
