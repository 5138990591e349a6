// Faults of a trace: each is one sentence with a code and a remedy, and no report is lost.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pidNamespace } from '../../src/syscalls/methods.js';
import { runCommand } from '../faults/child.js';
import { waitFor, withDeadline } from '../support/index.js';
import {
  cannotCount,
  command,
  countOf,
  notLinux,
  notRoot,
  scratch,
  start,
  ticking,
  trace,
  traceText,
} from './tracing.js';

const self = [process.execPath, command, 'trace'];
const node = process.execPath;
const skip = notLinux;
/** Words in front of a command that drop all capabilities of root. */
const rightless = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'];
const noRightless =
  notLinux ||
  notRoot ||
  (spawnSync('setpriv', ['--version']).status !== 0 && 'there is no setpriv (util-linux)');

test('a process that is gone is PROCESS_GONE', { skip }, async (t) => {
  const gone = spawnSync('true').pid;
  const { status, stderr, stdout } = await runCommand(t, [...self, `${gone}`]);
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(stderr, /^manycore: there is no process \d+ here: .* \(PROCESS_GONE\)\n$/);
});

test("another user's process is PROCESS_REFUSED", { skip: noRightless }, async (t) => {
  const { pid } = await start(t, ['sh', '-c', 'echo here; exec sleep 100'], { uid: 65_534 });
  const { status, stderr } = await runCommand(t, [...rightless, ...self, `${pid}`]);
  assert.equal(status, 2);
  assert.match(stderr, /belongs to another user \(number 65534\): .* \(PROCESS_REFUSED\)\n$/);
});

test('the error for root without a capability of the process names the capability', {
  skip: noRightless,
}, async (t) => {
  const dropped = '-sys_ptrace,-sys_nice';
  const words = ['setpriv', '--bounding-set', dropped, '--inh-caps', dropped];
  const { status, stderr } = await runCommand(t, [...words, ...self, `${process.pid}`]);
  assert.equal(status, 2);
  assert.match(
    stderr,
    /capabilities that root lacks here \(CAP_SYS_PTRACE, CAP_SYS_NICE\): .*outside/,
  );
  assert.match(stderr, /\(PROCESS_REFUSED\)\n$/);
});

test('without rights it reads counters, and reports the missing right and its cost', {
  skip: noRightless,
}, async (t) => {
  const { pid } = await start(t, [...rightless, node, '-e', ticking]);
  const { status, stdout } = await runCommand(t, [
    ...rightless,
    ...self,
    '--seconds',
    '1',
    `${pid}`,
  ]);
  assert.equal(status, 0);
  assert.match(stdout, /by counters/);
  assert.match(stdout, /CAP_BPF and CAP_PERFMON\s+are\s+missing/);
  assert.match(
    stdout.replace(/\s+/g, ' '),
    /To have it, run it as root .* Its price: a process with/,
  );
});

test('a way that was asked for and cannot work is TRACE_UNAVAILABLE', {
  skip: noRightless,
}, async (t) => {
  const { pid } = await start(t, [...rightless, node, '-e', ticking]);
  const args = [...rightless, ...self, '--method', 'ebpf', `${pid}`];
  const { status, stderr } = await runCommand(t, args);
  assert.equal(status, 2);
  assert.match(stderr, /CAP_BPF and CAP_PERFMON are missing.*\(TRACE_UNAVAILABLE\)\n$/);
});

test('a command is not left behind when its trace cannot start', {
  skip: noRightless,
}, async (t) => {
  const file = join(scratch(t), 'ran');
  const flags = ['--method', 'raw', '--', 'touch', file];
  const { status, stderr } = await runCommand(t, [...rightless, ...self, ...flags]);
  assert.equal(status, 2);
  assert.match(stderr, /TRACE_UNAVAILABLE/);
  assert.equal(existsSync(file), false);
});

const noMount =
  notLinux ||
  notRoot ||
  (spawnSync('unshare', ['--mount', 'true']).status !== 0 && 'mounts cannot be made here');

test('a kernel without BTF gets the assembled program, and the report mentions it', {
  skip: noMount || cannotCount.raw,
}, async (t) => {
  const hidden =
    '{ [ ! -e /sys/kernel/btf ] || mount -t tmpfs none /sys/kernel/btf; } && exec "$0" "$@"';
  const before = ['unshare', '--mount', 'sh', '-c', hidden];
  const args = ['--', node, '-e', "require('fs').statSync('/')"];
  const { report } = await trace(t, args, { before });
  assert.equal(report.method, 'raw');
  assert.equal(report.missing[0]?.method, 'ebpf');
  assert.match(report.missing[0]?.reason ?? '', /no BTF/);
  assert.ok(countOf(report, 'statx') + countOf(report, 'stat') > 0);
});

