import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runFile } from '../../src/cli/commands/run/run.js';
import { platformName } from '../../src/lib/index.js';
import { library, runCommand } from '../faults/child.js';
import { ownRuntime } from '../observe/runtime.js';
import { Gate } from '../pool/calls/ways.js';
import { readRepositoryFile } from '../support/repository.js';

const command = [
  process.execPath,
  fileURLToPath(new URL('../../src/cli/main.js', import.meta.url)),
];
const isNativeHere = existsSync(
  new URL(`../../../prebuilds/${platformName()}/manycore.node`, import.meta.url),
);

test('doctor finds everything well, or reports what is missing, and sets its exit code', async (t) => {
  ownRuntime(t); // its servers are checked, too
  const { status, stdout } = await runCommand(t, [...command, 'doctor']);
  assert.match(stdout, /cores\s+\d+ granted/);
  assert.match(stdout, /process workers over socket\s+a worker answered/);
  assert.equal(status, isNativeHere ? 0 : 1, stdout);
  assert.equal(/MISSING/.test(stdout), !isNativeHere);
});

test('doctor --json prints one JSON value with the same findings', async (t) => {
  ownRuntime(t); // its servers are checked, too
  const { status, stdout } = await runCommand(t, [...command, 'doctor', '--json']);
  const report: unknown = JSON.parse(stdout);
  assert.ok(typeof report === 'object' && report !== null && 'findings' in report);
  assert.equal('isWell' in report && report.isWell, status === 0);
  assert.ok(Array.isArray(report.findings));
  const names = report.findings.map((finding: { what: string }) => finding.what);
  for (const what of ['versions', 'cores', 'inspector', 'process workers over shm']) {
    assert.ok(names.includes(what), what);
  }
});

test('without the binary doctor reports the cost and exits with 1', async (t) => {
  const { status, stdout } = await runCommand(t, [...command, 'doctor'], {
    MANYCORE_NATIVE: 'off',
  });
  assert.equal(status, 1);
  assert.match(stdout, /MISSING native binary/);
  assert.match(stdout, /ok\s+process workers over socket/);
});

for (const [refused, why] of [
  ['uncounted,native-capture', 'refused by MANYCORE_REFUSE'],
  ['node-version', 'not tested with this version of Node'],
] as const) {
  test(`doctor names why V8 counts large results and the inspector reads closures: ${why}`, {
    skip: !isNativeHere && 'there is no native binary',
  }, async (t) => {
    ownRuntime(t);
    const { stdout } = await runCommand(t, [...command, 'doctor'], { MANYCORE_REFUSE: refused });
    assert.match(stdout, new RegExp(`large results +${why}`));
    assert.match(stdout, new RegExp(`native capture +${why}`));
  });
}

const programs: [name: string, text: string][] = [
  [
    'program.mjs',
    `import { run } from ${JSON.stringify(library)};
     console.log(JSON.stringify([process.argv.slice(2), import.meta.url.endsWith('program.mjs'), await run(() => 6 * 7)]));
     process.exit(0);`,
  ],
  [
    'program.cjs',
    `const isMain = require.main === module && process.argv[1] === __filename;
     import(${JSON.stringify(library)}).then(async ({ run }) => {
       console.log(JSON.stringify([process.argv.slice(2), isMain, await run(() => 6 * 7)]));
       process.exit(0);
     });`,
  ],
];
for (const [name, text] of programs) {
  test(`run ${name} runs it as its main program, with its arguments`, async (t) => {
    const file = `${new Gate(t).folder}/${name}`;
    writeFileSync(file, text);
    const args = [...command, 'run', file, 'one', '--flag', '-x=2', '--', '--json'];
    const { status, stdout, stderr } = await runCommand(t, args);
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), [['one', '--flag', '-x=2', '--', '--json'], true, 42]);
  });
}

test('a program that ends by itself is not kept by the warm pool', async (t) => {
  const file = `${new Gate(t).folder}/short.mjs`;
  writeFileSync(file, "console.log('done');");
  const { status, stdout } = await runCommand(t, [...command, 'run', file]);
  assert.deepEqual([status, stdout], [0, 'done\n']);
});

