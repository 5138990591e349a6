// Counts of the kernel, against programs with a known number of calls, and against perf on the same run.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { preloadPath } from '../../src/native.js';
import type { TraceReport } from '../../src/syscalls/index.js';
import { waitFor, withDeadline } from '../support/index.js';
import { cannotCount, countOf, notRoot, scratch, start, trace, traceText } from './tracing.js';

const most = 20_000;
const statMany = `const fs = require('fs'); for (let i = 0; i < ${most}; i++) fs.statSync('/');`;

const noPreload = !existsSync(preloadPath()) && 'the counting library was not built';

for (const method of ['ebpf', 'raw'] as const) {
  test(`${method} counts every call of a command, from its start to its end`, {
    skip: cannotCount[method],
  }, async (t) => {
    const { report, status } = await traceText(t, method, statMany);
    assert.equal(status, 0);
    assert.equal(report.method, method);
    const count = countOf(report, 'statx') + countOf(report, 'stat');
    assert.ok(count >= most && count < most + 200, `${count}`);
    assert.equal(countOf(report, 'execve'), method === 'raw' ? 1 : 0); // not the shell that waited
  });

  test(`${method} reports the cost of its programs in the kernel`, {
    skip: cannotCount[method] || notRoot,
  }, async (t) => {
    const text = `const fs = require('fs');
      const calls = setInterval(() => { for (let i = 0; i < 1000; i++) fs.statSync('/'); });
      setTimeout(() => clearInterval(calls), 1000);`;
    const { report } = await traceText(t, method, text);
    const { kernelShare } = report.overhead;
    assert.ok(kernelShare !== null && kernelShare > 0 && kernelShare < 2, `${kernelShare}`);
  });

  test(`${method} counts calls that fail as errors, by name`, {
    skip: cannotCount[method],
  }, async (t) => {
    const text = `const fs = require('fs');
      for (let i = 0; i < 300; i++) try { fs.openSync('/nowhere/at/all'); } catch {}`;
    const { report } = await traceText(t, method, text);
    const opened = report.calls.find(({ name }) => name === 'openat');
    assert.ok((opened?.errors ?? 0) >= 300 && (opened?.errors ?? 0) < 350, `${opened?.errors}`);
  });

  test(`${method} counts a program that runs already, until its end`, {
    skip: cannotCount[method],
  }, async (t) => {
    const text = `const fs = require('fs');
      const waiting = setInterval(() => {}, 1000);
      process.once('SIGUSR2', () => {
        clearInterval(waiting);
        for (let i = 0; i < 5000; i++) fs.statSync('/');
      });
      console.log('here');`;
    const { pid } = await start(t, [process.execPath, '-e', text]);
    const onBegin = () => process.kill(pid, 'SIGUSR2');
    const { report } = await trace(t, ['--method', method, '--seconds', '60', `${pid}`], {
      onBegin,
    });
    const count = countOf(report, 'statx') + countOf(report, 'stat');
    assert.ok(count >= 5000 && count < 5100, `${count}`);
    assert.match(report.notes.join(), /has ended while it was traced/);
  });
}

test('time on the CPU and blocked time are apart: a call that waits has the one, one that works the other', {
  skip: cannotCount.ebpf,
}, async (t) => {
  const text = `${statMany}
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);`;
  const { report } = await traceText(t, 'ebpf', text);
  const main = report.threads.find(({ role }) => role === 'main loop');
  const futex = main?.calls.find(({ name }) => name === 'futex');
  const stat = main?.calls.find(({ name }) => /^statx?$/.test(name));
  assert.ok((futex?.blockedMs ?? 0) >= 690, `${futex?.blockedMs}`);
  assert.ok((futex?.onCpuMs ?? 1e9) < 350, `${futex?.onCpuMs}`);
  assert.ok((stat?.onCpuMs ?? 0) > 0);
  assert.ok((main?.systemMs ?? 0) >= (stat?.onCpuMs ?? 1e9));
  assert.ok(report.program.by === 'calls' && report.program.userMs > 0);
});