test('a kernel that refuses bpf(2) leaves counters', { skip: cannotCount.raw }, async (t) => {
  const env = { MANYCORE_REFUSE: 'bpf' };
  const { report } = await trace(t, ['--', node, '-e', '0'], { env });
  assert.equal(report.method, 'counters');
  assert.deepEqual(
    report.missing.map(({ method }) => method),
    ['ebpf', 'raw'],
  );
  assert.match(report.missing[1]?.reason ?? '', /the kernel refuses it/);
  assert.ok(
    report.calls.some(({ name, count }) => name === 'read' && (count ?? 0) > 0),
    'the command counts its calls itself',
  );
});

test('a command that cleans up the folder for temporary files is traced all the same', {
  skip,
}, async (t) => {
  const text = `
    const { readdirSync, rmSync } = require('node:fs');
    require('node:http').createServer((request, response) => response.end()).listen(0, function () {
      fetch('http://127.0.0.1:' + this.address().port).then(() => setTimeout(() => {
        for (const name of readdirSync(process.env.TMPDIR)) {
          if (name.startsWith('manycore-')) rmSync(process.env.TMPDIR + '/' + name, { recursive: true });
        }
        process.exit(3);
      }, 300));
    });`;
  const env = { TMPDIR: scratch(t) };
  const flags = ['--method', 'counters', '--', node, '-e', text];
  const { status, report } = await trace(t, flags, { env });
  assert.deepEqual([status, report.requests], [3, null]);
  assert.match(report.notes.join(), /Calls are not counted: ENOENT/);
});

test('a time that is longer than timers can be ends nothing', { skip }, async (t) => {
  const text = 'setTimeout(() => process.exit(4), 300)';
  const { status } = await trace(t, ['--seconds', '2592000', '--', node, '-e', text]);
  assert.equal(status, 4);
});

const noTaskset =
  notLinux ||
  (spawnSync('taskset', ['-c', '0', 'true']).status !== 0 && 'there is no taskset (util-linux)');

test('shares of the machine are of all cores, also where this process may use one', {
  skip: noTaskset,
}, async (t) => {
  const { report } = await trace(t, ['--', node, '-e', '0'], { before: ['taskset', '-c', '0'] });
  assert.equal(report.machine.cores, cpus().length);
});

test('a program other than Node is traced, and its roles are reported as unknown', {
  skip,
}, async (t) => {
  const { report } = await trace(t, ['--', 'sleep', '0.3']);
  assert.equal(report.isNode, false);
  assert.match(report.notes.join(), /no Node program/);
  assert.ok(report.threads.every(({ role }) => role === 'thread sleep'));
});

const noNamespace =
  notLinux ||
  notRoot ||
  (spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status !== 0 &&
    'namespaces cannot be made here');
const unshare = ['unshare', '--pid', '--fork', '--mount-proc'];

test('inside another PID namespace counters are read, and the reason is reported', {
  skip: noNamespace,
}, async (t) => {
  const { report } = await trace(t, ['--', node, '-e', '0'], { before: unshare });
  assert.equal(report.method, 'counters');
  assert.match(report.missing[0]?.reason ?? '', /another PID namespace/);
});

test('a process of another PID namespace is traced from outside by its outer number', {
  skip: noNamespace || cannotCount.ebpf,
}, async (t) => {
  const { pid: outer } = await start(t, [...unshare, node, '-e', ticking]);
  const children = readFileSync(`/proc/${outer}/task/${outer}/children`, 'utf8');
  const inner = Number(children);
  t.after(() => process.kill(inner, 'SIGKILL'));
  assert.notEqual(pidNamespace(inner), pidNamespace());
  const { report } = await trace(t, ['--seconds', '1', `${inner}`]);
  assert.ok(countOf(report, 'statx') > 0);
  assert.match(report.notes.join(), /another PID namespace/);
});

test('folders of PATH that may not be entered are passed by', { skip: noRightless }, async (t) => {
  const closed = scratch(t);
  chownSync(closed, 65_534, 65_534); // with mode 0700
  const env = { PATH: `${join(closed, 'below')}:${process.env['PATH']}` };
  const flags = ['--method', 'counters', '--', 'true'];
  const { status, stderr } = await runCommand(t, [...rightless, ...self, ...flags], env);
  assert.equal(status, 0, stderr);
});

test('a command that is not there, or may not run, is TRACE_COMMAND_FAILED', {
  skip,
}, async (t) => {
  const file = join(scratch(t), 'no-program');
  writeFileSync(file, 'text');
  for (const [name, reason] of [
    ['no-such-program', 'it is not on PATH'],
    ['/nowhere/program', 'there is no such file'],
    [file, 'it may not be executed'],
  ] as const) {
    const { status, stderr } = await runCommand(t, [...self, '--', name]);
    assert.equal(status, 2);
    assert.ok(stderr.includes(`${name} cannot be started: ${reason}`), stderr);
    assert.match(stderr, /\(TRACE_COMMAND_FAILED\)\n$/);
  }
});

test('the exit code of a command is passed on, and its output is its own', { skip }, async (t) => {
  const text = "console.log('of the program'); process.exitCode = 7";
  const { status, stdout, stderr } = await runCommand(t, [...self, '--', node, '-e', text]);
  assert.deepEqual([status, stdout], [7, 'of the program\n']);
  assert.match(stderr, /machine {3}user/);
});

