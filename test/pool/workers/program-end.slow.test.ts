// The end of a program is the end of its workers: their exit listeners run, their coverage is written,
// and the program waits for them a short while, however it ends.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { library, runProgram } from '../../faults/child.js';
import { isRunning } from '../../support/index.js';

const listen = `() => {
  process.on('exit', () => {
    fs.writeSync(2, 'flushed ' + process.pid + '\\n');
  });
  return process.pid;
}`;

/** Each way to use workers without ever closing a pool. */
const uses = {
  'run()': `const pids = [await run(${listen})];`,
  'a pool': `const pool = new Pool({ size: 2 }); await pool.warm(); const pids = [await pool.run(${listen})];`,
  'a pool over a socket': `const pool = new Pool({ size: 1, channel: 'socket' }); const pids = [await pool.run(${listen})];`,
  'pmap()': `const pids = await pmap([1], ${listen});`,
  'workers of a concurrent pool': `const pool = new Pool({ size: 1, concurrentTasksPerWorker: 4 }); const pids = [await pool.run(${listen})];`,
} as const;

/** Each way to end, and the exit code. */
const ends = {
  'by itself': ['', 0],
  'by process.exit()': ['process.exit(7);', 7],
  'by an error that nothing caught': ["setTimeout(() => { throw new Error('gone'); }, 1);", 1],
  'by a rejection that nothing caught': ["Promise.reject(new Error('gone'));", 1],
} as const;

function program(use: string, end: string): string {
  return `import fs from 'node:fs';
    import { Pool, pmap, run } from ${JSON.stringify(library)};
    ${use}
    console.log(JSON.stringify(pids));
    ${end}`;
}

for (const [useName, use] of Object.entries(uses)) {
  for (const [endName, [end, code]] of Object.entries(ends)) {
    test(`${useName}: the exit listeners of workers run when the program ends ${endName}`, async (t) => {
      const { status, stdout, stderr } = await runProgram(t, program(use, end));
      const pids: number[] = JSON.parse(stdout);
      assert.equal(status, code, stderr);
      for (const pid of pids) {
        assert.match(stderr, new RegExp(`^flushed ${pid}$`, 'm'));
        assert.equal(isRunning(pid), false, 'the worker has ended before its program');
      }
    });
  }
}

test('exit listeners of thread workers run when the program ends by itself', async (t) => {
  const use = `const pool = new Pool({ size: 1, worker: 'thread' }); const pids = [await pool.run(${listen})];`;
  const { status, stderr } = await runProgram(t, program(use, ''));
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^flushed/m);
});

test('workers of a worker thread run their exit listeners when the thread ends', async (t) => {
  const { status, stderr } = await runProgram(
    t,
    `import fs from 'node:fs';
     import { Worker, isMainThread } from 'node:worker_threads';
     import { fileURLToPath } from 'node:url';
     import { run } from ${JSON.stringify(library)};
     if (isMainThread) new Worker(fileURLToPath(import.meta.url));
     else await run(${listen});`,
  );
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^flushed/m);
});

test('a program whose loop ends twice may call workers in between', async (t) => {
  const { status, stdout, stderr } = await runProgram(
    t,
    `import { run } from ${JSON.stringify(library)};
     process.once('beforeExit', async () => console.log(await run(() => 2)));
     console.log(await run(() => 1));`,
  );
  assert.deepEqual([status, stdout], [0, '1\n2\n'], stderr);
});

test('workers of size.min that left at the end of a program are not started again', async (t) => {
  const { status, stdout, stderr } = await runProgram(
    t,
    `import { Pool } from ${JSON.stringify(library)};
     const pool = new Pool({ size: { min: 2, max: 3 } });
     process.on('exit', () => console.log(pool.stats().startedWorkers));
     await pool.warm(2);`,
  );
  assert.deepEqual([status, stdout], [0, '2\n'], stderr);
});

test('a worker that does not leave is ended after the grace time', async (t) => {
  const { status, stdout, stderr } = await runProgram(
    t,
    `import { run } from ${JSON.stringify(library)};
     console.log(await run(() => { process.on('exit', () => { for (;;); }); return process.pid; }));`,
  );
  assert.equal(status, 0, stderr);
  assert.equal(isRunning(Number(stdout)), false);
});

test('a worker in an endless loop does not hold process.exit()', async (t) => {
  const { status } = await runProgram(
    t,
    `import { Pool } from ${JSON.stringify(library)};
     const pool = new Pool({ size: 1 });
     await pool.warm();
     pool.run(() => { for (;;); }).catch(() => {});
     process.exit(3);`,
  );
  assert.equal(status, 3);
});

function coveredFunctions(folder: string, name: string): unknown[] {
  return readdirSync(folder).flatMap((file) => {
    const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    return result
      .filter(({ url }: { url: string }) => url.endsWith(name))
      .flatMap(({ functions }: { functions: unknown[] }) => functions);
  });
}

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-coverage-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

for (const end of ['', 'process.exit(0);']) {
  test(`each worker writes its coverage at the end of the program ${end}`, async (t) => {
    const folder = folderFor(t);
    const { status, stderr } = await runProgram(
      t,
      `import { tmpdir } from 'node:os';
       import { run } from ${JSON.stringify(library)};
       await run(() => tmpdir());
       ${end}`,
      { env: { NODE_V8_COVERAGE: folder } },
    );
    assert.equal(status, 0, stderr);
    assert.equal(readdirSync(folder).length, 2);
    assert.notEqual(coveredFunctions(folder, 'worker/inside/entry.js').length, 0);
  });
}