test('a thread that only computes, and is killed so, keeps its CPU time to the end', {
  skip: cannotCount.ebpf,
}, async (t) => {
  const text = `const { Worker } = require('worker_threads');
    new Worker('console.log("here"); for (;;);', { eval: true });`;
  const { pid } = await start(t, [process.execPath, '-e', text]);
  const computedMs = 400;
  const onBegin = async () => {
    const before = mostRunMs(pid);
    await waitFor(() => mostRunMs(pid) >= before + computedMs);
    process.kill(pid, 'SIGKILL');
  };
  const { report } = await trace(t, ['--method', 'ebpf', '--seconds', '60', `${pid}`], { onBegin });
  const computed = report.threads.filter(({ tid, userMs }) => tid !== pid && userMs >= computedMs);
  assert.equal(computed.length, 1, JSON.stringify(report.threads));
  assert.ok(computed[0]?.hasEnded);
});

/** Returns the CPU time of the thread of a process that has had the most. */
function mostRunMs(pid: number): number {
  const times = readdirSync(`/proc/${pid}/task`).map((tid) =>
    Number(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]),
  );
  return Math.max(...times) / 1e6;
}

test('ebpf follows children that live for moments, and puts those of one program into one line', {
  skip: cannotCount.ebpf,
}, async (t) => {
  const text = `const { execFileSync } = require('child_process');
    for (let i = 0; i < 20; i++) execFileSync('/bin/echo', ['x']);`;
  const { report } = await traceText(t, 'ebpf', text);
  const child = report.roles.find(({ role }) => role === 'child echo');
  assert.equal(child?.threads, 20);
  const calls = child?.calls ?? [];
  assert.equal(calls.find(({ name }) => name === 'write')?.count, 20);
  assert.ok(child !== undefined && child.userMs + child.systemMs > 0);
});

test('a child that runs Node has its threads in lines of their own', {
  skip: cannotCount.ebpf,
}, async (t) => {
  const text = `require('child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(statMany)}]);`;
  const { report } = await traceText(t, 'ebpf', text);
  const mains = report.threads.filter(({ role }) => role === 'main loop');
  assert.equal(mains.length, 2);
  const counts = mains.map(({ calls }) => calls.find(({ name }) => name === 'statx')?.count ?? 0);
  assert.ok(counts.some((count) => count >= most) && counts.some((count) => count < most));
});

test('without any right a command counts its own calls, children too', {
  skip: noPreload,
}, async (t) => {
  const text = `${statMany} require('child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(statMany)}]);`;
  const { report, stdout } = await traceText(t, 'counters', text);
  assert.equal(stdout, '');
  const count = countOf(report, 'statx') + countOf(report, 'newfstatat');
  assert.ok(count >= 2 * most && count < 2 * most + 400, `${count}`);
  const mains = report.threads.filter(({ role }) => role === 'main loop');
  assert.equal(mains.length, 2);
  assert.match(report.notes.join(), /counted in the C library/);
});

test('children of a counted command that live for moments have lines of their own', {
  skip: noPreload,
}, async (t) => {
  const text = `for (let i = 0; i < 5; i++)
    require('child_process').execFileSync(process.execPath, ['-e', '0']);`;
  const { report } = await traceText(t, 'counters', text);
  const mains = report.threads.filter(({ role }) => role === 'main loop');
  assert.equal(mains.length, 6);
});

test('calls that fail in a counted command are errors, and it sees the error of its own', {
  skip: noPreload,
}, async (t) => {
  const text = `let failed = 0;
    for (let i = 0; i < 300; i++)
      try { require('fs').openSync('/nowhere/at/all'); } catch (error) { failed += error.code === 'ENOENT'; }
    console.log(failed);`;
  const { report, stdout } = await traceText(t, 'counters', text);
  assert.equal(stdout, '300\n');
  const opened = report.calls.find(({ name }) => name === 'openat');
  assert.ok((opened?.errors ?? 0) >= 300 && (opened?.errors ?? 0) < 350, `${opened?.errors}`);
});

test('a counted command leaves no file behind', { skip: noPreload }, async (t) => {
  const folder = scratch(t);
  await traceText(t, 'counters', '0', { env: { TMPDIR: folder } });
  const left = readdirSync(folder).filter((name) => name.includes('counts'));
  assert.deepEqual(left, []);
});

