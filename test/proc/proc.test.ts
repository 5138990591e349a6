// Processes as /proc has them: this one, one that has ended, one that does not exist.

import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  byStart,
  bytesIn,
  findProcess,
  isAlive,
  namesIn,
  parseStat,
  programPath,
  readStat,
  readText,
  rssBytesOf,
  runningStat,
  textOf,
} from '../../src/proc/index.js';
import { waitFor } from '../support/index.js';

const skip = process.platform !== 'linux' && 'there is no /proc';

test('a name may have brackets and spaces in it', () => {
  const { name, parentPid, userMs, systemMs } = parseStat(
    '7 (a) R (b) S 1 7 7 0 -1 4194304 100 0 0 0 31 12 4 5 20 0 1 0 100',
  );
  assert.deepEqual([name, parentPid, userMs, systemMs], ['a) R (b', 1, 310, 120]);
});

test('flags identify a thread of the kernel, not missing values', () => {
  const kernel = parseStat('2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 25');
  assert.equal(kernel.isOfKernel, true);
  const ending = parseStat('7 (node) R 1 7 7 0 -1 4194308 100 0 0 0 31 12 4 5 20 0 1 0 100');
  assert.equal(ending.isOfKernel, false);
});

test('a figure that is not there is 0', () => {
  const status = 'VmPeak:\t  20 kB\nVmRSS:\t  12 kB\n';
  assert.equal(bytesIn(status, 'VmRSS'), 12 * 1024);
  assert.equal(bytesIn(status, 'VmSwap'), 0);
});

test('this process is there, with its parent and memory', { skip }, () => {
  assert.equal(runningStat(process.pid)?.parentPid, process.ppid);
  assert.ok(rssBytesOf(process.pid) > 2 ** 20);
  assert.deepEqual(findProcess(process.pid), {
    pid: process.pid,
    folder: '/proc/self',
    isContained: false,
  });
});

test('a program has the path that it was started with, or the name that it gave itself', {
  skip,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-program-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(
    join(folder, 'ä.mjs'),
    'process.send(1); process.on("message", (title) => { process.title = title; process.send(2); })',
  );
  const execArgv = ['--conditions', 'odd', '--no-warnings', '--import', 'data:text/javascript,'];
  const child = fork('./ä.mjs', ['more.js'], { cwd: folder, execArgv });
  t.after(() => child.kill('SIGKILL'));
  const pid = child.pid ?? 0;
  await once(child, 'message');
  assert.equal(programPath(pid), join(realpathSync(folder), 'ä.mjs'));
  child.send('odd name');
  await once(child, 'message');
  assert.equal(programPath(pid), 'odd name');
  const evaluated = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  t.after(() => evaluated.kill('SIGKILL'));
  assert.equal(programPath(evaluated.pid ?? 0), '');
  assert.equal(programPath(0), '');
});

test('a zombie does not run', { skip }, async (t) => {
  // The shell becomes a sleep, which waits for no child; only then the child ends.
  const line = 'cat <&3 >/dev/null & echo $!; exec sleep 1000';
  const parent = spawn('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] });
  t.after(() => parent.kill('SIGKILL'));
  const { stdout } = parent;
  assert.ok(stdout !== null);
  const [text] = await once(stdout, 'data');
  const pid = Number(text);
  await waitFor(() => readStat(`/proc/${parent.pid}`)?.name === 'sleep');
  assert.equal(isAlive(pid), true);
  parent.stdio[3]?.destroy();
  await waitFor(() => !isAlive(pid));
  assert.equal(readStat(`/proc/${pid}`)?.state, 'Z');
  assert.throws(() => findProcess(pid), { code: 'PROCESS_GONE' });
});

test('reads of a missing process are empty, and only a look-up throws', () => {
  const none = 2 ** 31 - 1;
  assert.equal(isAlive(none), false);
  assert.equal(rssBytesOf(none), 0);
  assert.deepEqual(namesIn(`/proc/${none}/task`), []);
  assert.deepEqual([readText('/nowhere/at/all'), textOf('/nowhere/at/all')], [undefined, '']);
  if (!skip) assert.throws(() => findProcess(none), { code: 'PROCESS_GONE' });
});

test('threads are in the order of their start, also after their numbers began again', () => {
  assert.deepEqual([10_001, 9_998, 10_000].sort(byStart(9_998)), [9_998, 10_000, 10_001]);
  assert.deepEqual([301, 32_766, 32_767].sort(byStart(32_766)), [32_766, 32_767, 301]);
});
