// The nice value of workers, as the kernel has it for each of their threads.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';
import { Pool } from '../../src/public.js';
import { library, runProgram } from '../faults/child.js';
import { programFolder, runNode } from '../pool/programs.js';

const linux = { skip: process.platform !== 'linux' && 'nice values of threads are those of Linux' };

/** The nice values of all threads of this process. */
function niceValues(): number[] {
  return readdirSync('/proc/self/task').flatMap((id) => {
    try {
      const stat = readFileSync(`/proc/self/task/${id}/stat`, 'utf8');
      // Field 19 (proc_pid_stat(5)); the second one is a name in brackets, which may have spaces.
      return [Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])];
    } catch {
      return []; // a thread that has ended
    }
  });
}

test('niceIncrement is added in all threads of a worker process', linux, async () => {
  await using pool = new Pool({ size: 1, niceIncrement: 4 });
  const own = os.getPriority();
  const values = new Set(await pool.run(niceValues));
  assert.deepEqual(values, new Set([Math.min(19, own + 4)]));
  assert.equal(os.getPriority(), own);
});

test('niceIncrement is that of a worker thread alone', linux, async () => {
  await using pool = new Pool({ worker: 'thread', size: 1, niceIncrement: 4 });
  const own = os.getPriority();
  assert.equal(await pool.run(() => os.getPriority()), Math.min(19, own + 4));
  assert.equal(os.getPriority(), own);
});

test("a worker thread leaves its nice value to no thread of libuv's pool", linux, async (t) => {
  // CommonJS: the loader of ES modules may have started that pool before.
  const text = `
    const { readdirSync, readFileSync } = require('node:fs');
    const { getPriority } = require('node:os');
    const { Pool } = require('manycore');
    const niceValues = ${niceValues.toString()};
    (async () => {
      const pool = new Pool({ worker: 'thread', size: 1, niceIncrement: 4 });
      const own = getPriority();
      await pool.run(async () => {
        const { stat } = process.getBuiltinModule('node:fs/promises');
        await Promise.all([1, 2, 3, 4].map(() => stat('/')));
      });
      console.log(JSON.stringify(niceValues().filter((nice) => nice !== own)), own);
      await pool.close();
    })();`;
  const folder = programFolder(t, { 'main.cjs': text });
  const { lines, stderr, exitCode } = await runNode(folder, ['main.cjs']);
  assert.equal(exitCode, 0, stderr);
  const own = os.getPriority();
  assert.deepEqual(lines, [`[${Math.min(19, own + 4)}] ${own}`]);
});

test('without niceIncrement workers have the nice value of the program', async () => {
  await using pool = new Pool({ size: 1 });
  assert.equal(await pool.run(() => os.getPriority()), os.getPriority());
});

test('a nice value above 19 becomes 19', linux, async (t) => {
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
