// Programs that start others: no child is lost, for any number of them, ended or not when the trace ends.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseStat } from '../../src/proc/index.js';
import type { TraceReport } from '../../src/syscalls/index.js';
import { cannotCount, compile, countOf, noCompiler, trace } from './tracing.js';

function roleIn({ roles }: TraceReport, name: string) {
  return roles.find(({ role }) => role === name);
}

test('ebpf distinguishes threads of Node children while it has room, then counts them by name', {
  skip: cannotCount.ebpf,
}, async (t) => {
  const children = 130;
  const text = "for (let i = 0; i < 200; i++) require('fs').statSync('/')";
  const loop = `i=0; while [ $i -lt ${children} ]; do i=$((i+1)); "$0" -e "${text}"; done`;
  const args = ['--method', 'ebpf', '--', 'sh', '-c', loop, process.execPath];
  const { report } = await trace(t, args);
  const count = countOf(report, 'statx') + countOf(report, 'stat');
  assert.ok(count >= children * 200 && count < children * 230, `${count}`);
  const mains = roleIn(report, 'main loop');
  assert.ok(mains !== undefined && mains.threads > 10 && mains.threads < children);
  const joined = roleIn(report, 'child node');
  const statOf = joined?.calls.find(({ name }) => /^statx?$/.test(name));
  assert.ok((statOf?.count ?? 0) >= (children - mains.threads) * 200, `${statOf?.count}`);
  assert.equal(roleIn(report, 'others'), undefined);
});

const manyThreads = `
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { most = 1200 };
pthread_barrier_t start, end;
void *work(void *nothing) {
  pthread_barrier_wait(&start);
  for (int i = 0; i < 10000; i++) syscall(SYS_getppid);
  pthread_barrier_wait(&end);
}
int main(void) {
  pthread_t threads[most];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  pthread_barrier_init(&start, 0, most);
  pthread_barrier_init(&end, 0, most);
  for (int i = 0; i < most; i++) if (pthread_create(&threads[i], &small, work, 0)) return 1;
  for (int i = 0; i < most; i++) pthread_join(threads[i], 0);
  return 0;
}`;

test('ebpf counts threads beyond its records together, loses no call of theirs, and reports it', {
  skip: cannotCount.ebpf || noCompiler,
}, async (t) => {
  const { report, status } = await trace(t, ['--method', 'ebpf', '--', compile(t, manyThreads)]);
  assert.equal(status, 0);
  const count = countOf(report, 'getppid');
  assert.equal(count, 1200 * 10_000);
  const others = roleIn(report, 'others');
  assert.ok(others !== undefined && others.threads > 100, `${others?.threads}`);
  assert.match(report.notes.join(), /1,023 threads .* "others"/);
});

test('user time of a child that is no Node and still runs is in its line, and in the program', {
  skip: cannotCount.ebpf,
}, async (t) => {
  const shell = 'sh -c "while :; do :; done" & wait';
  const args = ['--method', 'ebpf', '--seconds', '2', '--', 'sh', '-c', shell];
  const { report } = await trace(t, args);
  const children = report.threads.filter(({ role }) => role === 'child sh');
  const busy = children.find(({ userMs }) => userMs > 10);
  assert.equal(busy?.hasEnded, false, JSON.stringify(children));
  assert.ok(report.program.userMs >= (busy?.userMs ?? 1e9));
});

test('ebpf measures the CPU time of short-lived children as the kernel reports it to their parent', {
  skip: cannotCount.ebpf,
}, async (t) => {
  const children = 800;
  // A shell includes the times of its waited-for children, in hundredths of a second.
  const loop = `i=0; while [ $i -lt ${children} ]; do i=$((i+1)); /bin/true; done; read -r line < /proc/$$/stat; echo "$line"`;
  const { report, stdout } = await trace(t, ['--method', 'ebpf', '--', 'sh', '-c', loop]);
  const reported = parseStat(stdout).children;
  const reportedMs = reported.userMs + reported.systemMs;
  const lines = report.threads.filter(({ tid }) => tid === 0);
  const tracedMs = lines.reduce((sum, { userMs, systemMs }) => sum + userMs + systemMs, 0);
  assert.ok(
    Math.abs(tracedMs / reportedMs - 1) < 0.1,
    `reported ${reportedMs} ms, traced ${tracedMs} ms`,
  );
  // Neither call returns to its program.
  for (const name of ['execve', 'exit_group']) {
    const calls = lines.flatMap((line) => line.calls.filter((call) => call.name === name));
    const each = calls.map(({ count, onCpuMs }) => [count, (onCpuMs ?? 0) > 0]);
    assert.deepEqual(each, [[children, true]], name);
  }
});