const noPerf = (() => {
  if (cannotCount.ebpf) return cannotCount.ebpf;
  const { status } = spawnSync('perf', ['stat', '-e', 'raw_syscalls:sys_enter', 'true']);
  return status !== 0 && 'perf does not count calls here (apt-get install linux-perf)';
})();

const perfStat = ['stat', '-e', 'raw_syscalls:sys_enter', '-x', ','];
const busy = `const fs = require('fs'); let left = 200;
  function more() {
    for (let i = 0; i < 50; i++) fs.statSync('/');
    fs.readFile('/etc/hostname', () => { if (--left > 0) more(); });
  }`;

/** Returns the number of calls in perf's output. */
function perfCount(file: string): number {
  const lines = readFileSync(file, 'utf8').split('\n');
  return Number(lines.find((each) => each.includes('sys_enter'))?.split(',')[0]);
}

function checkAgainst(expected: number, counted: number): void {
  assert.ok(expected > 10_000, `${expected}`);
  assert.ok(Math.abs(counted / expected - 1) < 0.02, `perf ${expected}, trace ${counted}`);
}

test('ebpf counts within 2 % of what perf counts on the same run', { skip: noPerf }, async (t) => {
  const file = join(scratch(t), 'perf.csv');
  const perf = ['perf', ...perfStat, '-o', file];
  const flags = ['--method', 'ebpf', '--', ...perf, process.execPath, '-e', `${busy} more();`];
  const { report } = await trace(t, flags);
  const { pid } = report.threads.find(({ role }) => role === 'main loop') ?? {};
  const own = report.threads.filter((thread) => thread.pid === pid);
  checkAgainst(perfCount(file), callsOf(own));
});

function callsOf(threads: TraceReport['threads']): number {
  return threads.flatMap(({ calls }) => calls).reduce((sum, { count }) => sum + (count ?? 0), 0);
}

// raw finds children late, so both count a running program.
test('raw counts within 2 % of what perf counts on the same run', {
  skip: noPerf || cannotCount.raw,
}, async (t) => {
  const text = `${busy}
    const waiting = setInterval(() => {}, 1000);
    process.once('SIGUSR2', () => { clearInterval(waiting); more(); });
    console.log('here');`;
  const { pid } = await start(t, [process.execPath, '-e', text]);
  const file = join(scratch(t), 'perf.csv');
  // perf counts from a command on, and confirms it.
  const held = ['-o', file, '-p', `${pid}`, '--delay=-1', '--control', 'fd:3,4'];
  const perf = spawn('perf', [...perfStat, ...held], {
    stdio: ['ignore', 'ignore', 'inherit', 'pipe', 'pipe'],
  });
  t.after(() => perf.kill('SIGKILL'));
  const perfEnds = once(perf, 'exit');
  const [, , , orders, answers] = perf.stdio;
  assert.ok(orders instanceof Writable && answers instanceof Readable);
  orders.write('enable\n');
  await withDeadline(once(answers, 'data'), 20_000, 'perf counts');
  const onBegin = () => process.kill(pid, 'SIGUSR2');
  const { report } = await trace(t, ['--method', 'raw', '--seconds', '60', `${pid}`], { onBegin });
  await withDeadline(perfEnds, 20_000, 'perf ends');
  checkAgainst(perfCount(file), callsOf(report.threads));
});

test('raw follows children that run for a while', { skip: cannotCount.raw }, async (t) => {
  const child = `let left = 300;
    const timer = setInterval(() => {
      for (let i = 0; i < 10; i++) require('fs').statSync('/');
      if (--left === 0) clearInterval(timer);
    }, 10);`;
  const text = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(child)}]);`;
  const { report } = await traceText(t, 'raw', text);
  const mains = report.threads.filter(({ role }) => role === 'main loop');
  assert.equal(mains.length, 2);
  const stats = mains.map(({ calls }) => calls.find(({ name }) => name === 'statx')?.count ?? 0);
  assert.ok(Math.max(...stats) > 100, `${stats}`);
});
