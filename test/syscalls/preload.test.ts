// The counting library in a command without privileges: calls have the names of the kernel, and calls with
// a common prefix are distinct.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { preloadPath } from '../../src/native.js';
import { PreloadCounts } from '../../src/syscalls/preload.js';
import {
  cannotCount,
  compile,
  countOf,
  noCompiler,
  notLinux,
  notRoot,
  scratch,
  trace,
} from './tracing.js';

const noPreload = notLinux || (!existsSync(preloadPath()) && 'the counting library was not built');
const skip = noPreload || noCompiler;

const everyCall = `
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  struct timespec moment = { 0, 1 };
  struct epoll_event event;
  char text[8];
  int events = epoll_create1(0);
  for (int i = 0; i < 100; i++) {
    access("/", 0); mkdir("/", 0700); rename("/none", "/nothing"); unlink("/none");
    readlink("/none", text, 8); poll(0, 0, 0); epoll_wait(events, &event, 1, 0);
    epoll_pwait(events, &event, 1, 0, 0); nanosleep(&moment, 0);
  }
}`;
const families = [
  /^f?access(at2?)?$/,
  /^mkdir(at)?$/,
  /^rename(at2?)?$/,
  /^unlink(at)?$/,
  /^readlink(at)?$/,
  /^p?poll$/,
  /^epoll_p?wait$/,
  /nanosleep$/,
];

test('calls of a counted command have the names of the kernel', {
  skip: skip || cannotCount.ebpf,
}, async (t) => {
  const program = compile(t, everyCall);
  const names = async (method: string): Promise<string[]> => {
    const { report } = await trace(t, ['--method', method, '--', program]);
    const often = report.calls.filter(({ count }) => (count ?? 0) >= 100);
    return often.map(({ name }) => name).sort();
  };
  const counted = await names('counters');
  assert.deepEqual(counted, await names('ebpf'));
  for (const family of families) {
    assert.ok(
      counted.some((name) => family.test(name)),
      `${family}: ${counted}`,
    );
  }
});

const forking = `
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  close(-1);
  int child = fork();
  for (int i = 0; i < 1000000; i++) close(-1);
  if (child > 0) waitpid(child, 0, 0);
}`;

test('a program that forks and runs no other counts all calls of both', { skip }, async (t) => {
  const { report } = await trace(t, ['--method', 'counters', '--', compile(t, forking)]);
  const count = countOf(report, 'close');
  assert.ok(count >= 2_000_001 && count < 2_000_100, `${count}`);
  const threads = report.threads.filter(({ calls }) => calls.some(({ name }) => name === 'close'));
  assert.ok(threads.length >= 2);
  assert.equal(new Set(threads.map(({ pid }) => pid)).size, threads.length);
});

test('a library whose path has a space counts as well', { skip: noPreload }, (t) => {
  const library = join(scratch(t), 'a b', 'preload.so');
  mkdirSync(dirname(library));
  copyFileSync(preloadPath(), library);
  const counts = PreloadCounts.create(library);
  assert.ok(typeof counts !== 'string', String(counts));
  t.after(() => counts.close());
  spawnSync(process.execPath, ['-e', ''], { env: { ...process.env, ...counts.env } });
  assert.ok(counts.read().records.length > 0);
});

const noMount =
  notRoot ||
  (spawnSync('unshare', ['--mount', 'true']).status !== 0 && 'mounts cannot be made here');
const ticking = [process.execPath, '-e', "require('fs').readFileSync('/etc/hostname')"];

test('a full folder for counts is reported, and the command runs without counts', {
  skip: noPreload || noMount,
}, async (t) => {
  const folder = scratch(t);
  const full = 'mount -t tmpfs -o size=8k full "$0" && "$@"; status=$?; ls "$0"; exit $status';
  const before = ['unshare', '--mount', 'sh', '-c', full, folder];
  const args = ['--method', 'counters', '--', ...ticking];
  const env = { TMPDIR: folder };
  const { report, status, stdout } = await trace(t, args, { before, env });
  assert.equal(status, 0);
  assert.doesNotMatch(stdout, /counts/); // nothing is left
  assert.match(report.notes.join(), /Calls are not counted: ENOSPC.* TMPDIR/);
});

test('a missing folder for counts is reported, and the command runs without counts', {
  skip: noPreload,
}, async (t) => {
  const env = { TMPDIR: `${scratch(t)}/none` };
  const { report, status } = await trace(t, ['--method', 'counters', '--', ...ticking], { env });
  assert.equal(status, 0);
  assert.match(report.notes.join(), /Calls are not counted: ENOENT.* TMPDIR/);
});

const threadAfterThread = `
#include <pthread.h>
#include <unistd.h>
void *work(void *nothing) { close(-1); return 0; }
int main(void) {
  pthread_t thread;
  for (int i = 0; i < 2100; i++) {
    if (pthread_create(&thread, 0, work, 0)) return 1;
    pthread_join(thread, 0);
  }
  return 0;
}`;

test('a report mentions threads without room in the counts only when there are some', {
  skip,
}, async (t) => {
  const program = compile(t, threadAfterThread);
  const { report } = await trace(t, ['--method', 'counters', '--', program]);
  const note = /(\d+) threads and programs had no room: their calls are missing/;
  const [, lost] = note.exec(report.notes.join()) ?? [];
  const rows = report.threads.filter(({ calls }) => calls.some(({ name }) => name === 'close'));
  assert.ok(Number(lost) >= 2100 - 2048, `${report.notes}`);
  assert.ok(rows.length + Number(lost) >= 2100, `${rows.length} rows, ${lost} lost`);
  const few = await trace(t, ['--method', 'counters', '--', ...ticking]);
  assert.doesNotMatch(few.report.notes.join(), /no room|2,048/);
});
