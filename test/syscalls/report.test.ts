// The report as text and as folded stacks, from known numbers.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { requestsText, textReport } from '../../src/cli/commands/trace/trace-report.js';
import { callNames } from '../../src/syscalls/calls.js';
import { foldCounts, foldTimes } from '../../src/syscalls/folded.js';
import {
  joinCalls,
  joinRoles,
  type TracedCall,
  type TraceReport,
} from '../../src/syscalls/report.js';
import { notLinux } from './tracing.js';

function call(name: string, count: number, onCpuMs: number, blockedMs = 0): TracedCall {
  return { name, count, errors: 1, onCpuMs, blockedMs, tookMs: null, seen: null };
}

const thread = {
  pid: 5,
  tid: 5,
  role: 'main loop',
  name: 'node',
  hasEnded: false,
  tasks: 1,
  userMs: 1500,
  systemMs: 12,
  samples: null,
  running: null,
  calls: [call('read', 4000, 10), call('epoll_pwait', 20, 2, 3000)],
};
const pool = {
  ...thread,
  tid: 9,
  role: 'blocking pool',
  name: 'libuv worker',
  calls: [call('read', 1000, 5)],
};
const threads = [thread, pool, { ...pool, tid: 10 }];
const report: TraceReport = {
  method: 'ebpf',
  missing: [],
  tookMs: 2000,
  pid: 5,
  command: `node ${'a-long-name/'.repeat(12)}app.js`,
  isNode: true,
  machine: { cores: 2, user: 0.5, system: 0.25, softInterrupt: 0.05, idle: 0.19, other: 0.01 },
  program: { userMs: 1500, systemMs: 500, by: 'calls', reads: null, writes: null },
  calls: joinCalls(threads.map(({ calls }) => calls)),
  roles: joinRoles(threads),
  threads,
  overhead: { kernelShare: 0.021, processShare: 0.004 },
  notes: [
    'A note that is so long that no terminal of eighty columns could show it in one line at all.',
  ],
};

test('the same calls of several threads are one line, those that cost most first', () => {
  assert.deepEqual(
    report.calls.map(({ name, count, onCpuMs, blockedMs }) => [name, count, onCpuMs, blockedMs]),
    [
      ['read', 6000, 20, 0],
      ['epoll_pwait', 20, 2, 3000],
    ],
  );
  assert.deepEqual(
    report.roles.map(({ role, threads: count }) => [role, count]),
    [
      ['blocking pool', 2],
      ['main loop', 1],
    ],
  );
});

test('values that a way of tracing lacks stay null when threads are joined', () => {
  const found = { ...call('futex', 0, 0), count: null, errors: null, onCpuMs: null, seen: 3 };
  const [joined] = joinCalls([[found], [{ ...found, seen: 4 }]]);
  assert.deepEqual([joined?.count, joined?.onCpuMs, joined?.seen], [null, null, 7]);
});

for (const [method, calls] of [
  ['ebpf', report.calls],
  ['raw', report.calls.map((each) => ({ ...each, onCpuMs: null, blockedMs: null, tookMs: 7 }))],
  ['counters', report.calls.map((each) => ({ ...each, count: null, errors: null, seen: 7 }))],
] as const) {
  test(`the text of a report by ${method} fits 80 columns, and has the figures`, () => {
    const missing = [
      {
        method: 'ebpf' as const,
        reason: 'CAP_BPF is missing',
        wayOut: 'run it as root',
        cost: 'x',
      },
    ];
    const requests = requestsText(report, { count: 3010 });
    const text = textReport({ ...report, method, calls, missing }, requests);
    const lines = text.split('\n');
    assert.deepEqual(
      lines.filter((line) => line.length > 80),
      [],
    );
    assert.match(text, /user 50 % {2}system 25 % {2}soft interrupts 5\.0 % {2}idle 19 %/);
    assert.match(text, /requests {2}3,010, with 2\.00 calls each: read 1\.99, epoll_pwait 0\.01/);
    assert.match(text, /ebpf would see more: CAP_BPF is missing/);
    if (method === 'ebpf') assert.match(text, /^read +6,000 +3,000 +3 +20\.0 +3\.3 +0\.0$/m);
    if (method === 'raw') assert.match(text, /^read +6,000 +3,000 +3 +7\.0$/m);
    if (method === 'counters') assert.match(text, /^read +7 /m);
    assert.doesNotMatch(text, /library/);
  });
}

