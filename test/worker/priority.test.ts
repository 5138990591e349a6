// The nice value of workers, as the kernel has it for each of their threads.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';
import { Pool } from '../../src/public.js';
import { library, runProgram } from '../faults/child.js';

const linux = { skip: process.platform !== 'linux' && 'nice values of threads are those of Linux' };

/** The nice values of all threads of this process, without repeats. */
function niceValues(): number[] {
  const values = readdirSync('/proc/self/task').map((id) => {
    const stat = readFileSync(`/proc/self/task/${id}/stat`, 'utf8');
    // Field 19 (proc_pid_stat(5)); the second one is a name in brackets, which may have spaces.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
  });
  return [...new Set(values)];
}

test('niceIncrement is added in all threads of a worker process', linux, async () => {
  await using pool = new Pool({ size: 1, niceIncrement: 4 });
  const own = os.getPriority();
  assert.deepEqual(await pool.run(niceValues), [Math.min(19, own + 4)]);
  assert.equal(os.getPriority(), own);
});

test('niceIncrement is that of a worker thread alone', linux, async () => {
  await using pool = new Pool({ worker: 'thread', size: 1, niceIncrement: 4 });
  const own = os.getPriority();
  assert.equal(await pool.run(() => os.getPriority()), Math.min(19, own + 4));
  assert.equal(os.getPriority(), own);
});

test('without niceIncrement workers have the nice value of the program', async () => {
  await using pool = new Pool({ size: 1 });
  assert.equal(await pool.run(() => os.getPriority()), os.getPriority());
});

test('workers of a program that is nicer than others stay at 19 or below', linux, async (t) => {
  const text = `
    import { getPriority, setPriority } from 'node:os';
    import { Pool } from ${JSON.stringify(library)};
    setPriority(15);
    const pool = new Pool({ size: 1, niceIncrement: 10 });
    console.log(await pool.run(() => getPriority()));
    await pool.close();`;
  const { stdout, stderr, status } = await runProgram(t, text);
  assert.equal(status, 0, stderr);
  assert.equal(stdout, '19\n');
});
