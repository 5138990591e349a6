// `manycore doctor` beside programs that run, with what is wrong with each of them.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readBlockingPool } from '../../src/blocking-pool/index.js';
import { sampleProcess } from '../../src/cli/commands/doctor/doctor-samples.js';
import {
  idle,
  saturated,
  skip,
  skipCounting,
  startProgram,
  withoutSymbols,
} from '../blocking-pool/programs.js';
import { type Ended, runCommand } from '../faults/child.js';
import { ownRuntime } from '../observe/runtime.js';
import { folder, listens, skip as skipServing } from '../serve/served.js';
import { waitFor } from '../support/index.js';
import { command, startWith } from './serving.js';

function doctor(
  t: TestContext,
  args: readonly string[],
  env?: Record<string, string>,
): Promise<Ended> {
  return runCommand(t, [process.execPath, command, 'doctor', ...args], env);
}

test('a program with waiting jobs has a problem, with numbers and a remedy', {
  skip: skip || skipCounting,
}, async (t) => {
  const { pid } = await startProgram(t, saturated());
  await waitFor(() => readBlockingPool(pid).waitingJobs === 5);
  const { status, stdout } = await doctor(t, [String(pid)]);
  assert.equal(status, 1);
  assert.match(stdout, /\(process \d+\)$/m);
  assert.match(stdout, /^PROBLEM blocking pool +4 threads; 5 jobs wait/m);
  assert.match(stdout, /costs: calls of fs/);
  assert.match(stdout, /→ \S/);
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
});

test('a program with nothing to do is well, as text and as JSON', { skip }, async (t) => {
  const { pid } = await startProgram(t, idle);
  const { status, stdout } = await doctor(t, [String(pid)]);
  assert.equal(status, 0, stdout);
  const asJson = await doctor(t, [String(pid), '--json']);
  const { isWell, findings, programs } = JSON.parse(asJson.stdout);
  assert.deepEqual({ isWell, findings }, { isWell: true, findings: [] });
  assert.equal(programs[0].pid, pid);
  for (const { what, state, detail } of programs[0].findings) assert.ok(what && state && detail);
});

test('a program that computes all the time gets advice', { skip }, async (t) => {
  const { pid } = await startProgram(t, 'for (;;);');
  const { stdout } = await doctor(t, [String(pid)]);
  assert.match(stdout, /^ADVICE +main thread +at work in (9\d|100) %/m);
});

const heapOf52MiB =
  'globalThis.kept = Array.from({ length: 52 }, () => new Array(131072).fill(1.5));';

for (const [where, ran, options] of [
  ['flags', [process.execPath, '--max-old-space-size=64'], {}],
  ['NODE_OPTIONS', [process.execPath], { NODE_OPTIONS: '--max-old-space-size=64' }],
] as const) {
  test(`a heap near its limit is found, with the limit in ${where}`, { skip }, async (t) => {
    const text = `${heapOf52MiB} setInterval(() => {}, 1000);`;
    const env = { PATH: process.env['PATH'], ...options };
    const { pid } = await startProgram(t, text, { command: [...ran], env });
    await waitFor(async () => {
      const { stdout } = await doctor(t, [String(pid)]);
      return /^ADVICE +heap limit +64 MiB \((--max-old-space-size|NODE_OPTIONS)\)/m.test(stdout);
    });
  });
}

test('a flag of ours does not count for another program, nor for the next one', {
  skip,
}, async (t) => {
  const before = process.env['NODE_OPTIONS'];
  process.env['NODE_OPTIONS'] = '--max-old-space-size=100';
  t.after(() => {
    if (before === undefined) delete process.env['NODE_OPTIONS'];
    else process.env['NODE_OPTIONS'] = before;
  });
  const { pid } = await startProgram(t, idle);
  for (const time of ['first', 'second', 'third']) {
    assert.equal((await sampleProcess(pid)).heapLimit, undefined, time);
  }
});

