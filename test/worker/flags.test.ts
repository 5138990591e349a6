// Flags of node: which of them workers have, too.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  inheritedEnvironment,
  inheritedFlags,
  threadFlags,
} from '../../src/worker/parent/flags.js';

const index = new URL('../../src/public.js', import.meta.url).href;

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

const folder = mkdtempSync(join(tmpdir(), 'manycore flags "-'));
after(() => rmSync(folder, { recursive: true }));
const starter = join(folder, 'a b.mjs');
writeFileSync(starter, "import { run } from 'manycore';\nawait run(() => 1);");
writeFileSync(join(folder, 'quiet.mjs'), "import 'manycore/metrics';");

/** A word as it stands between quotes in `NODE_OPTIONS`. */
const quote = (word: string): string => `"${word.replace(/["\\]/g, '\\$&')}"`;
const ofProgram = [
  `--import ${quote(starter)}`,
  `--import=${quote(starter)}`,
  quote(`--require=${starter}`),
  `-r  ${quote(starter)}`,
  `"-r" ${quote(starter)}`,
  `--import ${pathToFileURL(starter).href}?query`,
  `--import data:text/javascript;base64,${btoa(`import { run } from '${index}'; run(() => 1)`)}`,
];
const ofOthers = [
  '',
  '--no-warnings --max-semi-space-size=64',
  '--import tsx -r dotenv/config --import node:fs',
  `--import ${quote(join(folder, 'quiet.mjs'))}`,
  '--import data:text/javascript,1',
  '--title "a \\" --import b"',
  '--title=a\\ --no-warnings',
  `--title ${quote(starter)}`,
];
for (const others of [...ofOthers, ' --no-warnings  ', '--title "not closed', '--import']) {
  test(`all of NODE_OPTIONS stays: ${others}`, () => {
    const env = { other: '1', NODE_OPTIONS: others };
    assert.equal(inheritedEnvironment(env), env);
  });
}
for (const others of ofOthers) {
  test(`what runs the program is taken from NODE_OPTIONS: ${others}`, () => {
    for (const option of ofProgram) {
      const NODE_OPTIONS = `${others} ${option}  ${others}`;
      const kept = { other: '1', NODE_OPTIONS: `${others} ${others}`.trim() };
      assert.deepEqual(inheritedEnvironment({ other: '1', NODE_OPTIONS }), kept, option);
    }
  });
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
  const text = `import { Pool } from '${index}';
    const pool = new Pool({ worker: 'thread', size: 1, execArgv: ['--no-warnings'] });
    console.log(await pool.run(() => process.execArgv.join(' ')));
    await pool.close();`;
  const flags = ['--stack-trace-limit=20', '--conditions=a', '--input-type=module', '-e', text];
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8' });
  assert.equal(stdout, '--conditions=a --no-warnings\n', stderr);
});