test('a program that does nothing but export a unit gets a hint', async (t) => {
  const { folder } = new Gate(t);
  for (const [name, text, isUnit] of [
    ['class.mjs', 'export default class Greeter { start() {} }', true],
    ['function.mjs', 'export const start = () => {};', true],
    ['object.cjs', 'module.exports = { start() {} };', true],
    ['prints.mjs', "export default class Greeter { start() {} }; console.log('done');", false],
    ['main.mjs', 'export default async function main() {}; await main();', false],
    ['fails.mjs', 'export default class Greeter { start() {} }; process.exitCode = 1;', false],
  ] as const) {
    const file = `${folder}/${name}`;
    writeFileSync(file, text);
    const { stderr } = await runCommand(t, [...command, 'run', file]);
    const hint = `manycore: ${file} has ended, and nothing has used what it exports: manycore run --instances 1 ${file} runs it as a unit\n`;
    assert.equal(stderr, isUnit ? hint : '', name);
  }
});

for (const [name, text] of [
  ['throws.mjs', "throw new RangeError('from the program');"],
  ['throws.cjs', "throw new RangeError('from the program');"],
  ['rejects.mjs', "Promise.reject(new RangeError('from the program'));"],
] as const) {
  test(`an error of ${name} ends the process as under node, with its stack`, async (t) => {
    const file = `${new Gate(t).folder}/${name}`;
    writeFileSync(file, text);
    const { status, stderr } = await runCommand(t, [...command, 'run', file]);
    assert.equal(status, 1, stderr);
    assert.match(stderr, /RangeError: from the program\n\s+at .*(throws|rejects)\./);
  });
}

test('a program that is not there is CLI_FILE_NOT_FOUND, in the text and in the error', async (t) => {
  const { folder } = new Gate(t);
  const { stderr } = await runCommand(t, [...command, 'run', `${folder}/nowhere.js`]);
  assert.match(stderr, /no file .*nowhere\.js.*\(CLI_FILE_NOT_FOUND\)/);
  for (const path of [`${folder}/nowhere.js`, folder]) {
    assert.throws(() => runFile(path, []), { code: 'CLI_FILE_NOT_FOUND' });
  }
});

for (const [what, args, message] of [
  ['a file that is not there', ['run', '/nowhere/program.js'], /no file \/nowhere\/program\.js/],
  ['a folder', ['run', '/tmp'], /no file \/tmp/],
  ['no file', ['run'], /nothing to run: give a file, or units by --unit/],
  [
    'a misspelt --cluster',
    ['run', '--cluster', 'locl', 'unit.js'],
    /--cluster is "locl": it must be nats:\/\/HOST:PORT, .*, or local; did you mean local\?/,
  ],
  ['an unknown command', ['walk'], /unknown command 'walk'/],
  ['an unknown flag', ['doctor', '--fast'], /unknown option '--fast'/],
  ['an unknown key of --sticky', ['serve', '--sticky', 'body:a'], /must be address, cookie:NAME/],
  ['--sticky without a name', ['serve', '--sticky', 'cookie:'], /must be address, cookie:NAME/],
  ['an unknown flag before the command', ['--fast', 'doctor'], /unknown option '--fast'/],
  ['an argument too many', ['doctor', '1', '2'], /too many arguments/],
  ['a word where a number is wanted', ['doctor', 'now'], /must be a whole number/],
] as const) {
  test(`${what} is exit code 2 and one sentence`, async (t) => {
    const { status, stdout, stderr } = await runCommand(t, [...command, ...args]);
    assert.equal(status, 2, stderr);
    assert.match(stderr, message);
    assert.ok(stderr.trim().split('\n').length <= 3, stderr);
    assert.equal(stdout, '');
  });
}

test('--help names the commands, --version is that of the package', async (t) => {
  const help = await runCommand(t, [...command, '--help']);
  assert.equal(help.status, 0);
  const names = [...help.stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name);
  const run = [
    'run',
    'serve',
    'list',
    'status',
    'reload',
    'scale',
    'upgrade',
    'stop',
    'logs',
    'init',
  ];
  const others = [
    'worker',
    'sandbox',
    'top',
    'dashboard',
    'doctor',
    'trace',
    'profile',
    'tune',
    'help',
  ];
  assert.deepEqual(names, [...run, ...others]);
  for (const line of help.stdout.split('\n')) assert.ok(line.length <= 80, line);
  const { version } = JSON.parse(readRepositoryFile('package.json')) as { version: string };
  for (const flag of ['--version', '-v', '-V']) {
    const printed = await runCommand(t, [...command, flag]);
    assert.deepEqual([printed.status, printed.stdout.trim()], [0, version], flag);
  }
  assert.match(help.stdout, /^ {2}-v, --version {2,}output the version number\n {2}-h, --help /m);
});

test('without a command it shows the help', async (t) => {
  const { stdout, stderr, status } = await runCommand(t, command);
  assert.match(stdout + stderr, /Usage: manycore/);
  assert.equal(status, 2);
});