test('a command that a signal ends is 128 and the number of the signal', { skip }, async (t) => {
  const { status } = await trace(t, ['--', 'sh', '-c', 'kill -KILL $$']);
  assert.equal(status, 137);
});

test('a full disk is TRACE_WRITE_FAILED, and the report is printed all the same', {
  skip,
}, async (t) => {
  for (const flag of ['--folded', '--folded-counts', '--output']) {
    const args = [...self, flag, '/dev/full', '--', node, '-e', '0'];
    const { status, stderr } = await runCommand(t, args);
    assert.equal(status, 2);
    assert.match(stderr, /\/dev\/full cannot be written: ENOSPC.*\(TRACE_WRITE_FAILED\)/);
    assert.match(stderr, /machine {3}user/, flag);
  }
});

test('a full device leaves the earlier report as it was', {
  skip: noMount,
}, async (t) => {
  const full = `mount -t tmpfs -o size=4k full "$0" && echo earlier > "$0/report" && "$@"; cat "$0/"*`;
  const folder = scratch(t);
  const before = ['unshare', '--mount', 'sh', '-c', full, folder];
  const flags = ['--json', '--output', join(folder, 'report')];
  const line = [...before, ...self, ...flags, '--', node, '-e', '0'];
  const { stdout, stderr } = await runCommand(t, line);
  assert.match(stderr, /report cannot be written: ENOSPC.*\(TRACE_WRITE_FAILED\)/);
  assert.equal(stdout, 'earlier\n');
});

for (const [what, isCommand] of [
  ['a process', false],
  ['a command', true],
] as const) {
  test(`SIGINT ends the trace of ${what} with its report`, { skip }, async (t) => {
    const file = join(scratch(t), 'report.json');
    const flags = [...self, '--json', '--output', file, '--seconds', '100'];
    const target = isCommand
      ? ['--', node, '-e', ticking]
      : [`${(await start(t, [node, '-e', ticking])).pid}`];
    const [name = '', ...args] = [...flags, ...target];
    const child = spawn(name, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const first = isCommand ? child.stdout : child.stderr;
    const firstOutput = new Promise<string>((resolve) =>
      first.once('data', (text) => resolve(`${text}`)),
    );
    const line = await withDeadline(firstOutput, 20_000, 'it runs');
    assert.match(line, isCommand ? /^here$/m : /^tracing process \d+ for 100 s/);
    child.kill('SIGINT');
    const status = await withDeadline(ended, 20_000, 'the trace ends');
    assert.equal(status, isCommand ? 130 : 0);
    assert.ok(readFileSync(file, 'utf8').includes('"machine"'));
  });
}

const noScript =
  notLinux ||
  (spawnSync('script', ['--version']).status !== 0 && 'there is no script (util-linux)');

test('Ctrl-C at a terminal reaches the command once, and then comes the report', {
  skip: noScript,
}, async (t) => {
  const text = `let count = 0;
    process.on('SIGINT', () => { count += 1; setTimeout(() => { console.log('heard ' + count); process.exit(3); }, 1000); });
    setInterval(() => {}, 1000);
    console.log('here');`;
  const file = join(scratch(t), 'program.cjs');
  writeFileSync(file, text);
  // A remaining shell would end by the same Ctrl-C, and print that.
  const line = ['exec', ...self, '--', node, file].join(' ');
  const child = spawn('script', ['-q', '-e', '-c', line, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    output += part;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  await waitFor(() => output.includes('here'), 20_000);
  child.stdin.write('\x03');
  assert.equal(await withDeadline(ended, 20_000, 'the command ends'), 3);
  assert.match(output, /heard 1\r\n/);
  assert.match(output, /machine {3}user/);
});

test('a program that ends while it is traced leaves its report, which mentions the end', {
  skip,
}, async (t) => {
  const { pid } = await start(t, [node, '-e', ticking]);
  const onBegin = () => void process.kill(pid);
  const { report } = await trace(t, ['--seconds', '30', `${pid}`], { onBegin });
  assert.match(report.notes.join(), new RegExp(`Process ${pid} has ended`));
});

test('--seconds 0 and a missing target are each one sentence', { skip }, async (t) => {
  for (const args of [['--seconds', '0', '1'], []]) {
    const { status, stderr } = await runCommand(t, [...self, ...args]);
    assert.equal(status, 2);
    assert.match(stderr, /OPTION_INVALID/);
  }
});

test('counters show where threads were found', { skip }, async (t) => {
  const text = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);';
  const { report } = await traceText(t, 'counters', text);
  const main = report.threads.find(({ role }) => role === 'main loop');
  const futex = main?.calls.find(({ name }) => name === 'futex');
  assert.ok((futex?.seen ?? 0) >= 1);
  assert.equal(futex?.onCpuMs, null);
  assert.equal(report.program.by, 'ticks');
});