test('the limit in the configuration of a server is the one that is shown', {
  skip: skip || skipServing,
}, async (t) => {
  const runtime = folder(t);
  const file = join(runtime, 'manycore.config.json');
  writeFileSync(file, '{"nodeFlags":["--max-old-space-size=64"]}');
  const env = { XDG_RUNTIME_DIR: runtime };
  const flags = ['-P', '1', '-L', '1', '--config', file, listens];
  const { pids } = await startWith(t, flags, { env: { ...process.env, ...env } });
  // The program reports nothing before it has run for a second.
  const detail = await waitFor(async () => {
    const { programs } = JSON.parse((await doctor(t, [String(pids[0]), '--json'], env)).stdout);
    const findings: { what: string; detail: string }[] = programs[0].findings;
    return findings.find(({ what }) => what === 'heap limit')?.detail;
  });
  assert.match(detail, /^loop 0\.0: \d+ MiB of \d{2,3} MiB used$/);
});

/** A program that uses manycore, in trouble once it can be asked. */
async function troubled(
  t: TestContext,
  trouble: string,
  { where = 'main', execPath = process.execPath } = {},
): Promise<number> {
  const runtime = ownRuntime(t);
  const child = fork(new URL('./apps/troubled.js', import.meta.url), { execPath });
  t.after(() => child.kill('SIGKILL'));
  await waitFor(() => existsSync(join(runtime, `agent-${child.pid}.0.sock`)));
  child.send([trouble, where]);
  return child.pid ?? 0;
}

test('a loop that stands still is a problem, also where it computes nothing', {
  skip,
}, async (t) => {
  const pid = await troubled(t, 'blocked');
  const { stdout } = await waitFor(async () => {
    const ended = await doctor(t, [String(pid)]);
    return ended.status === 1 && ended;
  });
  assert.match(stdout, /^PROBLEM blocked loop +main: no answer within 1 s/m);
  assert.match(stdout, /costs: /);
  assert.match(stdout, /→ find the call that it waits in/);
});

test('a stopped process is distinguished from a blocked one', { skip }, async (t) => {
  const pid = await troubled(t, 'none');
  process.kill(pid, 'SIGSTOP');
  const { status, stdout } = await doctor(t, [String(pid)]);
  assert.equal(status, 1);
  assert.match(stdout, new RegExp(`→ kill -CONT ${pid}`));
});

test('a loop that is late is a problem', { skip }, async (t) => {
  const pid = await troubled(t, 'late');
  await waitFor(async () => {
    const { status, stdout } = await doctor(t, [String(pid)]);
    return status === 1 && /^PROBLEM loop lag +main: \d+ ms/m.test(stdout);
  });
});

test('a program on a Node without symbols reports the wait of a job itself', {
  skip,
}, async (t) => {
  const pid = await troubled(t, 'jobs', { execPath: withoutSymbols(t) });
  await waitFor(async () => {
    const { status, stdout } = await doctor(t, [String(pid)]);
    const isSaid = /^PROBLEM blocking pool +a job of ours waited \d+ ms for a thread/m.test(stdout);
    return status === 1 && isSaid && /→ [^→]*UV_THREADPOOL_SIZE|→ begin fewer jobs/.test(stdout);
  });
});

test('a variable that workers fight over is named', { skip }, async (t) => {
  const pid = await troubled(t, 'fought');
  const { stdout } = await waitFor(async () => {
    const ended = await doctor(t, [String(pid)]);
    return /^PROBLEM transactions/m.test(ended.stdout) && ended;
  });
  assert.match(stdout.replace(/\s+/g, ' '), /most of them over the TVar "hits" costs: /);
  assert.match(stdout, /→ divide it/);
});

