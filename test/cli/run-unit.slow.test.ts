// `manycore run UNIT --instances N`, in a process of its own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasUnitFlags, takeUnitFlags } from '../../src/cli/commands/run/run-unit.js';
import { runCommand } from '../faults/child.js';
import { childrenOf, isRunning, someOf, waitFor } from '../support/index.js';
import { skip } from '../units/loops.js';
import { command } from './serving.js';

const stubborn = fileURLToPath(new URL('../units/apps/stubborn.js', import.meta.url));
const sleeper = fileURLToPath(new URL('../units/apps/sleeper.js', import.meta.url));
const exits = fileURLToPath(new URL('../units/apps/exits.js', import.meta.url));
const hello = fileURLToPath(new URL('../units/apps/hello.js', import.meta.url));

test('run with --instances deploys a unit, and undeploys it at SIGTERM', { skip }, async (t) => {
  const flags = ['--instances', '4', '--processes', '2', '--loops=1', '--config', '{"port":0}'];
  const child = spawn(process.execPath, [command, 'run', hello, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const listening = await waitFor(() => lines[1]);
  assert.equal(lines[0], 'hello: 4 instances, on 2 loops in 2 processes');
  const response = await fetch(
    `http://${listening.replace('listening on ', '').replace('http://', '')}`,
  );
  assert.match(await response.text(), /^\d \d \d+$/);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('a unit that listens nowhere is shown by its file', { skip }, async (t) => {
  const env = { XDG_RUNTIME_DIR: mkdtempSync(join(tmpdir(), 'manycore-run-')) };
  t.after(() => rmSync(env.XDG_RUNTIME_DIR, { recursive: true }));
  const child = spawn(process.execPath, [command, 'run', sleeper, '--instances', '1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  t.after(() => child.kill('SIGKILL'));
  await once(createInterface({ input: child.stdout }), 'line');
  const { stdout } = await runCommand(t, [process.execPath, command, 'status'], env);
  assert.equal(stdout.split('\n')[0], `sleeper (${sleeper}), served by process ${child.pid}`);
  await waitFor(async () => {
    const top = await runCommand(t, [process.execPath, command, 'top', '--once'], env);
    return new RegExp(`^ +${child.pid} +sleeper\\.js `, 'm').test(top.stdout);
  });
});

test('HUP and manycore reload redeploy edited units', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'unit.mjs');
  const write = (text: string) =>
    writeFileSync(file, `export const start = () => console.log(${text});`);
  write(`'version 1'`);
  const env = { XDG_RUNTIME_DIR: folder };
  const child = spawn(process.execPath, [command, 'run', file, '--instances', '1'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => lines.push(line));
  }
  const sees = (pattern: RegExp) => waitFor(() => lines.some((line) => pattern.test(line)));
  await sees(/unit: 1 instance/);
  write(`'version 2'`);
  child.kill('SIGHUP');
  await sees(/version 2/);
  await sees(/^reloaded$/);
  write('(');
  child.kill('SIGHUP');
  await sees(/^manycore: unit was not redeployed.*\(UNIT_REDEPLOY_FAILED\)$/);
  write(`'version 3'`);
  const { stdout } = await runCommand(t, [process.execPath, command, 'reload'], env);
  assert.equal(stdout, 'reloaded\n');
  await sees(/version 3/);
});

for (const instances of [1, 3]) {
  const title = `the command ends with exit code 1 when the last instance of ${instances} is given up`;
  test(title, { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const MANYCORE_TEST_GO = join(folder, 'go');
    const flags = [`--instances=${instances}`, `--processes=${instances}`, '--loops=1'];
    const child = spawn(process.execPath, [command, 'run', exits, ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, MANYCORE_TEST_GO },
    });
    t.after(() => child.kill('SIGKILL'));
    const errors = text(child.stderr);
    const ended = once(child, 'exit');
    await once(createInterface({ input: child.stdout }), 'line'); // all are deployed
    writeFileSync(MANYCORE_TEST_GO, '');
    assert.deepEqual(await ended, [1, null]);
    const failed = (await errors).split('\n').filter((line) => line.includes('UNIT_FAILED'));
    assert.ok(failed.length > 0);
    for (const each of failed) {
      assert.match(
        each,
        /^manycore: instances? .* of exits (was|were) given up .*\(UNIT_FAILED\)$/,
      );
    }
  });
}

test('a unit that does not stop well is reported at the end', { skip }, async (t) => {
  const flags = ['--instances', '2', '--loops', '1'];
  const child = spawn(process.execPath, [command, 'run', stubborn, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, MANYCORE_TEST_THROWS: 'yes' },
  });
  t.after(() => child.kill('SIGKILL'));
  const errors = text(child.stderr);
  await once(createInterface({ input: child.stdout }), 'line');
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [1, null]);
  assert.match(await errors, /did not stop well: it will not.*\(UNIT_STOP_FAILED\)/);
});

test('a second signal ends a unit that does not end, with its processes', { skip }, async (t) => {
  const flags = ['--instances', '2', '--processes', '2', '--loops', '1'];
  const child = spawn(process.execPath, [command, 'run', stubborn, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines[0]);
  const pids = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
  assert.equal(pids.length, 2);
  child.kill('SIGTERM');
  await waitFor(() => lines.includes('ends 1 unit; once more ends everything at once'));
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [1, null]);
  await waitFor(() => !pids.some(isRunning));
});

test('requests that a unit has at SIGTERM are answered', { skip }, async (t) => {
  const slow = fileURLToPath(new URL('../units/apps/slow.js', import.meta.url));
  const flags = ['--instances', '2', '--processes', '2', '--loops', '1', '--config', '{"port":0}'];
  const child = spawn(process.execPath, [command, 'run', slow, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const listening = await waitFor(() => lines[1]);
  const url = listening.replace('listening on ', 'http://');
  // Resolves with the head of the answer: they have begun then.
  const responses = await Promise.all(Array.from({ length: 8 }, () => fetch(url)));
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  for (const response of responses) assert.equal(await response.text(), 'so far');
  assert.deepEqual(await exit, [0, null]);
});

test('a unit that blocks its loop is reported with its place, then with its stack', {
  skip,
}, async (t) => {
  const naps = fileURLToPath(new URL('../units/apps/naps.js', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const end = join(folder, 'end');
  const flags = ['--instances', '1', '--processes', '1', '--loops', '1'];
  const args = [command, 'run', naps, ...flags, '--config', JSON.stringify(end)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
  const stackAt = () => lines.findIndex((line) => /^ {4}at nap \(file:.*naps\.js:/.test(line));
  await waitFor(() => stackAt() >= 0);
  const report = /^manycore: loop \d+ with naps, in process \d+, is in one callback for \d+ ms/;
  const reports = lines.slice(0, stackAt()).filter((line) => report.test(line));
  assert.ok(reports.length > 1, 'the stack is that of the second');
  // A busy machine may take too long for the place of one.
  assert.match(reports.at(-1) ?? '', / ms, at file:.*\/naps\.js:\d+:\d+$/);
  writeFileSync(end, '');
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('run with --on blocking starts threads, and ends them at SIGTERM', { skip }, async (t) => {
  const unit = fileURLToPath(new URL('../units/apps/functions.js', import.meta.url));
  const flags = ['--instances', '2', '--on', 'blocking', '--processes', '1', '--loops', '1'];
  const child = spawn(process.execPath, [command, 'run', unit, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await waitFor(() => lines[0]);
  assert.equal(lines[0], 'functions: 2 instances, on 1 loop in 1 process');
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('run reports each restart of an ended thread, and at last that it gives up', {
  skip,
}, async (t) => {
  const unit = fileURLToPath(new URL('../units/apps/dies.js', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const sign = join(folder, 'sign');
  const flags = ['--instances', '1', '--on', 'blocking', '--processes', '1', '--loops', '1'];
  const args = [command, 'run', unit, ...flags, '--config', JSON.stringify(sign)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const [out, errors]: [string[], string[]] = [[], []];
  createInterface({ input: child.stdout }).on('line', (line) => out.push(line));
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  await waitFor(() => out[0]);
  writeFileSync(sign, ''); // from now on it dies
  assert.deepEqual(await once(child, 'close'), [1, null]); // with all that it has printed
  const why = 'the thread of instance 0 of dies has ended: it was asked to';
  const lost = `manycore: instance 0 of dies is lost (${why}): it is started again in`;
  const delays = errors
    .filter((line) => line.startsWith(lost))
    .map((line) => line.slice(lost.length));
  assert.deepEqual(delays, [' 50 ms', ' 100 ms', ' 200 ms', ' 400 ms', ' 800 ms']);
  assert.match(errors[errors.indexOf('Error: it was asked to') + 1] ?? '', / at .*dies\.js:/);
  const last = errors.findLast((line) => line.startsWith('manycore: '));
  assert.match(last ?? '', /^manycore: instance 0 of dies was given up .*\(UNIT_FAILED\)$/);
});

test('the failure of a unit is one sentence and exit code 2', { skip }, async (t) => {
  const failing: [args: string[], pattern: RegExp][] = [
    [['/nowhere.js', '--instances', '2'], /there is no unit \/nowhere\.js: .*\(UNIT_INVALID\)/],
    [[hello, '--instances', 'many'], /--instances is "many": .*\(OPTION_INVALID\)/],
    [[hello, '--instances', '0'], /instances is 0: .*\(OPTION_INVALID\)/],
    [[hello, '--instances', '1', '--config', '{'], /--config is no JSON: .*\(OPTION_INVALID\)/],
    [[hello, '--instances', '1', '--on', 'moon'], /--on is "moon": it must be loop or blocking/],
    [
      [hello, '--instances', '1', '--on', 'blocking', '--config', '{"port":0}'],
      /cannot listen.*\(UNIT_START_FAILED\)/,
    ],
    [[hello, '--instances', '1', 'more'], /a unit gets --config, and no "more" \(OPTION_INVALID\)/],
    [['--config', '{', hello], /--config is no JSON: .*\(OPTION_INVALID\)/],
    [['--name', 'n', hello, 'more'], /a unit gets --config, and no "more" \(OPTION_INVALID\)/],
    [
      [hello, '--cluster', 'nats://127.0.0.1:1'],
      /no NATS server answers .*\(CLUSTER_UNREACHABLE\)/,
    ],
    [['-u', hello, '--name', 'n'], /--name is for one unit: .*units\.json \(OPTION_INVALID\)/],
    [['-u', hello, 'more'], /a unit gets --config, and no "more" \(OPTION_INVALID\)/],
    [['-u', `${hello}:0`], /instances is 0: .*\(OPTION_INVALID\)/],
    [['-u', '/nowhere.js:2'], /there is no unit \/nowhere\.js: .*\(UNIT_INVALID\)/],
    [['/nowhere.json'], /\/nowhere\.json cannot be read: .*\(CLI_FILE_NOT_FOUND\)/],
    [['--loops', '1'], /nothing to run: give a file, or units by --unit \(OPTION_INVALID\)/],
    [[], /nothing to run: .*\(OPTION_INVALID\)/],
    [[hello, '--instances', '1'], /instance 0 of hello could not start: .*\(UNIT_START_FAILED\)/],
  ];
  for (const [args, pattern] of someOf(failing, 6)) {
    const { status, stderr } = await runCommand(t, [process.execPath, command, 'run', ...args]);
    assert.match(stderr, pattern);
    assert.equal(status, 2, stderr);
  }
});

test('a malformed list of units is one sentence with its file and key', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'units.json');
  const lists: [list: string, pattern: RegExp][] = [
    ['{', /units\.json is no JSON: .*\(OPTION_INVALID\)/],
    ['[]', /units\.json is an array: it must be an object with units, .*\(OPTION_INVALID\)/],
    ['{}', /units is undefined: it must be a list of at least one unit \(OPTION_INVALID\)/],
    ['{ "units": [] }', /units is an array: it must be a list of at least one unit/],
    [
      '{ "units": ["a.js"] }',
      /units\[0\] in .*units\.json is "a\.js": it must be an object with file/,
    ],
    ['{ "units": [{}] }', /file is undefined: it must be the path/],
    [
      '{ "units": [{ "file": "a.js", "instance": 2 }] }',
      /there is no "instance" in units\[0\] in .*units\.json/,
    ],
    ['{ "units": [{ "file": "a.js", "instances": "2" }] }', /instances is "2"/],
    ['{ "units": [{ "file": "a.js", "name": 1 }] }', /name is 1: it must be a name/],
    ['{ "units": [{ "file": "a.js", "on": "moon" }] }', /on is "moon"/],
    ['{ "units": [{ "file": "a.js" }], "loops": 0 }', /loops is 0/],
    ['{ "units": [{ "file": "a.js" }], "processes": 1.5 }', /processes is 1\.5/],
    [
      '{ "units": [{ "file": "a.js" }], "strategy": "all" }',
      /strategy is "all": it must be "one-for-one" or "one-for-all" or "rest-for-one"/,
    ],
    ['{ "units": [{ "file": "a.js" }], "loop": 1 }', /there is no "loop" in .*units\.json/],
  ];
  for (const [list, pattern] of lists) {
    writeFileSync(file, list);
    const { status, stderr } = await runCommand(t, [process.execPath, command, 'run', file]);
    assert.match(stderr, pattern);
    assert.equal(status, 2, stderr);
  }
});

/** Arguments of `run` that make its files units, and the lines that it prints for them. */
const asUnits: Readonly<
  Record<string, readonly [args: readonly string[], lines: readonly RegExp[]]>
> = {
  'a flag of units before the file': [
    ['--name', 'own', sleeper],
    [/^own: 1 instance, on 1 loop in 1 process$/],
  ],
  'several by --unit': [
    ['-u', `${sleeper}:2`, '--unit', sleeper],
    [/^sleeper: 2 instances, on 1 loop /, /^sleeper: 1 instance, on 1 loop /],
  ],
  'a list in a file, as a group': [
    [],
    [/^first: 2 instances, on 1 loop /, /^sleeper: 1 instance, on 1 loop /],
  ],
};

for (const [name, [args, expected]] of Object.entries(asUnits)) {
  test(`units are run: ${name}`, { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const list = join(folder, 'units.json');
    const first = { file: relative(folder, sleeper), instances: 2, name: 'first', config: {} };
    const units = [first, { file: sleeper }];
    writeFileSync(list, JSON.stringify({ units, strategy: 'one-for-all', processes: 1 }));
    const all = args.length > 0 ? ['--processes', '1', ...args] : [list];
    const child = spawn(process.execPath, [command, 'run', '--loops', '1', ...all], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    await waitFor(() => lines.length >= expected.length);
    for (const [at, pattern] of expected.entries()) assert.match(lines[at] ?? '', pattern);
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });
}

test('without --instances, the program gets the arguments behind the file', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-run-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'program.mjs');
  writeFileSync(file, "console.log(process.argv.slice(2).join(' '));");
  const own = ['--config', 'live.json', '--cluster', '--name', 'n --instances 4', '--loops', 'all'];
  const args = [...own, '--', '--instances', '4'];
  const run = await runCommand(t, [process.execPath, command, 'run', file, ...args]);
  assert.deepEqual([run.status, run.stderr], [0, '']);
  assert.match(
    run.stdout,
    /^--config live\.json --cluster --name n --instances 4 --loops all (-- )?--instances 4\n$/,
  );
});

test('flags of a unit stand anywhere before --', () => {
  assert.deepEqual(takeUnitFlags(['--instances=3', 'x', '--name', 'n', '--', '--loops', '4']), {
    flags: { instances: 3, name: 'n' },
    rest: ['x', '--loops', '4'],
  });
  assert.throws(() => takeUnitFlags(['--loops']), { code: 'OPTION_INVALID' });
});

test('a URL or local behind --cluster makes a file a unit, a flag of that name alone does not', () => {
  const units = [
    ['--cluster', 'nats://127.0.0.1:4222', '--config', '{}', '--name', 'n'],
    ['--cluster=tls://a:1,tls://b:2'],
    ['--name', 'n', '--cluster', 'local'],
    ['x', '--instances=2'],
  ];
  const programs = [
    ['--cluster'],
    ['--cluster', 'on'],
    ['--name', 'n'],
    ['--', '--instances', '2'],
  ];
  for (const args of units) assert.equal(hasUnitFlags(args), true, args.join(' '));
  for (const args of programs) assert.equal(hasUnitFlags(args), false, args.join(' '));
});
