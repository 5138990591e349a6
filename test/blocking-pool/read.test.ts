// The thread pool of running programs, and the errors where it cannot be read.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { type BlockingPoolReading, readBlockingPool } from '../../src/blocking-pool/index.js';
import { hasCode } from '../../src/errors.js';
import { childrenOf, waitFor } from '../support/index.js';
import {
  changing,
  idle,
  saturated,
  skip,
  skipCounting,
  startProgram,
  withoutSymbols,
} from './programs.js';

test('nine long jobs for four threads leave five waiting', {
  skip: skip || skipCounting,
}, async (t) => {
  const { pid } = await startProgram(t, saturated());
  // Five also wait for a moment while the jobs are queued, before the threads take theirs.
  await reads(pid, {
    threads: 4,
    idleThreads: 0,
    waitingJobs: 5,
    waitingLookups: 0,
    method: 'memory',
    problem: '',
  });
});

/** Resolves once this is read. */
async function reads(pid: number, expected: Partial<BlockingPoolReading>): Promise<void> {
  await waitFor(() => {
    const read = readBlockingPool(pid);
    assert.deepEqual({ ...read, ...expected }, read);
    return true;
  });
}

test('lookups that wait are counted one by one', { skip: skip || skipCounting }, async (t) => {
  const { pid } = await startProgram(t, saturated({ jobs: 6, lookups: 3 }));
  // The last thread may still be on its way to its job when all lookups are there.
  await waitFor(() => {
    const { waitingJobs, waitingLookups } = readBlockingPool(pid);
    return waitingJobs === 5 && waitingLookups === 3;
  });
  assert.equal(readBlockingPool(pid).idleThreads, 0);
});

test('no job of an idle program waits', { skip: skip || skipCounting }, async (t) => {
  const { pid } = await startProgram(t, idle);
  // A job may be queued whose thread is about to wake.
  await reads(pid, { threads: 4, idleThreads: 4, waitingJobs: 0 });
});

test('the pool of this process is read, too', { skip: skip || skipCounting }, async () => {
  await reads(process.pid, { waitingJobs: 0 });
  const { threads } = readBlockingPool();
  assert.equal(readBlockingPool(process.pid).threads, threads);
});

test('counts read during changes are far below those that a torn address would give', {
  skip: skip || skipCounting,
}, async (t) => {
  const { pid } = await startProgram(t, changing);
  await waitFor(() => readBlockingPool(pid).threads === 4);
  for (let at = 0; at < 3000; at += 1) {
    const { threads, idleThreads, waitingJobs = -1 } = readBlockingPool(pid);
    assert.equal(threads, 4);
    assert.ok(idleThreads >= 0 && idleThreads <= 4, String(idleThreads));
    // 50 jobs exist. One that is taken and queued anew during the walk counts again where its entry has another
    // address, so a walk that was interrupted counts some more. A torn address would lead to thousands.
    assert.ok(waitingJobs >= 0 && waitingJobs <= 1000, String(waitingJobs));
  }
});

test('named threads of an executable without symbols are seen', {
  skip,
}, async (t) => {
  const { pid } = await startProgram(t, saturated(), { command: [withoutSymbols(t)] });
  if (Number(process.versions.node.split('.')[0]) < 22) {
    assert.throws(
      () => readBlockingPool(pid),
      ({ code, message }) =>
        code === 'THREADPOOL_UNREADABLE' &&
        /stripped of symbols.*Node from nodejs\.org/.test(message),
    );
    return;
  }
  await waitFor(() => readBlockingPool(pid).threads === 4);
  await waitFor(() => readBlockingPool(pid).idleThreads === 0);
  const { waitingJobs, method: how, problem } = readBlockingPool(pid);
  assert.equal(waitingJobs, undefined);
  assert.equal(how, 'threads');
  assert.match(problem, /stripped of symbols/);
});

test('a process that has ended is PROCESS_GONE', { skip }, async (t) => {
  const { child, pid } = await startProgram(t, '');
  await waitFor(() => child.exitCode === 0);
  throwsCode(pid, 'PROCESS_GONE');
  throwsCode(2 ** 31 - 1, 'PROCESS_GONE');
});

