// The end of traces: by --seconds, by signals, and with their program; always with a report, and without
// leftover processes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { preloadPath } from '../../src/native.js';
import { isAlive } from '../../src/proc/index.js';
import { waitFor, withDeadline } from '../support/index.js';
import { cannotCount, command, notLinux, scratch, start, ticking, trace } from './tracing.js';

const skip = notLinux;

test('--seconds ends a command with all that it started', { skip }, async (t) => {
  const file = join(scratch(t), 'pid');
  const shell = `sleep 100 & echo $! > ${file}; wait; wait`;
  const args = ['--method', 'counters', '--seconds', '1', '--', 'sh', '-c', shell];
  const { status } = await trace(t, args);
  assert.equal(status, 143);
  assert.equal(isAlive(Number(readFileSync(file, 'utf8'))), false);
});

test('a command that takes no notice of SIGTERM is killed, and its report is there before', {
  skip,
}, async (t) => {
  const file = join(scratch(t), 'report.json');
  const text = `process.on('SIGTERM', () => console.log('asked ' + require('fs').existsSync(${JSON.stringify(file)})));
    ${ticking}`;
  const traceFor = async (seconds: number): Promise<[exitCode: unknown, output: string]> => {
    const flags = ['--method', 'counters', '--seconds', `${seconds}`, '--json', '--output', file];
    const args = [command, 'trace', ...flags, '--', process.execPath, '-e', text];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    return [await withDeadline(ended, 60_000, 'the trace ends'), output];
  };
  let [exitCode, output] = await traceFor(1);
  // A program may not listen for the signal yet on a busy machine.
  if (!output.includes('here')) [exitCode, output] = await traceFor(10);
  assert.equal(exitCode, 137);
  assert.match(output, /asked true/);
});

test('SIGHUP ends the trace of a command with its report, and its file of counts is gone', {
  skip: skip || (!existsSync(preloadPath()) && 'the counting library was not built'),
}, async (t) => {
  const folder = scratch(t);
  const file = join(folder, 'report.json');
  const flags = ['--method', 'counters', '--json', '--output', file];
  const args = [command, 'trace', ...flags, '--', process.execPath, '-e', ticking];
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let hasBegun = false;
  child.stdout.once('data', () => {
    hasBegun = true;
  });
  await waitFor(() => hasBegun, 20_000);
  const counts = () => readdirSync(folder).filter((name) => name.includes('counts'));
  assert.equal(counts().length, 1);
  child.kill('SIGHUP');
  assert.equal(await withDeadline(ended, 20_000, 'the trace ends'), 129);
  assert.ok(readFileSync(file, 'utf8').includes('"machine"'));
  assert.deepEqual(counts(), []);
});

for (const method of ['counters', 'raw'] as const) {
  test(`${method}: a program that has ended while it was traced keeps its times and reads`, {
    skip: method === 'raw' ? cannotCount.raw : skip,
  }, async (t) => {
    const text = `console.log('here');
      process.once('SIGUSR2', () => {
        const end = Date.now() + 2500;
        while (Date.now() < end) require('fs').readFileSync('/proc/self/stat');
        process.exit();
      });
      setInterval(() => {}, 1000);`;
    const { pid } = await start(t, [process.execPath, '-e', text]);
    const onBegin = () => process.kill(pid, 'SIGUSR2');
    const args = ['--method', method, '--seconds', '60', `${pid}`];
    const { report } = await trace(t, args, { onBegin });
    const { userMs, systemMs, reads } = report.program;
    assert.match(report.notes.join(), new RegExp(`Process ${pid} has ended`));
    assert.ok(userMs + systemMs > 0);
    assert.ok((reads ?? 0) > 0, `${reads}`);
  });
}