test('each role or thread may have a table of calls of its own', () => {
  const byRole = textReport(report, [], 'role').split('\n\n');
  assert.deepEqual(
    byRole.slice(3, 5).map((part) => part.split('\n').map((line) => line.split(/ {2,}/)[0])),
    [
      ['blocking pool', 'call', 'read'],
      ['main loop', 'call', 'read', 'epoll_pwait'],
    ],
  );
  assert.match(byRole[3] ?? '', /^read +2,000 +1,000 +2 +10\.0 +5\.0 +0\.0$/m);
  const many = Array.from({ length: 14 }, (_, at) => ({ ...pool, tid: 20 + at, userMs: at }));
  const silent = { ...thread, tid: 7, calls: [] };
  const text = textReport({ ...report, threads: [silent, ...many, thread] }, [], 'thread');
  const titles = text.split('\n').filter((line) => line.includes(', thread '));
  assert.deepEqual(titles.slice(0, 2), [
    'main loop, process 5, thread 5',
    'blocking pool, process 5, thread 33',
  ]);
  assert.equal(titles.length, 12);
  assert.match(text, /^\(3 more threads with calls: --json has all\)$/m);
});

test('the line of overhead mentions that it leaves out the counting library in the program', () => {
  const [first] = report.calls;
  assert.ok(first !== undefined);
  const text = textReport({ ...report, method: 'counters', calls: [{ ...first, seen: 3 }] }, []);
  assert.match(text, /^overhead {2}0\.4 % of a core in this process, and what the library/m);
});

test('folded stacks have role, thread and call; times are in ns, with waiting apart', () => {
  assert.equal(
    foldCounts({ ...report, threads: [thread] }),
    'main_loop;node-5;read 4000\nmain_loop;node-5;epoll_pwait 20\n',
  );
  assert.equal(
    foldTimes({ ...report, threads: [{ ...thread, name: 'a; b' }] }),
    'main_loop;a_b-5;user 1500000000\n' +
      'main_loop;a_b-5;read;on_cpu 10000000\n' +
      'main_loop;a_b-5;epoll_pwait;on_cpu 2000000\n' +
      'main_loop;a_b-5;epoll_pwait;blocked 3000000000\n',
  );
});

test('calls have their names on both architectures', () => {
  const [x64, arm64] = [callNames('x64'), callNames('arm64')];
  assert.deepEqual(
    [0, 202, 232, 332, 334, 424, 450].map((number) => x64.get(number)),
    [
      'read',
      'futex',
      'epoll_wait',
      'statx',
      'rseq',
      'pidfd_send_signal',
      'set_mempolicy_home_node',
    ],
  );
  assert.deepEqual(
    [63, 98, 22, 291, 450].map((number) => arm64.get(number)),
    ['read', 'futex', 'epoll_pwait', 'statx', 'set_mempolicy_home_node'],
  );
  assert.equal(callNames('mips').size, 0);
});

const noHeader = notLinux || process.arch !== 'x64' || !hasHeader();
function hasHeader(): boolean {
  return readHeader() !== '';
}
function readHeader(): string {
  try {
    return readFileSync('/usr/include/x86_64-linux-gnu/asm/unistd_64.h', 'utf8');
  } catch {
    return '';
  }
}

test("every number in the kernel's header has the name that it has here", {
  skip: noHeader && 'there is no header of the kernel here',
}, () => {
  const names = callNames('x64');
  const defined = [...readHeader().matchAll(/#define __NR_(\w+) (\d+)/g)];
  assert.ok(defined.length > 300);
  for (const [, name, number] of defined) assert.equal(names.get(Number(number)), name);
});

const noClang = (() => {
  try {
    return !execFileSync('clang', ['--version'], { encoding: 'utf8' }).includes('version 14.0');
  } catch {
    return true;
  }
})();

test('the committed program for the kernel is that of its source', {
  skip: noClang && 'there is no clang 14 (apt-get install clang llvm libbpf-dev)',
}, () => {
  const root = new URL('../../../', import.meta.url);
  execFileSync(process.execPath, ['scripts/build-bpf.mjs', '--check'], { cwd: root });
});