test('a zombie is PROCESS_GONE', { skip }, async (t) => {
  const text = `
    const child = require('node:child_process').spawn('true');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
  const { pid } = await startProgram(t, text);
  const child = await waitFor(() => zombieOf(pid));
  throwsCode(child, 'PROCESS_GONE');
});

function zombieOf(parent: number): number | undefined {
  const { stdout } = spawnSync('ps', ['-o', 'pid=,stat=', '--ppid', String(parent)]);
  const [pid, state] = stdout.toString().trim().split(/\s+/);
  return state?.startsWith('Z') ? Number(pid) : undefined;
}

test('a process of another program is PROCESS_NOT_NODE', { skip }, async (t) => {
  const { pid } = await startProgram(t, '', {
    command: ['sh', '-c', 'read line'],
    stdio: ['pipe'],
  });
  throwsCode(pid, 'PROCESS_NOT_NODE');
});

function throwsCode(pid: number, code: 'PROCESS_GONE' | 'PROCESS_NOT_NODE'): void {
  assert.throws(
    () => readBlockingPool(pid),
    (error: unknown) => hasCode(error, code),
  );
}

const isRoot = process.getuid?.() === 0;
const nobody = 65534;
const index = new URL('../../src/blocking-pool/index.js', import.meta.url).href;
const reader = `
  import { readBlockingPool } from ${JSON.stringify(index)};
  try {
    console.log(JSON.stringify(readBlockingPool(Number(process.argv[1]))));
  } catch ({ code, message }) {
    console.log(JSON.stringify({ code, message }));
  }`;

/** Returns what another process reads, or its error; `undefined` when it cannot be started. */
function readElsewhere(
  pid: number,
  command: readonly string[],
  uid?: number,
): { code?: string } | undefined {
  const [file = '', ...args] = [...command, process.execPath];
  const options = uid === undefined ? {} : { uid, gid: uid };
  const module = ['--input-type=module', '-e', reader, String(pid)];
  const { stdout, status } = spawnSync(file, [...args, ...module], options);
  return status === 0 ? JSON.parse(stdout.toString()) : undefined;
}

test("another user's process is PROCESS_REFUSED", { skip }, async (t) => {
  // Process 1 belongs to root; as root, `nobody` reads a program of ours.
  const pid = isRoot ? (await startProgram(t, idle)).pid : 1;
  const read = isRoot ? readElsewhere(pid, [], nobody) : readElsewhere(pid, []);
  if (read === undefined) t.skip('another user cannot read these files');
  else assert.equal(read.code, 'PROCESS_REFUSED');
});

const unshare = [
  'unshare',
  ...(isRoot ? [] : ['--user', '--map-root-user']),
  '--pid',
  '--fork',
  '--kill-child',
];
const canUnshare = !skip && spawnSync('unshare', [...unshare.slice(1), 'true']).status === 0;
const skipNamespaces = !canUnshare && 'no PID namespace can be made here';

test('a process is PROCESS_OTHER_PID_NAMESPACE inside a namespace with the /proc of another', {
  skip: skip || skipNamespaces,
}, async (t) => {
  const { pid } = await startProgram(t, idle);
  assert.equal(readElsewhere(pid, unshare)?.code, 'PROCESS_OTHER_PID_NAMESPACE');
  assert.equal(readElsewhere(pid, [...unshare, '--mount-proc'])?.code, 'PROCESS_GONE');
});

test('a process in a namespace of its own is read from outside, if it is open', {
  skip: skip || skipNamespaces || skipCounting,
}, async (t) => {
  const { pid: outer } = await startProgram(t, saturated(), {
    command: [...unshare, process.execPath],
  });
  const pid = await waitFor(() => childrenOf(outer)[0]?.pid);
  await waitFor(() => readBlockingPool(pid).waitingJobs === 5);
  if (!isRoot) return;
  const read = readElsewhere(pid, [], nobody);
  if (read !== undefined) assert.equal(read.code, 'PROCESS_OTHER_PID_NAMESPACE');
});