test('memory outside of the heaps is near no limit of a heap', { skip }, async (t) => {
  const pid = await troubled(t, 'buffers', { where: 'thread' });
  // A loop that is busy answers later: its row is not there at first.
  await waitFor(async () => {
    const { stdout } = await doctor(t, [String(pid)]);
    return (
      /^ok +heap limit +main: \d+ MiB of \d+ [MG]iB used/m.test(stdout) &&
      /^ok +heap limit +thread \d+: \d+ MiB of \d+ MiB used/m.test(stdout)
    );
  });
});

test('a thread with a heap near its limit is named, with its own way out', {
  skip,
}, async (t) => {
  const pid = await troubled(t, 'heap', { where: 'thread' });
  await waitFor(async () => {
    const { stdout } = await doctor(t, [String(pid)]);
    return /^ADVICE +heap limit +thread \d+: [^→]*→ [^→]*maxOldGenerationSizeMb/m.test(stdout);
  });
});

test('a quota that is used up is a problem', { skip }, async (t) => {
  const root = '/sys/fs/cgroup/cpu';
  const group = `${root}/manycore-doctor-${process.pid}`;
  try {
    if (!existsSync(`${root}/cpu.cfs_quota_us`)) throw new Error('version 2, or none');
    mkdirSync(group);
    writeFileSync(`${group}/cpu.cfs_quota_us`, '2000');
  } catch {
    if (existsSync(group)) rmdirSync(group);
    t.skip('no control group of version 1 can be made here');
    return;
  }
  const { pid } = await startProgram(t, 'for (;;);');
  t.after(() =>
    waitFor(() => {
      rmdirSync(group); // once nobody is in it
      return true;
    }),
  );
  writeFileSync(`${group}/cgroup.procs`, String(pid));
  // The program may get less than its quota for a while on a busy machine.
  await waitFor(async () => {
    const { stdout, status } = await doctor(t, [String(pid)]);
    return status === 1 && /^PROBLEM CPU quota +0\.02 cores, used up in/m.test(stdout);
  });
});

test('running servers are found, and each of their processes is sampled', {
  skip: skip || skipServing,
}, async (t) => {
  const env = { XDG_RUNTIME_DIR: folder(t) };
  const flags = ['-P', '2', '-L', '1', listens];
  const { child, pids } = await startWith(t, flags, { env: { ...process.env, ...env } });
  const all = await doctor(t, [], env);
  assert.match(all.stdout, /^This machine$/m);
  const one = await doctor(t, [String(child.pid)], env);
  assert.doesNotMatch(one.stdout, /This machine/);
  for (const { stdout } of [all, one]) {
    assert.match(stdout.replace(/\n(?=\S)/g, ' '), new RegExp(`served by process ${child.pid}`));
    for (const pid of pids) assert.match(stdout, new RegExp(`process ${pid}$`, 'm'));
    assert.match(stdout, /loops +2 on \d+ granted/);
  }
  const single = JSON.parse((await doctor(t, [String(pids[0]), '--json'], env)).stdout);
  assert.deepEqual(
    single.programs.map(({ pid }: { pid: number }) => pid),
    [pids[0]],
  );
});

for (const [what, ran, code] of [
  ['another program', ['sh', '-c', 'read line'], 'PROCESS_NOT_NODE'],
  ['one that has ended', ['true'], 'PROCESS_GONE'],
] as const) {
  test(`${what} is ${code}, in one sentence with a way out`, { skip }, async (t) => {
    const { child, pid } = await startProgram(t, '', { command: [...ran], stdio: ['pipe'] });
    if (code === 'PROCESS_GONE') await waitFor(() => child.exitCode === 0);
    const { status, stdout, stderr } = await doctor(t, [String(pid)]);
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, new RegExp(`^manycore: .*process ${pid}\\b.*: .* \\(${code}\\)\\n$`));
  });
}

test('a program that ends while it is sampled is PROCESS_GONE', { skip }, async (t) => {
  const { child, pid } = await startProgram(t, idle);
  const samples = sampleProcess(pid);
  child.kill('SIGKILL');
  await assert.rejects(samples, { code: 'PROCESS_GONE' });
});
